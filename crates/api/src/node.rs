//! The Node: a host with an agent.

use crate::placement::{ResourceList, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A host with an agent. Its agent writes the status; labels and taints come from the enrolment token or an admin.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "prow.windows",
    version = "v1",
    kind = "Node",
    plural = "nodes",
    shortname = "pn",
    category = "prow",
    status = "NodeStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A host with an agent.",
    printcolumn(
        name = "Ready",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        type_ = "string",
        description = "Whether its agent was heard of"
    ),
    printcolumn(
        name = "Unschedulable",
        json_path = ".spec.unschedulable",
        type_ = "boolean",
        description = "Whether it is cordoned"
    ),
    printcolumn(
        name = "Version",
        json_path = ".status.nodeInfo.agentVersion",
        type_ = "string",
        description = "Version of the agent"
    ),
    printcolumn(
        name = "OS",
        json_path = ".status.nodeInfo.osImage",
        type_ = "string",
        description = "Operating system",
        priority = 1
    ),
    printcolumn(
        name = "Address",
        json_path = ".status.addresses[0].address",
        type_ = "string",
        description = "First address",
        priority = 1
    ),
    printcolumn(
        name = "Boot",
        json_path = ".status.nodeInfo.bootID",
        type_ = "string",
        description = "Id of the boot",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        json_path = ".metadata.creationTimestamp",
        type_ = "date",
        description = "Time since it joined"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// Cordoned: no new Task is placed here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// Keep away work that does not tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub taints: Vec<Taint>,
    /// Licences, devices and the like.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub extended_resources: ResourceList,
}

/// Facts about a host, written by its agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeStatus {
    /// What the host has: cpu, memory, disk, slots.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub capacity: ResourceList,
    /// What Tasks may use of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub allocatable: ResourceList,
    /// Ready, DiskPressure, MemoryPressure, ClockSkewed, PendingReboot, Degraded, RunnersDieWithAgent, FleetDisconnected, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub conditions: Vec<Condition>,
    /// What the host is.
    #[serde(default)]
    pub node_info: NodeInfo,
    /// How the host is reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub addresses: Vec<Address>,
    /// What the agent can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63)))]
    pub features: Vec<String>,
    /// Versions by name: shells, .NET, container engine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    pub versions: BTreeMap<String, String>,
}

/// What a host is. The node controller copies these to `prow.windows/*` labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeInfo {
    /// `windows` or `linux`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub operating_system: String,
    /// `amd64` or `arm64`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub architecture: String,
    /// Name and edition of the system.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub os_image: String,
    /// Kernel or build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub kernel_version: String,
    /// Domain the host is in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub domain: String,
    /// Its full name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 256))]
    pub fqdn: String,
    /// Its part in the domain: standalone, member, controller.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub domain_role: String,
    /// Which boot of the host.
    #[serde(rename = "bootID", default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub boot_id: String,
    /// Version of the agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub agent_version: String,
}

/// An address of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Address {
    /// `Hostname` or `InternalIP`.
    #[serde(rename = "type")]
    #[schemars(length(max = 63))]
    pub type_: String,
    /// The address.
    #[schemars(length(max = 256))]
    pub address: String,
}

/// Annotation of a Node: the uid of the Job for whose disruptive work it is cordoned. One that somebody else cordoned has none.
pub const CORDONED_FOR: &str = "prow.windows/cordoned-for";

/// How many Tasks a node runs at once.
pub const SLOTS: &str = "slots";

metadata_texts!(Node: name);

impl Node {
    /// The status of a condition, if the node has it.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.as_ref()?.conditions.iter().find(|c| c.type_ == type_)
    }

    /// Whether its agent was heard of lately.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|c| c.status == "True")
    }
}
