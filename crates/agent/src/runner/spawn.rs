//! How the agent starts a runner.

use super::Identity;
use crate::{
    layout::TaskDir,
    platform::{self, Detached},
};
use api::task::TaskPhase;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ffi::OsStr, fs::OpenOptions, io, path::Path, process::ExitStatus};
use tokio::task::JoinHandle;

/// What a runner is told beside the task; it lies in `runner.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    /// The most bytes a step's log may hold; of more, head and tail are kept.
    pub max_log_bytes: u64,
    /// When the last acknowledged renewal of the node's Lease was sent ([`platform::boot_nanos`]); the fence counts from it until the
    /// agent tells of a later one.
    pub renewed_at: u64,
    /// Whether control groups are used where they can be; without them a task is held together by the subreaper alone.
    #[serde(default = "yes")]
    pub control_groups: bool,
    /// How long a shell may take until a script begins.
    #[serde(default = "three_minutes")]
    pub shell_start_seconds: u64,
    /// Labels of the node, for expressions.
    #[serde(default)]
    pub node_labels: BTreeMap<String, String>,
    /// Set when the host is back from a restart that the work asked for: it goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resume: bool,
    /// Set when an earlier runner ended without an end of the work: the steps are over, only rollback and finally run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover: Option<Recover>,
}

/// How the work ended of which only rollback and finally are left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recover {
    /// Failed, or Cancelled where it was stopped.
    pub phase: TaskPhase,
    /// A stable code such as RunnerLost or HostCrashed.
    pub reason: String,
    /// The same in a sentence.
    pub message: String,
}

/// Windows PowerShell can take a minute on a loaded host.
fn three_minutes() -> u64 {
    180
}

fn yes() -> bool {
    true
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_log_bytes: 64 << 20,
            renewed_at: platform::boot_nanos(),
            control_groups: true,
            shell_start_seconds: three_minutes(),
            node_labels: BTreeMap::new(),
            resume: false,
            recover: None,
        }
    }
}

impl Options {
    const FILE: &str = "runner.json";

    pub(super) fn load(task: &TaskDir) -> io::Result<Self> {
        Ok(serde_json::from_slice(&std::fs::read(
            task.path().join(Self::FILE),
        )?)?)
    }
}

/// A started runner.
pub struct Spawned {
    /// Which process it is; to be journalled before anything else.
    pub identity: Identity,
    /// Resolves when the process ends. Dropping it changes nothing for the runner, which is still reaped.
    pub ended: JoinHandle<io::Result<ExitStatus>>,
}

/// Sees to it that a runner which was started but has not begun never will: it finds nothing to do. Does not disturb one that has.
pub fn forbid(task: &TaskDir) -> io::Result<()> {
    match std::fs::remove_file(task.path().join(Options::FILE)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Starts `program run-task <folder>` detached: in its own session, without our streams, in no group that ends with the agent.
/// task.json and job.json must be stored. Needs a tokio runtime.
pub fn spawn(program: &Path, task: &TaskDir, options: &Options) -> io::Result<Spawned> {
    task.write(Options::FILE, &serde_json::to_vec(options)?)
        .map_err(io::Error::other)?;
    let mut log = OpenOptions::new();
    log.append(true).create(true);
    let log = platform::open_private(&mut log, &task.runner_log())?;
    let folder = task.path();
    let args = [OsStr::new("run-task"), folder.as_os_str()];
    let Detached { pid, ended } = platform::start_detached(program, &args, &folder, &log)?;
    // Short work may be over before we look; then this is nobody who lives, and the journal tells the rest.
    let identity = Identity::of(pid).or_else(|_| Identity::ended(pid));
    Ok(Spawned {
        identity: identity?,
        ended,
    })
}
