//! The `prow-agent` binary: one file a command.

mod diagnose;
mod install;
mod logging;
mod programs;
mod run;
mod run_task;
mod service;
mod status;
mod uninstall;
mod upgrade;

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
    /// Makes the agent a service of this host; again is fine.
    Install(install::Install),
    /// Removes the service and its programs; the data folder stays unless asked for.
    Uninstall(uninstall::Uninstall),
    /// Hands the service over to another version, and back if that one does not do its work; running tasks go on.
    Upgrade(upgrade::Upgrade),
    /// Runs the agent: enrols this host if need be, then takes the tasks bound to it.
    Run(run::Run),
    /// Shows what this host's agent knows: node, certificate, tasks.
    Status(status::Status),
    /// Writes a zip with what helps to find out what is wrong; no keys, no manifests, no output of steps.
    Diagnose(diagnose::Diagnose),
    /// Prints the version.
    Version,
    /// Runs one task; the agent starts this for each task it has claimed.
    #[command(hide = true)]
    RunTask(run_task::RunTask),
    /// Asks a process to end, as Windows does; a runner starts this since whoever does it is little use afterwards.
    #[cfg(windows)]
    #[command(hide = true)]
    SendSignal {
        pid: u32,
        /// Ctrl-C, Ctrl-Break or WM_CLOSE
        signal: String,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Install(command) => command.run(),
        Command::Uninstall(command) => command.run(),
        Command::Upgrade(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Status(command) => command.run(),
        Command::Diagnose(command) => command.run(),
        Command::Version => {
            println!("prow-agent {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::RunTask(command) => command.run(),
        #[cfg(windows)]
        Command::SendSignal { pid, signal } => {
            std::process::exit(agent::platform::send_signal(pid, &signal).cast_signed())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prow-agent: {error:#}");
            ExitCode::FAILURE
        }
    }
}
