//! `prow-agent uninstall`: removes the service and its programs; the data folder stays unless asked for.

use crate::{
    programs::Programs,
    service::{self, Manager},
};
use agent::{layout::DataDir, platform, service::state};
use anyhow::{Context, bail};
use clap::Args;
use std::{fs::File, path::PathBuf, time::Duration};

/// Between looks at whether tasks have ended.
const LOOK: Duration = Duration::from_millis(500);

/// Flags of `uninstall`.
#[derive(Args)]
pub struct Uninstall {
    /// The agent's data folder
    #[arg(long, env = "PROW_AGENT_DATA_DIR", default_value_os_t = agent::platform::default_data_dir())]
    data_dir: PathBuf,
    /// Waits for running tasks to end; no new ones are begun meanwhile
    #[arg(long, conflicts_with = "force")]
    drain: bool,
    /// Removes the service even with tasks running: they go on, and nobody tells the server how they end
    #[arg(long)]
    force: bool,
    /// Also removes the data folder: this host must be enrolled anew
    #[arg(long, conflicts_with = "force")]
    purge: bool,
    /// Removes from an image of a host in this folder
    #[cfg(unix)]
    #[arg(long)]
    root: Option<PathBuf>,
}

impl Uninstall {
    /// Checks everything first, then changes the host.
    pub fn run(self) -> anyhow::Result<()> {
        #[cfg(unix)]
        if let Some(root) = &self.root {
            Manager::new(Some(root.clone())).remove()?;
            let programs = service::default_programs()?;
            return remove(
                Programs::in_folder(root.join(programs.strip_prefix("/").unwrap_or(&programs))),
                &[],
            );
        }
        service::check_administrator()?;
        #[cfg(unix)]
        let manager = Manager::new(None);
        #[cfg(windows)]
        let manager = Manager::new();
        let draining = self.drain.then(|| self.wait_for_tasks()).transpose()?;
        let live = self.live()?;
        if !live.is_empty() && !self.force {
            bail!(
                "{} still run here: {}. Wait for them with --drain, or leave them alone with --force",
                count(live.len()),
                live.join(", ")
            );
        }
        if manager.is_installed()? {
            manager.stop()?;
            manager.remove()?;
        }
        drop(draining);
        let used = match DataDir::open(&self.data_dir) {
            Ok(data) => state::runner_programs(&data)?,
            Err(_) => Vec::new(), // not ours, so nothing of ours runs from it
        };
        if self.purge {
            platform::remove_tree(&self.data_dir)
                .with_context(|| format!("cannot remove {}", self.data_dir.display()))?;
        }
        remove(Programs::in_folder(service::default_programs()?), &used)
    }

    /// Tasks whose runner lives.
    fn live(&self) -> anyhow::Result<Vec<String>> {
        if !self.data_dir.join("pki").exists() {
            return Ok(Vec::new()); // never used
        }
        let tasks = state::read(&self.data_dir)?.tasks;
        Ok(tasks
            .into_iter()
            .filter(|task| task.runner.is_some())
            .map(|task| task.name)
            .collect())
    }

    fn wait_for_tasks(&self) -> anyhow::Result<File> {
        let data = DataDir::open(&self.data_dir)?;
        let draining = data.drain()?;
        let mut told = 0;
        loop {
            let live = self.live()?;
            if live.is_empty() {
                return Ok(draining);
            }
            if told != live.len() {
                told = live.len();
                eprintln!("waiting for {}: {}", count(told), live.join(", "));
            }
            #[allow(clippy::disallowed_methods)] // they are no children of ours: nobody tells of their end
            std::thread::sleep(LOOK);
        }
    }
}

fn remove(programs: Programs, used: &[PathBuf]) -> anyhow::Result<()> {
    for folder in programs.remove(used) {
        println!("left         {}: still in use; remove it later", folder.display());
    }
    println!("service      {}, removed", service::NAME);
    Ok(())
}

fn count(tasks: usize) -> String {
    match tasks {
        1 => "one task".to_owned(),
        n => format!("{n} tasks"),
    }
}
