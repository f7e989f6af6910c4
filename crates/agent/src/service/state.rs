//! What an agent's data folder tells without the agent: for `prow-agent status`.

use super::home::Process;
use crate::{
    journal::{self, AgentRecord},
    layout::{DataDir, TaskDir},
    runner::{Identity, status_from_journal},
};
use api::{Task, task::TaskPhase};
use pki::Credentials;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// Why it tells nothing.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No agent was ever started there, or the folder is another account's.
    #[error("{0} is no agent's data folder, or not readable: {1}")]
    Folder(PathBuf, std::io::Error),
    /// See there.
    #[error(transparent)]
    Layout(#[from] crate::layout::Error),
    /// See there.
    #[error(transparent)]
    Pki(#[from] pki::Error),
}

/// An agent as its folder shows it.
#[derive(Debug)]
pub struct State {
    /// Name of the node; `None` before it is enrolled.
    pub node: Option<String>,
    /// Until when its certificate holds.
    pub certificate_until: Option<jiff::Timestamp>,
    /// The living agent's pid.
    pub agent: Option<u32>,
    /// Its tasks, newest folder last.
    pub tasks: Vec<TaskState>,
}

/// A task as its folder shows it.
#[derive(Debug)]
pub struct TaskState {
    /// `namespace/name`.
    pub name: String,
    /// By the journals.
    pub phase: TaskPhase,
    /// The living runner's pid.
    pub runner: Option<u32>,
    /// Whether the server knows how it ended.
    pub reported: bool,
}

/// Reads a data folder without changing it.
pub fn read(root: &Path) -> Result<State, Error> {
    let pki = root.join("pki");
    if let Err(error) = pki.read_dir() {
        return Err(Error::Folder(root.to_owned(), error));
    }
    let credentials = Credentials::load(&pki.join("client.pem"))?;
    let leaf = credentials.map(|c| c.leaf()).transpose()?;
    let processes = std::fs::read(pki.join("processes.json")).unwrap_or_default();
    let processes: Vec<Process> = serde_json::from_slice(&processes).unwrap_or_default();
    let agent = processes.last().map(|p| &p.process);
    let mut tasks: Vec<_> = DataDir::open(root)?.tasks()?.iter().filter_map(task).collect();
    tasks.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(State {
        node: leaf.as_ref().and_then(|l| l.identity().node().map(str::to_owned)),
        certificate_until: leaf.map(|l| l.not_after),
        agent: agent.and_then(living),
        tasks,
    })
}

/// The programs that living runners run.
pub fn runner_programs(data: &DataDir) -> Result<Vec<PathBuf>, crate::layout::Error> {
    let image = |dir: &TaskDir| {
        let local = super::recovery::Local {
            run: journal::read(&dir.run_journal()).ok()?,
            agent: journal::read(&dir.agent_journal()).ok()?,
            alive: false,
        };
        let runner = local.runner()?;
        runner.is_alive().then(|| PathBuf::from(&runner.image))
    };
    Ok(data.tasks()?.iter().filter_map(image).collect())
}

fn task(dir: &TaskDir) -> Option<TaskState> {
    let task: Task = serde_json::from_slice(&std::fs::read(dir.task_json()).ok()?).ok()?;
    let agent = journal::read::<AgentRecord>(&dir.agent_journal()).ok()?;
    let local = super::recovery::Local {
        run: journal::read(&dir.run_journal()).ok()?,
        agent,
        alive: false,
    };
    Some(TaskState {
        name: format!("{}/{}", task.namespace(), task.name()),
        phase: status_from_journal(&local.run).phase,
        runner: local.runner().and_then(living),
        reported: local.is_reported(),
    })
}

fn living(process: &Identity) -> Option<u32> {
    process.is_alive().then_some(process.pid)
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "node         {}",
            self.node.as_deref().unwrap_or("not enrolled")
        )?;
        if let Some(until) = self.certificate_until {
            writeln!(f, "certificate  until {until}")?;
        }
        match self.agent {
            Some(pid) => writeln!(f, "agent        running, pid {pid}")?,
            None => writeln!(f, "agent        not running")?,
        }
        let told = |task: &TaskState| match (task.runner, task.reported) {
            (Some(pid), _) => format!("runner pid {pid}"),
            (None, true) => "told the server".to_owned(),
            (None, false) => "not yet told the server".to_owned(),
        };
        for task in &self.tasks {
            writeln!(f, "task         {}  {:?}  {}", task.name, task.phase, told(task))?;
        }
        Ok(())
    }
}
