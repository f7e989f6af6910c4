"""The Windows agent, run for real as far as Wine goes: the examples, exit codes, cancel without a survivor, an agent killed mid-step."""

import json
import os
import pathlib

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "windows"
ROUNDS = int(os.environ.get("WINDOWS_ROUNDS", os.environ.get("ROUNDS", "2")))
PROBE = r"P:\bin\prow-probe.exe"


def apply(kubectl, job, name, **spec):
    kubectl("apply", "-f", "-", stdin=job(name, nodeSelector={"prow.windows/os": "windows"}, **spec))


def finished(kubectl, name):
    kubectl("wait", f"job.prow.windows/{name}", "--for=condition=Finished", "--timeout=90s")
    tasks = kubectl.json("get", "tasks.prow.windows", "--field-selector", f"spec.jobRef.name={name}")["items"]
    assert len(tasks) == 1, json.dumps(tasks)
    [task] = tasks
    return task["status"]


@pytest.mark.parametrize("file", ["01-inventory.yaml", "02-install.yaml"])
def test_an_example_runs_to_its_end(kubectl, prow, file):
    kubectl("apply", "-f", EXAMPLES / file)
    kubectl("wait", "jobs.prow.windows", "--all", "--for=condition=Finished", "--timeout=90s")
    phases = kubectl("get", "jobs.prow.windows", "-o", "jsonpath={.items[*].status.phase}").split()
    assert set(phases) == {"Succeeded"}, prow("describe", "jobs")


def test_the_installation_does_what_it_says(kubectl, prow):
    kubectl("apply", "-f", EXAMPLES / "02-install.yaml")
    status = finished(kubectl, "install-shop")
    said = prow("logs", "install-shop")
    assert "[unpack] unpacking release 1.4.2" in said, "a value from the ConfigMap"
    assert "ALBATROSS" not in said and "[licence] entering licence ***" in said, "a masked secret"
    assert "[setup] setting up shop-1.4.2" in said, "an output handed on"
    steps = {step["name"]: step for step in status["steps"]}
    assert steps["setup"]["exitCode"] == 3010 and steps["setup"]["reason"] == "PendingReboot", steps
    assert kubectl("get", "job.prow.windows", "install-shop", "-o", "jsonpath={.status.outputs.folder}") == "shop-1.4.2"


def test_a_command_on_the_host_answers_at_once(prow, host):
    assert "windows" in prow("run", "--nodes", host.name, "--", "cmd.exe", "/d", "/c", "ver").lower()


@pytest.mark.parametrize("code, shown", [(0xC0000005, "STATUS_ACCESS_VIOLATION"), (42, ""), (0xFFFFFFFF, ""), (65536, "")])
def test_an_exit_code_keeps_all_its_bits(kubectl, job, code, shown):
    """EC-05."""
    apply(kubectl, job, "codes", steps=[{"name": "run", "command": [PROBE], "args": ["exit", "--", str(code - (1 << 32) if code >> 31 else code)]}])
    [step] = finished(kubectl, "codes")["steps"]
    assert (step["phase"], step["exitCode"]) == ("Failed", code)
    assert step.get("exitName", "") == shown


@pytest.mark.parametrize("round", range(ROUNDS))
def test_a_cancelled_tree_leaves_no_survivor(kubectl, prow, job, windows, round):
    """PT-01."""
    args = ["tree", "3", "pids"]
    apply(kubectl, job, "tree", terminationGracePeriodSeconds=1, steps=[{"name": "run", "command": [PROBE], "args": args}])
    follow = follow_first_line(kubectl, prow, "tree", lines=3)  # each process of the tree tells when it is there
    assert len(windows.processes("prow-probe.exe")) == 3
    prow("cancel", "tree", "--reason", "enough")
    status = finished(kubectl, "tree")
    assert status["phase"] == "Cancelled", status
    assert windows.processes("prow-probe.exe") == {}, "what was started lives on"
    follow.wait()


@pytest.mark.parametrize("round", range(ROUNDS))
def test_a_step_survives_the_death_of_its_agent(kubectl, prow, job, host, round):
    """AL-03."""
    steps = [{"name": "run", "command": [PROBE], "args": ["count", "150", "20"]}]
    apply(kubectl, job, "long", steps=steps)
    follow = follow_first_line(kubectl, prow, "long", lines=1)
    host.kill()
    host.start()
    status = finished(kubectl, "long")
    assert status["phase"] == "Succeeded", json.dumps(status)
    said = prow("logs", "long").splitlines()
    assert [line.split()[-1] for line in said] == [str(n) for n in range(1, 151)], "the output is whole and in order"
    follow.wait()


def follow_first_line(kubectl, prow, name, lines):
    """Follows a Job's log; returns once so many lines have come."""
    kubectl("wait", f"job.prow.windows/{name}", "--for=jsonpath={.status.active}=1", "--timeout=60s")
    follow = prow.start("logs", name, "-f")
    for _ in range(lines):
        assert follow.stdout.readline(), "the log ended"
    return follow
