//! The Task: one attempt of one index of a Job on one node.

use crate::{data::LocalRef, retry::RetryOn};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One attempt of one index of a Job on one node.
///
/// Made, already bound, by the scheduler; claimed and run by that node's agent. The spec is immutable but for stop, drain,
/// rebootAllowed and resolution.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "prow.windows",
    version = "v1",
    kind = "Task",
    plural = "tasks",
    shortname = "pt",
    category = "prow",
    namespaced,
    status = "TaskStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "One attempt of one index of a Job on one node.",
    selectable = ".spec.nodeName",
    selectable = ".spec.jobRef.name",
    selectable = ".status.phase",
    printcolumn(
        name = "Job",
        json_path = ".spec.jobRef.name",
        type_ = "string",
        description = "The Job"
    ),
    printcolumn(
        name = "Node",
        json_path = ".spec.nodeName",
        type_ = "string",
        description = "The node"
    ),
    printcolumn(
        name = "Attempt",
        json_path = ".spec.attempt",
        type_ = "integer",
        description = "Serial number of the attempt"
    ),
    printcolumn(
        name = "Phase",
        json_path = ".status.phase",
        type_ = "string",
        description = "Where it stands"
    ),
    printcolumn(
        name = "Reason",
        json_path = ".status.reason",
        type_ = "string",
        description = "Why it ended so"
    ),
    printcolumn(
        name = "Message",
        json_path = ".status.message",
        type_ = "string",
        description = "What happened",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        json_path = ".metadata.creationTimestamp",
        type_ = "date",
        description = "Time since it was made"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct TaskSpec {
    /// The Job.
    pub job_ref: JobRef,
    /// Which index of the Job; PerNode: the position of the node, for display only.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub index: i32,
    /// How many indexes the Job has.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub count: i32,
    /// Serial number of the attempt at this index, from 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub attempt: i32,
    /// The node it is bound to.
    #[schemars(length(min = 1, max = 253))]
    pub node_name: String,
    /// The JSON of the Job's immutable spec, when short; else the agent reads the Job and checks workHash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub work: Option<String>,
    /// The fence of a Rerun Job: the runner ends the work when its agent could not renew its Lease for so long. Absent for Hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub fence_seconds: Option<i64>,
    /// Locks held in this Task's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub locks: Vec<LocalRef>,
    /// When the maintenance window ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_end: Option<Time>,
    /// Features the agent must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)))]
    pub requires: Vec<String>,
    /// Asks the agent to stop; set once by a controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Wanted: the node is to be cordoned and its other Tasks are to end before an agent may take this one. A controller says Done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
    /// The agent may restart the host; set once by a controller, for all restarts of this Task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reboot_allowed: bool,
    /// How a user settled an unknown outcome; set once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
}

/// The Job of a Task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobRef {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Its uid.
    #[schemars(length(min = 1, max = 64))]
    pub uid: String,
    /// SHA-256 of the JSON of its immutable spec, in hex.
    #[schemars(length(min = 64, max = 64))]
    pub work_hash: String,
}

/// Asks the agent to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stop {
    /// Cancelled, Deadline, Evicted, Preempted, Skipped, NodeUnavailable, …
    #[schemars(length(min = 1, max = 63))]
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
    /// How long steps may take to end; may shrink.
    #[schemars(range(min = 0, max = 86400))]
    pub grace_seconds: i64,
    /// Ends steps at once, `finally` too; may turn true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// Whether the node is free for a Task that takes it out of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Drain {
    /// Not yet.
    Wanted,
    /// It is cordoned and nothing else runs there.
    Done,
}

/// How a user settled an unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resolution {
    /// What the index counts as.
    #[serde(rename = "as")]
    pub as_: ResolvedAs,
    /// Why.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Who; written by the server.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub by: String,
}

/// What an index counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ResolvedAs {
    /// It did its work.
    Succeeded,
    /// It did not.
    Failed,
}

/// Where a Task stands; after the claim only the agent writes it, but for a controller's move to a terminal phase and NodeLost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskStatus {
    /// Where it stands; absent means Bound.
    #[serde(default, skip_serializing_if = "TaskPhase::is_bound")]
    pub phase: TaskPhase,
    /// The agent that took it; set once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    /// Why it ended so, a stable code.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub reason: String,
    /// What happened, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub message: String,
    /// Whether a step of `steps` had started; then a system end is not repeated for free.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub started_steps: bool,
    /// Whether the failure rules out a retry: a fatal exit code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fatal: bool,
    /// Whether the failing exit code is one of `exitCodes.retry`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry_code: bool,
    /// How many restarts of the host it has asked for.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    #[schemars(range(min = 0, max = 1000000))]
    pub reboots: i32,
    /// The steps that ran or were skipped, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 400))]
    pub steps: Vec<StepStatus>,
    /// How the rollback went; absent where none ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackOutcome>,
    /// The Job's outputs as this Task gave them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub outputs: BTreeMap<String, String>,
    /// NodeLost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conditions: Vec<Condition>,
    /// Whether log ranges are still to come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub logs_pending: bool,
    /// When the first step started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MicroTime>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<MicroTime>,
    /// What the agent reported after the end; for reading only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_report: Option<LateReport>,
}

/// Where a Task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TaskPhase {
    /// Made; no agent has taken it.
    #[default]
    Bound,
    /// Taken by its node's agent.
    Claimed,
    /// A step has started.
    Running,
    /// The host is restarting.
    Rebooting,
    /// All steps ended well.
    Succeeded,
    /// A step failed, or the work ended by the system's hand.
    Failed,
    /// Stopped on request.
    Cancelled,
    /// Did not apply.
    Skipped,
    /// Never started; replaced at no cost.
    Rejected,
    /// The outcome is not known.
    Unknown,
}

impl TaskPhase {
    /// Whether nobody has taken it.
    pub fn is_bound(&self) -> bool {
        *self == Self::Bound
    }

    /// Whether it never changes again.
    pub fn is_terminal(self) -> bool {
        !matches!(
            self,
            Self::Bound | Self::Claimed | Self::Running | Self::Rebooting
        )
    }

    /// Whether a Task in this phase may go to `next`.
    pub fn may_become(self, next: TaskPhase) -> bool {
        use TaskPhase::*;
        self == next
            || match self {
                Bound => matches!(next, Claimed | Rejected | Cancelled | Skipped | Failed),
                Claimed => matches!(
                    next,
                    Running | Rebooting | Succeeded | Failed | Cancelled | Skipped | Unknown
                ),
                Running => matches!(
                    next,
                    Rebooting | Succeeded | Failed | Cancelled | Skipped | Unknown
                ),
                Rebooting => matches!(next, Running | Succeeded | Failed | Cancelled | Skipped | Unknown),
                Succeeded | Failed | Cancelled | Skipped | Rejected | Unknown => false,
            }
    }
}

/// Which agent took a Task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Made with the agent's data folder.
    #[schemars(length(min = 1, max = 64))]
    pub agent_instance: String,
    /// Which boot of the host.
    #[serde(rename = "bootID")]
    #[schemars(length(min = 1, max = 64))]
    pub boot_id: String,
    /// Of the living agent process.
    #[schemars(length(min = 1, max = 64))]
    pub nonce: String,
    /// When, by the agent's corrected clock.
    pub time: MicroTime,
}

/// Where a step stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStatus {
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
    /// Where it stands.
    #[serde(default)]
    pub phase: StepPhase,
    /// Why: Compliant, Drifted, Timeout, StartFailed, CheckFailed, NotConverged, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub reason: String,
    /// What happened, in a sentence, the last lines of a failed step among it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub message: String,
    /// How often it was tried.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100000))]
    pub attempts: i32,
    /// Unsigned 32-bit exit code of the last try.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 4294967295_i64))]
    pub exit_code: Option<i64>,
    /// The code's NTSTATUS name, or the signal that ended it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub exit_name: String,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<MicroTime>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<MicroTime>,
    /// Its outputs, at most 32 KiB.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 256))]
    pub outputs: BTreeMap<String, String>,
    /// Size of its log; a follower stops there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9007199254740991_i64))]
    pub log_bytes: Option<i64>,
    /// The most memory it used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9007199254740991_i64))]
    pub peak_memory_bytes: Option<i64>,
    /// CPU time it used, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000000000))]
    pub cpu_seconds: Option<f64>,
    /// Processes it left behind with allowDetached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 256)))]
    pub detached: Vec<String>,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum StepPhase {
    /// Not begun.
    #[default]
    Pending,
    /// Running.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Not run: `when`, `check`, a skip code, or an earlier failure.
    Skipped,
    /// Stopped on request.
    Cancelled,
}

/// How a rollback went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum RollbackOutcome {
    /// All its steps ended well.
    Succeeded,
    /// One did not, or time ran out.
    Failed,
}

/// What the agent reported after the Task had ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LateReport {
    /// The phase it would have had.
    pub phase: TaskPhase,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub reason: String,
    /// What happened.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 4096))]
    pub message: String,
    /// When it was reported.
    pub time: MicroTime,
}

/// Reasons of ends that are the system's doing, not the step's: repeated at no cost while no step of `steps` had started.
pub const SYSTEM_ENDS: [&str; 8] = [
    "RunnerLost",
    "HostRebooted",
    "HostCrashed",
    "Interrupted",
    "Preempted",
    "Evicted",
    "Fenced",
    "Abandoned",
];

impl TaskStatus {
    /// Whether the end was the system's doing.
    pub fn is_system_end(&self) -> bool {
        self.phase == TaskPhase::Failed && SYSTEM_ENDS.contains(&self.reason.as_str())
    }

    /// Whether `retryOn` lets this failure be tried again.
    pub fn may_retry(&self, retry_on: RetryOn) -> bool {
        !self.fatal && (retry_on == RetryOn::AnyFailure || self.retry_code)
    }
}

metadata_texts!(Task: name, namespace, uid);

impl Task {
    /// Where it stands.
    pub fn phase(&self) -> TaskPhase {
        self.status.as_ref().map(|s| s.phase).unwrap_or_default()
    }

    /// Whether the node it runs on is lost.
    pub fn is_node_lost(&self) -> bool {
        self.status.as_ref().is_some_and(|s| {
            s.conditions
                .iter()
                .any(|c| c.type_ == "NodeLost" && c.status == "True")
        })
    }
}
