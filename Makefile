# What can be done here. Needs Rust and make; the scripts install or name whatever else they need.

.DEFAULT_GOAL := help
.PHONY: help build demo test check soak

# rounds of the crash and chaos suites
ROUNDS ?= 2
export ROUNDS

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## Build prow, prow-agent and prow-bench for use, into target/release
	cargo build --release --locked -p prow -p prow-agent -p prow-bench

demo: ## Build, run a server with three agents, and watch real jobs run
	@scripts/demo

check: ## Format, lints, unit and integration tests
	@scripts/check

test: ## Every suite
	@scripts/test

windows: ## Build prow-agent.exe and prow.exe into target/windows
	@scripts/windows/build

test-windows: ## The Windows build's suites under Wine
	@scripts/windows/test

test-windows-host: ## The same suites on a Windows machine
	@scripts/windows/test-host

soak: ## The crash and chaos suites at full length; ROUNDS=n to choose
	@ROUNDS=$(if $(filter command line environment,$(origin ROUNDS)),$(ROUNDS),100) scripts/soak
