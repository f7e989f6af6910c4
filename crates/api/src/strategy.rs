//! How a Job moves over a fleet: waves, approvals, hooks; and the matrix, locks, notices and overrides of a Job.

use crate::{
    amount::Amount,
    data::{LocalRef, Param},
    placement::LabelSelector,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a Job moves over a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    /// The waves, in order; the last one repeats.
    #[schemars(length(min = 1, max = 32))]
    pub waves: Vec<Wave>,
    /// What a failed wave does.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// Jobs that run elsewhere around nodes and waves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
}

/// One wave.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wave {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// How many nodes it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Amount>,
    /// Which nodes it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// How long to watch it before the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2147483647))]
    pub soak_seconds: Option<i64>,
    /// Who must say yes before it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalRule>,
}

/// Who must say yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRule {
    /// Groups whose members may.
    #[schemars(length(min = 1, max = 32), inner(length(max = 256)))]
    pub groups: Vec<String>,
    /// How many must.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    pub count: i32,
    /// Who may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_by: Option<NotBy>,
    /// How long to wait.
    #[serde(default = "day")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub timeout_seconds: i64,
}

fn one() -> i32 {
    1
}
fn day() -> i64 {
    86400
}

/// Who may not approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum NotBy {
    /// Whoever asked for it.
    Requester,
}

/// What a failed wave does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum OnFailure {
    /// The Job pauses.
    #[default]
    Halt,
    /// The next wave starts.
    Continue,
    /// `rollback` runs on the nodes already changed, newest first.
    Undo,
}

/// Jobs that run elsewhere around nodes and waves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hooks {
    /// Before a node's Task starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_node: Option<Hook>,
    /// After a node's Task succeeded or was rolled back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_node: Option<Hook>,
    /// Before a wave starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_wave: Option<Hook>,
    /// After a wave ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_wave: Option<Hook>,
}

/// A Job made from a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// The template.
    pub template_ref: TemplateRef,
    /// Values for its parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub params: Vec<Param>,
}

/// A template and its revision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateRef {
    /// `JobTemplate` (default) or `ClusterJobTemplate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub kind: Option<String>,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its revision; absent means the newest, pinned when the Job is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 9007199254740991_i64))]
    pub revision: Option<i64>,
}

/// Every combination of the axes is one index, in axis order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// Values by axis.
    #[schemars(extend("maxProperties" = 8))]
    pub axes: BTreeMap<String, Vec<String>>,
    /// Combinations added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub include: Vec<BTreeMap<String, String>>,
    /// Combinations left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub exclude: Vec<BTreeMap<String, String>>,
    /// How many run at once; replaces the Job's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<Amount>,
    /// Whether the first failure cancels the rest.
    #[serde(default = "yes")]
    pub fail_fast: bool,
}

fn yes() -> bool {
    true
}

/// Locks taken before a Task is made and freed when it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Synchronization {
    /// Locks one Task at a time may hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub mutexes: Vec<Mutex>,
    /// Locks `limit` Tasks at a time may hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub semaphores: Vec<Semaphore>,
}

/// A lock for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mutex {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Who shares it.
    pub scope: LockScope,
}

/// A lock for some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Semaphore {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// How many may hold it.
    #[schemars(range(min = 1, max = 100000))]
    pub limit: i32,
    /// Who shares it.
    pub scope: LockScope,
}

/// Who shares a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum LockScope {
    /// Tasks on the same node.
    Node,
    /// Tasks of the same namespace.
    Namespace,
    /// All Tasks.
    Cluster,
}

/// Who is told of what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notify {
    /// The Notifier.
    pub notifier_ref: LocalRef,
    /// Which events: Started, Succeeded, Failed, Unknown, Drifted, Paused, WaitingApproval, All.
    #[schemars(length(min = 1, max = 16), inner(length(max = 63)))]
    pub events: Vec<String>,
    /// Artifacts sent along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 253)))]
    pub attach: Vec<String>,
}

/// Breaks windows, budgets or freezes; needs the verb `override` on each Target touched, and is audited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Override {
    /// Runs outside maintenance windows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub windows: bool,
    /// Ignores `maxUnavailable`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub budget: bool,
    /// Ignores freezes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub freezes: bool,
    /// Why.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
}

/// Runs a finished Job's indexes again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryOf {
    /// Name of the finished Job.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Which indexes: Failed, Unknown, Cancelled, NotStarted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), inner(length(max = 16)))]
    pub only: Vec<String>,
}
