//! What became of a Job: phase, counts, conditions, and why pending indexes wait.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where a Job stands. All counts are per index and come from one snapshot of its Tasks:
/// desired = pending + active + succeeded + failed + unknown + cancelled + skipped.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStatus {
    /// Where it stands; the worst of its indexes wins at the end.
    #[serde(default)]
    pub phase: JobPhase,
    /// What happened, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Indexes wanted.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub desired: i32,
    /// Indexes without a running or final attempt.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub pending: i32,
    /// Indexes running now.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub active: i32,
    /// Indexes that succeeded.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub succeeded: i32,
    /// Indexes that failed for good.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub failed: i32,
    /// Indexes whose outcome is not known.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub unknown: i32,
    /// Indexes cancelled, or not started because of a cancel.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub cancelled: i32,
    /// Indexes that did not apply.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub skipped: i32,
    /// Attempts beyond the first of each index.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000000))]
    pub retries: i32,
    /// Indexes that succeeded with a warning.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub warnings: i32,
    /// Steps whose check found the host as desired.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000000))]
    pub compliant: i32,
    /// Steps whose check found drift, in Audit mode.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000000))]
    pub drifted: i32,
    /// Steps that ran after a check found drift.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000000))]
    pub changed: i32,
    /// Why pending indexes wait, one entry a reason; written by the scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub waiting: Vec<Waiting>,
    /// Finished, Complete, Failed, Paused, Suspended, Drifted, Ready, Reconciling, Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub conditions: Vec<Condition>,
    /// When the first Task was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// When the last index ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// PerNode: the nodes chosen at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Snapshot>,
    /// The Job's outputs, where it has one index.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub outputs: BTreeMap<String, String>,
    /// The generation this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9007199254740991_i64))]
    pub observed_generation: Option<i64>,
}

/// Where a Job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum JobPhase {
    /// No Task was made yet.
    #[default]
    Pending,
    /// A Task was made.
    Running,
    /// Halted between waves.
    Paused,
    /// Suspended, and nothing runs.
    Suspended,
    /// All indexes ended well.
    Succeeded,
    /// An index failed.
    Failed,
    /// Cancelled.
    Cancelled,
    /// An index ended without a known outcome.
    Unknown,
}

impl JobPhase {
    /// Whether it never changes again.
    pub fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Succeeded | Self::Failed | Self::Cancelled | Self::Unknown
        )
    }
}

/// Why some pending indexes wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// A stable code, such as NoNodeFits, QueueLimit, Backoff.
    #[schemars(length(max = 63))]
    pub reason: String,
    /// How many indexes.
    #[schemars(range(min = 0, max = 1000000))]
    pub count: i32,
    /// What is missing, in a sentence.
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// The nodes chosen at the start; the names lie in ConfigMaps `<job>-<uid5>-nodes-<k>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// How many.
    #[schemars(range(min = 0, max = 1000000))]
    pub count: i32,
    /// SHA-256 of the sorted names joined by line feeds, in hex.
    #[schemars(length(max = 64))]
    pub hash: String,
}
