//! Where everything lies in the agent's data folder.
//!
//! ```text
//! <data>/                    0700, refused if someone else owns it
//!   tasks/<uid>/
//!     task.json job.json     as received, stored before the claim
//!     runner.json            what the runner is to do: limits, the last renewal, recovery
//!     agent.jsonl run.jsonl  the journals of the agent and of the runner
//!     lock sock              held by the runner; the local endpoint
//!     steps/<nn>-<name>/     script, log.cri, output.env, mask
//!   w/<8 chars>/             the workspace: current folder of every step, outside the secret tree
//!   w/<8 chars>.tmp/         Windows: TEMP of the steps
//!   checkpoints/<16 chars>/  PROW_CHECKPOINT: kept across attempts of one index of a Job
//! ```

use crate::platform;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

/// Held by whoever drains the agent.
const DRAIN: &str = "drain.lock";

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A uid that is no plain name; a server that sends one is broken. A retry does not help.
    #[error("{0:?} is not a uid: letters, digits and dashes, at most 64")]
    BadUid(String),
    /// The folder belongs to another account, which could read or plant secrets. A retry does not help.
    #[error(
        "{path} is owned by another account; give it to the agent's account or choose another --data-dir"
    )]
    NotOurs {
        /// The folder.
        path: PathBuf,
    },
    /// A path that is no task folder.
    #[error("{0} is not a task folder of an agent's data folder")]
    NotATask(PathBuf),
    /// The file system refused; a retry may help.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// An agent's data folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// Makes the folder private to this account, or takes one that is already ours.
    pub fn open(root: &Path) -> Result<Self, Error> {
        private(root)?;
        let root = platform::canonical(root).map_err(Error::io(root))?;
        private(&root.join("tasks"))?;
        private(&root.join("checkpoints"))?;
        platform::create_dir(&root.join("w")).map_err(Error::io(&root.join("w")))?;
        Ok(Self(root))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The folder of a task; it need not exist.
    pub fn task(&self, uid: &str) -> Result<TaskDir, Error> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if uid.is_empty() || uid.len() > 64 || !uid.chars().all(plain) {
            return Err(Error::BadUid(uid.to_owned()));
        }
        Ok(TaskDir {
            data: self.clone(),
            uid: uid.to_owned(),
        })
    }

    /// All tasks that have a folder.
    pub fn tasks(&self) -> Result<Vec<TaskDir>, Error> {
        let path = self.0.join("tasks");
        let mut found = Vec::new();
        for entry in path.read_dir().map_err(Error::io(&path))? {
            let name = entry.map_err(Error::io(&path))?.file_name();
            found.extend(name.to_str().and_then(|uid| self.task(uid).ok()));
        }
        Ok(found)
    }

    /// Has the agent begin no new tasks for as long as the result lives, and as long as this process does.
    pub fn drain(&self) -> Result<File, Error> {
        let path = self.0.join(DRAIN);
        loop {
            if let Some(held) = platform::lock(&path).map_err(Error::io(&path))? {
                return Ok(held);
            }
            // the agent has a look, which takes no time and is told to nobody
            #[allow(clippy::disallowed_methods)]
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether somebody drains this agent.
    pub fn is_draining(&self) -> bool {
        matches!(platform::lock(&self.0.join(DRAIN)), Ok(None))
    }

    /// The folder kept across attempts of one index of a Job on this node.
    pub fn checkpoint(&self, job_uid: &str, index: i32) -> PathBuf {
        self.0
            .join("checkpoints")
            .join(&short_hash(&format!("{job_uid}/{index}"))[..16])
    }
}

/// The folder of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskDir {
    data: DataDir,
    uid: String,
}

impl TaskDir {
    /// The task of a path `<data>/tasks/<uid>`.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let path = platform::canonical(path).map_err(Error::io(path))?;
        let named = path.file_name().and_then(|n| n.to_str());
        let tasks = path.parent().filter(|p| p.ends_with("tasks"));
        match (named, tasks.and_then(Path::parent)) {
            (Some(uid), Some(root)) => DataDir(root.to_owned()).task(uid),
            _ => Err(Error::NotATask(path)),
        }
    }

    /// Makes the folder, private to this account.
    pub fn create(&self) -> Result<(), Error> {
        private(&self.path())?;
        private(&self.path().join("steps"))
    }

    /// Removes the task's folder and workspace; links are removed, never followed.
    pub fn remove(&self) -> Result<(), Error> {
        for path in [self.workspace(), self.temp(), self.path()] {
            platform::remove_tree(&path).map_err(Error::io(&path))?;
        }
        Ok(())
    }

    /// Writes a file of the folder so that it is there whole or not at all, readable by this account alone.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let path = self.path().join(name);
        let part = self.path().join(format!("{name}.part"));
        platform::write_private(&part, bytes)
            .and_then(|()| platform::rename(&part, &path))
            .map_err(Error::io(&path))
    }

    /// The task's uid.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// The agent's data folder.
    pub fn data(&self) -> &DataDir {
        &self.data
    }

    /// The folder itself.
    pub fn path(&self) -> PathBuf {
        self.data.0.join("tasks").join(&self.uid)
    }

    /// The Task as received.
    pub fn task_json(&self) -> PathBuf {
        self.path().join("task.json")
    }

    /// The Job's immutable work.
    pub fn job_json(&self) -> PathBuf {
        self.path().join("job.json")
    }

    /// The agent's journal.
    pub fn agent_journal(&self) -> PathBuf {
        self.path().join("agent.jsonl")
    }

    /// The runner's journal.
    pub fn run_journal(&self) -> PathBuf {
        self.path().join("run.jsonl")
    }

    /// Held by the living runner.
    pub fn lock(&self) -> PathBuf {
        self.path().join("lock")
    }

    /// What the runner itself has to say, panics among it.
    pub fn runner_log(&self) -> PathBuf {
        self.path().join("runner.log")
    }

    /// The folder of a step, by its place over all four lists and its name.
    pub fn step(&self, place: usize, name: &str) -> PathBuf {
        self.path().join("steps").join(format!("{place:02}-{name}"))
    }

    /// The log of a step, already masked.
    pub fn step_log(&self, place: usize, name: &str) -> PathBuf {
        self.step(place, name).join("log.cri")
    }

    /// Names and logs of the steps that have a folder, in order of their place.
    pub fn step_logs(&self) -> Result<Vec<(String, PathBuf)>, Error> {
        let path = self.path().join("steps");
        let mut found = Vec::new();
        for entry in path.read_dir().map_err(Error::io(&path))? {
            let entry = entry.map_err(Error::io(&path))?;
            let named = entry.file_name().into_string().unwrap_or_default();
            if let Some((place, name)) = named.split_once('-')
                && let Ok(place) = place.parse::<usize>()
            {
                found.push((place, name.to_owned(), entry.path().join("log.cri")));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, name, log)| (name, log)).collect())
    }

    /// The current folder of the task's steps; its name is short since paths below it may be long.
    pub fn workspace(&self) -> PathBuf {
        self.data.0.join("w").join(&short_hash(&self.uid)[..8])
    }

    /// The steps' folder for temporary files, where the system has no good one: beside the workspace, which is empty at the start.
    pub fn temp(&self) -> PathBuf {
        self.workspace().with_extension("tmp")
    }
}

fn private(path: &Path) -> Result<(), Error> {
    platform::create_private_dir(path).map_err(Error::io(path))?;
    if platform::is_ours(path).map_err(Error::io(path))? {
        Ok(())
    } else {
        Err(Error::NotOurs {
            path: path.to_owned(),
        })
    }
}

fn short_hash(text: &str) -> String {
    Sha256::digest(text).iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_again_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(&folder.path().join("data")).unwrap();
        let task = data.task("0f2c-9").unwrap();
        task.create().unwrap();
        assert_eq!(TaskDir::of(&task.path()).unwrap(), task);
        assert_eq!(data.tasks().unwrap(), vec![task.clone()]);
        assert_eq!(task.workspace().file_name().unwrap().len(), 8);
        assert!(TaskDir::of(data.path()).is_err());
    }

    #[test]
    fn an_agent_is_drained_only_while_somebody_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        assert!(!data.is_draining());
        let held = data.drain().unwrap();
        assert!(data.is_draining());
        drop(held);
        assert!(!data.is_draining());
    }

    #[test]
    fn a_uid_cannot_leave_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        for uid in ["", "..", "a/b", "a\\b", "a b", &"x".repeat(65)] {
            assert!(matches!(data.task(uid), Err(Error::BadUid(_))), "{uid}");
        }
    }

    #[test]
    fn step_logs_keep_the_order_of_the_steps() {
        let folder = tempfile::tempdir().unwrap();
        let task = DataDir::open(folder.path()).unwrap().task("u").unwrap();
        task.create().unwrap();
        for (place, name) in [(100, "z"), (0, "build-it"), (20, "a")] {
            std::fs::create_dir(task.step(place, name)).unwrap();
        }
        let names: Vec<_> = task.step_logs().unwrap().into_iter().map(|(n, _)| n).collect();
        assert_eq!(names, ["build-it", "a", "z"]);
    }
}
