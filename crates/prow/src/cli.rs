//! What can be typed: the verbs and the flags they all share.

#[cfg(test)]
mod tests;

use crate::{commands::*, outcome::Outcome};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Run automation on fleets of hosts, the Kubernetes way.
#[derive(Parser, Debug)]
#[command(
    name = "prow",
    version,
    max_term_width = 110,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every verb.
#[derive(Args, Debug, Clone, Default)]
pub struct Global {
    /// Kubeconfig file. Default: $KUBECONFIG, else that of a running `prow dev`, else ~/.kube/config
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    pub context: Option<String>,
    /// Namespace. Default: the context's, else `default`
    #[arg(short, long, global = true, value_name = "NAME", help_heading = "Connection")]
    pub namespace: Option<String>,
    /// What is logged to stderr, as in RUST_LOG: error, warn, info, debug, or TARGET=LEVEL,…
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        env = "RUST_LOG",
        hide_env_values = true,
        help_heading = "Connection"
    )]
    pub log: Option<String>,
}

/// The verbs.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make or change objects as files say
    Apply(apply::Apply),
    /// Show objects
    Get(get::Get),
    /// Show an object, what happened to it, and what to do next
    Describe(describe::Describe),
    /// Delete objects
    Delete(delete::Delete),
    /// Wait until objects are as asked
    Wait(wait::Wait),
    /// Show what the steps of a Job or Task printed
    Logs(logs::Logs),
    /// Run a command or script on nodes, now
    Run(run::Run),
    /// Show what a manifest would do: which nodes, and what is missing
    Plan(plan::Plan),
    /// Stop a Job
    Cancel(cancel::Cancel),
    /// Say why a Job waits
    Why(why::Why),
    /// Settle a Task whose outcome is not known
    Resolve(resolve::Resolve),
    /// Keep new work away from nodes
    Cordon(cordon::Cordon),
    /// Let new work onto nodes again
    Uncordon(cordon::Uncordon),
    /// Show how busy nodes or queues are
    Top(top::Top),
    /// Look after nodes: enrolment tokens
    Node(node::NodeCommand),
    /// Run server and agents on this machine, for development
    Dev(dev::Dev),
    /// Run the server
    Server(server::ServerCommand),
    /// Run scheduler and controllers apart from the server
    Controllers(controllers::Controllers),
    /// Print a completion script for a shell
    Completion(completion::Completion),
    /// Print the versions of this program and of the server
    Version(version::Version),
}

impl Cli {
    /// Does what was typed.
    pub async fn run(self) -> anyhow::Result<Outcome> {
        let global = &self.global;
        match self.command {
            Command::Apply(c) => c.run(global).await,
            Command::Get(c) => c.run(global).await,
            Command::Describe(c) => c.run(global).await,
            Command::Delete(c) => c.run(global).await,
            Command::Wait(c) => c.run(global).await,
            Command::Logs(c) => c.run(global).await,
            Command::Run(c) => c.run(global).await,
            Command::Plan(c) => c.run(global).await,
            Command::Cancel(c) => c.run(global).await,
            Command::Why(c) => c.run(global).await,
            Command::Resolve(c) => c.run(global).await,
            Command::Cordon(c) => c.run(global).await,
            Command::Uncordon(c) => c.run(global).await,
            Command::Top(c) => c.run(global).await,
            Command::Node(c) => c.run(global).await,
            Command::Dev(c) => c.run().await,
            Command::Server(c) => c.run().await,
            Command::Controllers(c) => c.run(global).await,
            Command::Completion(c) => c.run(),
            Command::Version(c) => c.run(global).await,
        }
    }
}
