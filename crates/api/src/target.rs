//! The Target: a named set of nodes, and who may run what there.

use crate::{
    amount::Amount,
    placement::{LabelSelector, Labels},
};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A named set of nodes, and who may run what there.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "prow.windows",
    version = "v1",
    kind = "Target",
    plural = "targets",
    shortname = "ptg",
    category = "prow",
    status = "TargetStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A named set of nodes, and who may run what there.",
    printcolumn(
        name = "Nodes",
        json_path = ".status.nodes",
        type_ = "integer",
        description = "Nodes it holds"
    ),
    printcolumn(
        name = "Owner",
        json_path = ".spec.owner",
        type_ = "string",
        description = "Who owns it"
    ),
    printcolumn(
        name = "Age",
        json_path = ".metadata.creationTimestamp",
        type_ = "date",
        description = "Time since it was made"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct TargetSpec {
    /// Nodes by label; an empty selector holds all. With neither selector nor nodes it holds none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Nodes by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), inner(length(max = 253)))]
    pub nodes: Vec<String>,
    /// Nodes it does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), inner(length(max = 253)))]
    pub exclude_nodes: Vec<String>,
    /// Who owns it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub owner: String,
    /// Where its runbook is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 2048))]
    pub runbook: String,
    /// The agent version its nodes should have.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub agent_version: Option<String>,
    /// Which namespaces may run on its nodes. A namespace may run on a node only if a Target that holds the node grants it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub access: Vec<Access>,
    /// How many of its nodes may be out of service at once (rounds down, at least 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Amount>,
    /// Calendars whose freezes and days hold here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(max = 253)))]
    pub calendars: Vec<String>,
    /// When its nodes may be disturbed; none means always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub maintenance_windows: Vec<Window>,
}

/// Which namespaces may run here, and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// Namespaces by label; an empty selector means all.
    pub namespace_selector: LabelSelector,
    /// Accounts they may use; a trailing `*` stands for any ending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 256)))]
    pub run_as: Vec<String>,
    /// The account where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub default_run_as: Option<String>,
}

/// When nodes may be disturbed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// When it opens, as cron.
    #[schemars(length(min = 1, max = 256))]
    pub schedule: String,
    /// Calendar days added to each opening.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -31, max = 31))]
    pub offset_days: Option<i32>,
    /// How long it is open, such as `8h`.
    #[schemars(length(min = 1, max = 16))]
    pub duration: String,
    /// How long before its end nothing new starts, such as `30m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub cutoff: Option<String>,
    /// IANA or Windows name of the time zone, or `Node`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub time_zone: Option<String>,
}

/// What a Target holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// How many nodes it holds.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000000))]
    pub nodes: i32,
}

/// The Target that holds every node.
pub const ALL: &str = "all";

impl TargetSpec {
    /// Whether it holds a node.
    pub fn holds(&self, node: &str, labels: &Labels) -> bool {
        let named = self.nodes.iter().any(|n| n == node);
        let selected = self.selector.as_ref().is_some_and(|s| s.matches(labels));
        (named || selected) && !self.exclude_nodes.iter().any(|n| n == node)
    }

    /// Whether it lets a namespace with these labels run on its nodes.
    pub fn grants(&self, namespace_labels: &Labels) -> bool {
        self.access
            .iter()
            .any(|a| a.namespace_selector.matches(namespace_labels))
    }
}
