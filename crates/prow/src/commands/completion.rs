//! `prow completion`: print a completion script for a shell.

use crate::{cli::Cli, outcome::Outcome};
use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print a completion script for a shell, such as `source <(prow completion bash)`.
#[derive(Args, Debug)]
pub struct Completion {
    /// The shell
    shell: Shell,
}

impl Completion {
    /// Prints it.
    pub fn run(self) -> Result<Outcome> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "prow", &mut script);
        crate::terminal::text(&String::from_utf8(script)?)?;
        Ok(Outcome::Done)
    }
}
