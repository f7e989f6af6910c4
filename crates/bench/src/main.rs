//! `prow-bench`: how fast the parts are on this machine. One file a command; figures and their meaning are in
//! docs/performance.md.

mod machine;
mod report;
mod store_put;

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
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::StorePut(options) => store_put::run(&options).await,
    };
    match outcome.and_then(|report| report.print(cli.json)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("prow-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
