//! The Job: what to run and where; once, a number of times, or once on every chosen node.

mod status;

pub use status::{JobPhase, JobStatus, Snapshot, Waiting};

use crate::{
    amount::Amount,
    data::{Cache, EnvFrom, EnvVar, LocalRef, Output, Param, SecurityContext, Source},
    placement::{Affinity, Labels, Resources, SpreadConstraint, Toleration},
    retry::{FailurePolicy, RetryStrategy},
    step::Step,
    strategy::{Matrix, Notify, Override, RetryOf, Strategy, Synchronization, TemplateRef},
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What to run and where: once, a number of times, or once on every chosen node.
///
/// Editable after creation are suspend, cancel, priority, parallelism, maxFailures, activeDeadlineSeconds,
/// ttlSecondsAfterFinished and notify; all else is immutable.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "prow.windows",
    version = "v1",
    kind = "Job",
    plural = "jobs",
    shortname = "pj",
    category = "all",
    category = "prow",
    namespaced,
    status = "JobStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "What to run and where: once, a number of times, or once on every chosen node.",
    selectable = ".spec.queueName",
    selectable = ".status.phase",
    printcolumn(
        name = "Phase",
        json_path = ".status.phase",
        type_ = "string",
        description = "Where it stands"
    ),
    printcolumn(
        name = "Succeeded",
        json_path = ".status.succeeded",
        type_ = "integer",
        description = "Indexes that succeeded"
    ),
    printcolumn(
        name = "Desired",
        json_path = ".status.desired",
        type_ = "integer",
        description = "Indexes wanted"
    ),
    printcolumn(
        name = "Active",
        json_path = ".status.active",
        type_ = "integer",
        description = "Indexes running now"
    ),
    printcolumn(
        name = "Failed",
        json_path = ".status.failed",
        type_ = "integer",
        description = "Indexes that failed"
    ),
    printcolumn(
        name = "Waiting",
        json_path = ".status.waiting[0].reason",
        type_ = "string",
        description = "Why the first waiting index waits",
        priority = 1
    ),
    printcolumn(
        name = "Queue",
        json_path = ".spec.queueName",
        type_ = "string",
        description = "The queue",
        priority = 1
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
pub struct JobSpec {
    // where
    /// A Target, a named set of nodes; the built-in Target `all` means every node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<LocalRef>,
    /// Labels a node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub node_selector: Labels,
    /// Requirements and preferences on nodes, and Jobs to keep away from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Taints this Job may run beside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub tolerations: Vec<Toleration>,
    /// Spread of this Job's Tasks over labels of the nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub topology_spread_constraints: Vec<SpreadConstraint>,
    /// Only these nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), inner(length(max = 253)))]
    pub node_names: Vec<String>,
    /// None of these nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), inner(length(max = 253)))]
    pub exclude_nodes: Vec<String>,
    /// What it does to the node. Must be Disruptive if a step may restart the host.
    #[serde(default)]
    pub impact: Impact,
    /// How long a disruptive Job waits for the node's other Tasks. Default: 3600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2147483647))]
    pub drain_timeout_seconds: Option<i64>,
    /// What happens to running Tasks when the maintenance window ends. Default: Finish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_window_end: Option<OnWindowEnd>,
    /// PerNode: what happens where a chosen node is off, cordoned or has a taint that is not tolerated.
    #[serde(default)]
    pub on_unavailable: OnUnavailable,
    /// What a node must have free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,

    // how many
    /// Indexed: `completions` runs on any matching nodes. PerNode: one on every chosen node. Absent means Indexed, and is refused
    /// beside targetRef or nodeNames, so that nobody runs on one of many hosts by accident.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_mode: Option<CompletionMode>,
    /// Indexed: how many runs. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000000))]
    pub completions: Option<i32>,
    /// How many run at once: a number, or a percentage of completions or nodes (rounds up, at least 1). Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<Amount>,
    /// More failed or unknown indexes than this, and nothing more starts: a number, or a percentage (rounds down). Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<Amount>,
    /// PerNode: the nodes chosen at the start, or also those that join before the end.
    #[serde(default)]
    pub node_set: NodeSet,
    /// Every combination of the axes is one index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<Matrix>,
    /// How the Job moves over the fleet, in waves; without it all nodes at `parallelism`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,

    // when
    /// The queue it waits in.
    #[serde(default = "default_queue")]
    #[schemars(length(min = 1, max = 63))]
    pub queue_name: String,
    /// Name of a PriorityClass; not beside `priority`. `prow-emergency` goes before all other work of its queue and may use one
    /// slot more than a node has.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub priority_class_name: String,
    /// Higher goes first within its queue. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -1000000000, max = 1000000000))]
    pub priority: Option<i32>,
    /// While true nothing new starts; running Tasks go on to their end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// Ends the Job. Cannot be taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
    /// How long the Job may take from its first Task on, all waiting included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub active_deadline_seconds: Option<i64>,
    /// How long an index may wait for its node (PerNode, default 86400) or for anything that fits (Indexed, default: for ever).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub starting_deadline_seconds: Option<i64>,
    /// How long one attempt may take.
    #[serde(default = "day")]
    #[schemars(range(min = 1, max = 31536000))]
    pub task_timeout_seconds: i64,
    /// How long a step may take to end after it was asked to.
    #[serde(default = "half_minute")]
    #[schemars(range(min = 0, max = 86400))]
    pub termination_grace_period_seconds: i64,
    /// How long a finished Job is kept. Default: for good for Jobs created by name, 604800 for generateName.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2147483647))]
    pub ttl_seconds_after_finished: Option<i64>,
    /// Locks taken before a Task is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synchronization: Option<Synchronization>,

    // when it goes wrong
    /// Trying an index again after a failed attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_strategy: Option<RetryStrategy>,
    /// What happens to an attempt whose outcome is not known. Hold: it is not repeated. Rerun: the work is idempotent and may be.
    #[serde(default)]
    pub on_unknown: OnUnknown,
    /// What to do about which failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,

    // what
    /// Apply runs the steps; Audit runs only `when` and `check`.
    #[serde(default)]
    pub mode: Mode,
    /// A template copied into the Job when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateRef>,
    /// Values steps see as `params.x` and PROW_PARAM_X.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub params: Vec<Param>,
    /// Variables of every step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub env: Vec<EnvVar>,
    /// All keys of Secrets and ConfigMaps as variables of every step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub env_from: Vec<EnvFrom>,
    /// The account steps run as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// Checked out before preflight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub sources: Vec<Source>,
    /// Folders kept on the node between runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub caches: Vec<Cache>,
    /// Steps that must all pass before any of `steps` starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub preflight: Vec<Step>,
    /// The steps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200))]
    pub steps: Vec<Step>,
    /// Run after an attempt that started a step of `steps` and did not succeed, at most 1800 seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub rollback: Vec<Step>,
    /// Always run at the end, at most 300 seconds; a failed one makes the Task Failed/FinallyFailed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub finally: Vec<Step>,
    /// Values the Job gives to whoever asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub outputs: Vec<Output>,
    /// Who is told of what.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub notify: Vec<Notify>,
    /// Breaks windows, budgets or freezes.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    pub override_: Option<Override>,
    /// Runs a finished Job's indexes again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<RetryOf>,
    /// Who asked for it; written by the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<RequestedBy>,
}

fn default_queue() -> String {
    "default".into()
}
fn day() -> i64 {
    86400
}
fn half_minute() -> i64 {
    30
}

/// What a Job does to the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Impact {
    /// Nothing others would notice.
    #[default]
    None,
    /// Runs only inside maintenance windows.
    WindowOnly,
    /// Takes the node out of service: window, budget, cordon, drain.
    Disruptive,
}

/// What happens to running Tasks when the maintenance window ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum OnWindowEnd {
    /// They run to their end.
    #[default]
    Finish,
    /// They are stopped.
    Stop,
}

/// What happens where a chosen node is not available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum OnUnavailable {
    /// Waits until startingDeadlineSeconds, then the index is skipped (NodeUnavailable).
    #[default]
    Wait,
    /// The index is skipped.
    Skip,
    /// The index fails.
    Fail,
}

/// How many runs, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum CompletionMode {
    /// `completions` runs on any matching nodes.
    #[default]
    Indexed,
    /// One run on every chosen node.
    PerNode,
}

/// Which nodes a PerNode Job runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum NodeSet {
    /// Those chosen at the start.
    #[default]
    Snapshot,
    /// Also those that join before the end.
    Live,
}

/// Ends a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cancel {
    /// Why.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Ends steps at once, `finally` too; may be set later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
}

/// What happens to an attempt whose outcome is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum OnUnknown {
    /// Not repeated.
    #[default]
    Hold,
    /// Repeated once it is sure to have ended.
    Rerun,
}

/// Whether steps change anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Mode {
    /// Steps run.
    #[default]
    Apply,
    /// Only `when` and `check` run.
    Audit,
}

/// Who asked for an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestedBy {
    /// User name.
    #[schemars(length(max = 256))]
    pub user: String,
    /// Groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 256)))]
    pub groups: Vec<String>,
    /// User, Schedule, Trigger, Pipeline or Rollout.
    #[schemars(length(max = 63))]
    pub via: String,
}

impl JobSpec {
    /// How many runs and where; absent reads as Indexed.
    pub fn mode_of_completion(&self) -> CompletionMode {
        self.completion_mode.unwrap_or_default()
    }

    /// Whether it runs once on every chosen node.
    pub fn is_per_node(&self) -> bool {
        self.mode_of_completion() == CompletionMode::PerNode
    }

    /// How long an index may wait for its start, if not for ever.
    pub fn starting_deadline(&self) -> Option<i64> {
        self.starting_deadline_seconds
            .or_else(|| self.is_per_node().then_some(86400))
    }

    /// All steps with the list they stand in, in the order preflight, steps, rollback, finally.
    pub fn all_steps(&self) -> impl Iterator<Item = (&'static str, usize, &Step)> {
        [
            ("preflight", &self.preflight),
            ("steps", &self.steps),
            ("rollback", &self.rollback),
            ("finally", &self.finally),
        ]
        .into_iter()
        .flat_map(|(list, steps)| steps.iter().enumerate().map(move |(i, s)| (list, i, s)))
    }

    /// The immutable part: the spec without the fields that may be edited after creation.
    pub fn immutable(&self) -> JobSpec {
        JobSpec {
            suspend: false,
            cancel: None,
            priority: None,
            parallelism: None,
            max_failures: None,
            active_deadline_seconds: None,
            ttl_seconds_after_finished: None,
            notify: Vec::new(),
            ..self.clone()
        }
    }
}

/// The priority class whose work goes first and may use the one slot of a node that is reserved for it.
pub const EMERGENCY: &str = "prow-emergency";

impl JobSpec {
    /// Whether it is of the class `prow-emergency`.
    pub fn is_emergency(&self) -> bool {
        self.priority_class_name == EMERGENCY
    }

    /// What it counts within its queue: higher goes first.
    pub fn rank(&self) -> i32 {
        if self.is_emergency() {
            i32::MAX
        } else {
            self.priority.unwrap_or(0)
        }
    }
}

metadata_texts!(Job: name, namespace, uid);

impl Job {
    /// Where it stands.
    pub fn phase(&self) -> JobPhase {
        self.status.as_ref().map(|s| s.phase).unwrap_or_default()
    }
}
