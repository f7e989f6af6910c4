//! The `prow` command: client, server and all-in-one development server in one program.
//!
//! [`cli`] lists the verbs, [`commands`] holds one file a verb. They lean on a few small modules: [`session`] finds the server and
//! talks to it, [`kinds`] knows what it serves, [`manifest`] reads files, [`output`] prints objects, [`outcome`] turns results
//! and errors into exit codes. Results go to stdout, everything else to stderr.

mod ad_hoc;
mod apply;
mod cli;
mod commands;
mod fleet;
mod follow;

mod dev;
mod enrolment;
mod events;
mod jsonpath;
mod kinds;
mod log_lines;
mod manifest;
mod needs;
mod outcome;
mod output;
mod printer;
mod select;
mod serve;
mod session;
mod state;
mod summary;
mod terminal;
mod watch;

use clap::Parser;
use std::process::ExitCode;

/// Halves the CPU time of a write against the system's allocator (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    terminal::init_logging(cli.global.log.as_deref());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: no threads could be started: {error}");
            return ExitCode::from(outcome::Outcome::Failed.code());
        }
    };
    let outcome = runtime
        .block_on(cli.run())
        .unwrap_or_else(|error| outcome::report(&error));
    // a prompt or stdin read must not keep the process alive
    runtime.shutdown_background();
    ExitCode::from(outcome.code())
}
