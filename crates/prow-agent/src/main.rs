//! The `prow-agent` binary: one file a command.

mod run_task;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The agent of Prow.Windows.
#[derive(Parser)]
#[command(name = "prow-agent", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs one task; the agent starts this for each task it has claimed.
    #[command(hide = true)]
    RunTask(run_task::RunTask),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::RunTask(command) => command.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prow-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}
