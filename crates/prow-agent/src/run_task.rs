//! `prow-agent run-task`: the task runner.

use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct RunTask {
    /// The task's folder, `<data>/tasks/<uid>`.
    folder: PathBuf,
}

impl RunTask {
    pub fn run(self) -> anyhow::Result<()> {
        // stderr is the task's runner.log
        tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .init();
        Ok(agent::runner::run(&self.folder)?)
    }
}
