//! The Queue: order, tier, weight and limits of waiting work.

use crate::placement::{LabelSelector, ResourceList};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Order, tier, weight and limits of waiting work.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "prow.windows",
    version = "v1",
    kind = "Queue",
    plural = "queues",
    shortname = "pq",
    category = "prow",
    status = "QueueStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Order, tier, weight and limits of waiting work.",
    printcolumn(
        name = "Priority",
        json_path = ".spec.priority",
        type_ = "integer",
        description = "Tier"
    ),
    printcolumn(
        name = "Weight",
        json_path = ".spec.weight",
        type_ = "integer",
        description = "Share within the tier"
    ),
    printcolumn(
        name = "Running",
        json_path = ".status.running",
        type_ = "integer",
        description = "Tasks that run"
    ),
    printcolumn(
        name = "Pending",
        json_path = ".status.pending",
        type_ = "integer",
        description = "Runs that wait"
    ),
    printcolumn(
        name = "Age",
        json_path = ".metadata.creationTimestamp",
        type_ = "date",
        description = "Time since it was made"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct QueueSpec {
    /// Tier: all work of a higher one goes first.
    #[serde(default)]
    #[schemars(range(min = -1000000, max = 1000000))]
    pub priority: i32,
    /// Share within the tier.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000000))]
    pub weight: i32,
    /// Order within the queue.
    #[serde(default)]
    pub ordering: Ordering,
    /// How many Tasks may run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000000))]
    pub max_running: Option<i32>,
    /// How many runs may wait; more are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100000000))]
    pub max_pending: Option<i32>,
    /// Stops the queue.
    #[serde(default)]
    pub stop_policy: StopPolicy,
    /// Which namespaces may use it; absent means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// How much its Tasks may request together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub quota: ResourceList,
    /// Whether its work may push out lower work.
    #[serde(default)]
    pub preemption: Preemption,
    /// Whether Tasks are spread or packed.
    #[serde(default)]
    pub placement: Placement,
}

fn one() -> i32 {
    1
}

/// Order within a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Ordering {
    /// Higher priority first, then older; work that fits nowhere is passed by.
    #[default]
    PriorityThenFifo,
    /// The same, but the head lets nothing pass.
    StrictFifo,
}

/// Stops a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum StopPolicy {
    /// Runs.
    #[default]
    None,
    /// Nothing new starts.
    Hold,
    /// Nothing new starts, and running Rerun work is stopped.
    HoldAndDrain,
}

/// Whether work may push out lower work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Preemption {
    /// Never.
    #[default]
    Never,
    /// Work of lower priority that may run again.
    LowerPriority,
}

/// Whether Tasks are spread or packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Placement {
    /// On the node with the most room.
    #[default]
    Spread,
    /// On the node with the least room that still fits.
    Pack,
}

/// What goes on in a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Tasks that run.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100000000))]
    pub running: i32,
    /// Runs that wait.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100000000))]
    pub pending: i32,
}

/// The queue that is always there.
pub const DEFAULT: &str = "default";
