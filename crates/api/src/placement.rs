//! Where work may run: selectors, affinity, taints and tolerations, spread, resources, in Kubernetes' shapes.

use crate::quantity::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Labels by name.
pub type Labels = BTreeMap<String, String>;

/// A query over labels: all of `matchLabels` and all of `matchExpressions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must have exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub match_labels: Labels,
    /// Requirements that must all hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub match_expressions: Vec<Requirement>,
}

/// One requirement on a label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label's name.
    #[schemars(length(max = 317))]
    pub key: String,
    /// How the label is compared with `values`.
    pub operator: Operator,
    /// What it is compared with: some for In and NotIn, none for Exists and DoesNotExist, one integer for Gt and Lt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(max = 256)))]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Operator {
    /// The value is one of `values`.
    In,
    /// The label is absent or its value is none of `values`.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The value is an integer greater than the one in `values` (node affinity only).
    Gt,
    /// The value is an integer less than the one in `values` (node affinity only).
    Lt,
}

/// Which nodes are required or preferred, and which Jobs to keep away from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Affinity {
    /// Requirements and preferences on nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_affinity: Option<NodeAffinity>,
    /// Jobs whose Tasks must not or should not run beside this Job's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_anti_affinity: Option<JobAntiAffinity>,
}

/// Requirements and preferences on nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeAffinity {
    /// A node must match one of these terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_during_scheduling_ignored_during_execution: Option<NodeSelector>,
    /// Nodes matching these are preferred, by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub preferred_during_scheduling_ignored_during_execution: Vec<PreferredTerm>,
}

/// Terms of which one must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelector {
    /// A node matches if it matches one of these; an empty term matches nothing.
    #[schemars(length(min = 1, max = 32))]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// Requirements that must all hold of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeSelectorTerm {
    /// Requirements on the node's labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<Requirement>,
    /// Requirements on the node's fields; only `metadata.name` is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub match_fields: Vec<Requirement>,
}

/// A preference for nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreferredTerm {
    /// How much it counts, 1 to 100.
    #[schemars(range(min = 1, max = 100))]
    pub weight: i32,
    /// Which nodes are preferred.
    pub preference: NodeSelectorTerm,
}

/// Jobs whose Tasks must not or should not run near this Job's, in the shape of a Pod's anti-affinity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobAntiAffinity {
    /// Never near Tasks of these Jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub required_during_scheduling_ignored_during_execution: Vec<AntiAffinityTerm>,
    /// Rather not near Tasks of these Jobs, by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub preferred_during_scheduling_ignored_during_execution: Vec<WeightedAntiAffinityTerm>,
}

/// Jobs by label, and how near is too near.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AntiAffinityTerm {
    /// Which Jobs of the same namespace.
    pub label_selector: LabelSelector,
    /// Nodes with the same value of this label are near; `kubernetes.io/hostname` means the same node.
    #[schemars(length(min = 1, max = 317))]
    pub topology_key: String,
}

/// A preference to keep away from Jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WeightedAntiAffinityTerm {
    /// How much it counts, 1 to 100.
    #[schemars(range(min = 1, max = 100))]
    pub weight: i32,
    /// Which Jobs, and how near is too near.
    pub job_affinity_term: AntiAffinityTerm,
}

/// A mark on a node that keeps work away which does not tolerate it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Name of the taint.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// Value of the taint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub value: String,
    /// What it does to work that does not tolerate it.
    pub effect: Effect,
    /// When it was put on; set for NoExecute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_added: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Effect {
    /// No new Task is placed.
    NoSchedule,
    /// New Tasks are placed elsewhere if there is another place.
    PreferNoSchedule,
    /// No new Task is placed, running ones are stopped.
    NoExecute,
}

/// Taints this work may run beside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// Name of the taint; empty with operator Exists means every taint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 317))]
    pub key: String,
    /// Equal compares the value, Exists takes any.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub operator: TolerationOperator,
    /// Value of the taint, for Equal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub value: String,
    /// Which effect; absent means every one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// For NoExecute: how long a running Task stays after the taint came; absent means for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2147483647))]
    pub toleration_seconds: Option<i64>,
}

/// How a toleration compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum TolerationOperator {
    /// Key and value are the same.
    #[default]
    Equal,
    /// The key is the same, any value.
    Exists,
}

/// Spread of this Job's Tasks over a label of the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// How many more Tasks one value of the label may have than another.
    #[schemars(range(min = 1, max = 100000))]
    pub max_skew: i32,
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub topology_key: String,
    /// What happens where it cannot be met.
    pub when_unsatisfiable: Unsatisfiable,
}

/// What happens where a spread cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Unsatisfiable {
    /// The Task waits.
    DoNotSchedule,
    /// The Task is placed where the skew is least.
    ScheduleAnyway,
}

/// Amounts by resource: `cpu`, `memory`, and extended names such as licences.
pub type ResourceList = BTreeMap<String, Quantity>;

/// What work needs and what it may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// What a node must have free.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub requests: ResourceList,
    /// What the steps may use at most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub limits: ResourceList,
}
