//! `prow-bench`: how fast the parts are on this machine. One file a command; figures and their meaning are in
//! docs/performance.md.

mod machine;
mod place;
mod report;
mod run_through;
mod server;
mod store_put;
mod submit_to_run;
mod watch_churn;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measures Prow.Windows on this machine.
#[derive(Debug, Parser)]
#[command(name = "prow-bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print the result as one JSON object instead of a table.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes objects into a store on disk, each durable before it is answered.
    StorePut(store_put::Options),
    /// Submits Jobs one after the other to an idle server with one real agent; a latency is from the POST to the step's start.
    SubmitToRun(submit_to_run::Options),
    /// Runs no-op work through server and hollow agents over real HTTP; a latency is from the POST until the Job is seen finished.
    RunThrough(run_through::Options),
    /// Changes objects that many clients watch; a latency is from the write until its watcher has the event.
    WatchChurn(watch_churn::Options),
    #[command(flatten)]
    Place(place::Command),
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::StorePut(options) => store_put::run(&options).await,
        Command::SubmitToRun(options) => submit_to_run::run(&options).await,
        Command::RunThrough(options) => run_through::run(&options).await,
        Command::WatchChurn(options) => watch_churn::run(&options).await,
        Command::Place(command) => place::run(&command),
    };
    match outcome.and_then(|report| report.print(cli.json)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prow-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
