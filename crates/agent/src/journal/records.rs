//! What the two journals of a task record.

use crate::runner::Identity;
use api::{
    step::ExitClass,
    task::{RollbackOutcome, StepStatus, Stop, TaskPhase},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the records written here. A reader takes this one and older ones; fields are added, never given another meaning.
pub const VERSION: u32 = 1;

/// What the agent did for a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AgentRecord {
    /// task.json and job.json are stored.
    Stored {
        /// Boot id of the host.
        boot_id: String,
    },
    /// A claim is about to be sent.
    ClaimSent {
        /// Nonce of the sending process.
        nonce: String,
        /// When, on the clock that counts suspend, in nanoseconds since boot.
        sent_at: u64,
    },
    /// The claim was acknowledged.
    Claimed {
        /// Boot id of the host.
        boot_id: String,
    },
    /// A runner was started.
    RunnerStarted {
        /// Which process.
        runner: Identity,
    },
    /// The host announced its shutdown.
    ShutdownSeen,
    /// A restart of the host is about to be ordered, or is under way by itself and waited for from now on.
    RebootAsked {
        /// When, by the server's clock: that of the host may be another after the boot.
        since: MicroTime,
    },
    /// The host is back from a restart, and the work may go on: the server had the Task as Rebooting still.
    Returned {
        /// Boot id of the host.
        boot_id: String,
    },
    /// A status was acknowledged by the API.
    Reported {
        /// The phase it told.
        phase: TaskPhase,
    },
    /// Every byte of the logs was acknowledged.
    Shipped,
    /// The Task is gone, or had ended on the server: nothing more is told of it.
    Dropped,
    /// A record of a newer version.
    #[serde(other)]
    Other,
}

/// Which of a Job's four lists a step stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum List {
    /// Must pass before anything is changed.
    Preflight,
    /// The work.
    Steps,
    /// Undoes the work of an attempt that did not succeed.
    Rollback,
    /// Runs at the end.
    Finally,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepResult {
    /// As the API shows it.
    #[serde(flatten)]
    pub status: StepStatus,
    /// What its exit code meant, where it had one that counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ExitClass>,
}

/// A restart of the host that work waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// The step that wants it.
    pub step: String,
    /// In which boot.
    pub boot_id: String,
    /// Whether it is under way already: then nobody orders another.
    pub under_way: bool,
    /// How much of the task's time is used up, in milliseconds.
    pub worked_millis: u64,
}

/// What the runner did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunRecord {
    /// A runner took the task: the first record of a run, nothing was started yet.
    RunnerStarted {
        /// Which process.
        runner: Identity,
        /// What holds its processes together beside the session, so that they can be ended after its death: a cgroup's path.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        containment: Option<String>,
    },
    /// A runner took over after the death of the first, to roll back and clean up.
    Recovering {
        /// Why the first run ended: RunnerLost, HostRebooted, HostCrashed.
        reason: String,
        /// The same in a sentence.
        message: String,
    },
    /// A step is about to run; `when` and `check` were answered.
    StepStarted {
        /// Its list.
        list: List,
        /// Its place over all four lists, from 0.
        place: usize,
        /// Its name.
        name: String,
        /// Which try, from 1.
        attempt: i32,
        /// Whether it restarts the host by itself: cut off by a restart, it did what it should.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        restarts_host: bool,
    },
    /// A try of a step failed and another follows.
    StepRetried {
        /// Its name.
        name: String,
        /// Which try failed, from 1.
        attempt: i32,
        /// Why.
        reason: String,
        /// Its exit code, where it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<u32>,
        /// How long the runner waits before the next, in milliseconds.
        wait_millis: u64,
    },
    /// A step ended, or did not run.
    StepEnded {
        /// Its list.
        list: List,
        /// Its place over all four lists, from 0.
        place: usize,
        /// How.
        result: Box<StepResult>,
    },
    /// The work goes on after a restart of the host; this runner ends. Forced to the disk before anybody orders the restart.
    RebootRequested(Restart),
    /// The host is back from the restart, and this runner goes on once it is ready.
    Resumed {
        /// Boot id of the host.
        boot_id: String,
    },
    /// `readyCheck` says that the host is ready.
    HostReady,
    /// The work was asked to stop, or ran out of time.
    StopSeen {
        /// Why and how.
        stop: Stop,
    },
    /// The rollback ended.
    RollbackEnded {
        /// How.
        outcome: RollbackOutcome,
    },
    /// The last record: all is done, the tree is gone.
    Finished {
        /// How the task ended.
        phase: TaskPhase,
        /// A stable code, empty at success.
        reason: String,
        /// What happened, in a sentence.
        message: String,
        /// Whether the failure rules out a retry.
        fatal: bool,
        /// Whether the failing exit code was one worth a retry.
        retry_code: bool,
        /// The Job's outputs.
        outputs: BTreeMap<String, String>,
    },
    /// A record of a newer version.
    #[serde(other)]
    Other,
}
