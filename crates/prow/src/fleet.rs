//! Where a Job may run: which nodes it chooses, which of them are not available now, and why, judged by what the API shows.
//!
//! The scheduler decides; this explains and foretells, for `prow plan`, `prow why` and `prow run`.

use crate::session::Session;
use anyhow::{Context, Result};
use api::{
    JobSpec, Node, Target,
    placement::{Labels, ResourceList},
    selector::repelling,
    wanted::Chooser,
};
use serde::de::DeserializeOwned;

/// Nodes and Targets, and the namespace the Job is in.
pub struct Fleet {
    /// All nodes, by name.
    pub nodes: Vec<Node>,
    targets: Vec<Target>,
    namespace: String,
    namespace_labels: Labels,
}

/// What a node is to a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The Job does not choose it.
    NotChosen(String),
    /// The Job may not run there.
    Denied(String),
    /// Chosen, but not now.
    Unavailable(String),
    /// Chosen and available.
    Available,
}

impl Standing {
    /// In a word, and why.
    pub fn describe(&self) -> (&'static str, &str) {
        match self {
            Self::NotChosen(why) => ("not chosen", why),
            Self::Denied(why) => ("denied", why),
            Self::Unavailable(why) => ("unavailable", why),
            Self::Available => ("available", ""),
        }
    }
}

impl Fleet {
    /// Reads nodes, Targets and the namespace's labels.
    pub async fn load(session: &Session, namespace: &str) -> Result<Self> {
        let namespace_path = format!("/api/v1/namespaces/{namespace}");
        let (mut nodes, targets, object) = tokio::try_join!(
            list::<Node>(session, "/apis/prow.windows/v1/nodes"),
            list::<Target>(session, "/apis/prow.windows/v1/targets"),
            session.find(&namespace_path),
        )?;
        nodes.sort_by(|a, b| a.name().cmp(b.name()));
        let object = object.with_context(|| format!("namespace {namespace} does not exist"))?;
        let namespace_labels =
            serde_json::from_value::<Option<Labels>>(object["metadata"]["labels"].clone())?;
        Ok(Self {
            nodes,
            targets,
            namespace: namespace.to_owned(),
            namespace_labels: namespace_labels.unwrap_or_default(),
        })
    }

    /// The Target of this name.
    pub fn target(&self, name: &str) -> Option<&Target> {
        self.targets
            .iter()
            .find(|target| target.metadata.name.as_deref() == Some(name))
    }

    /// What each node is to the Job.
    pub fn judge<'a>(&'a self, spec: &JobSpec) -> Vec<(&'a Node, Standing)> {
        let chooser = Chooser::of(spec);
        self.nodes
            .iter()
            .map(|node| (node, self.standing(spec, &chooser, node)))
            .collect()
    }

    /// Names the Job lists that are no nodes.
    pub fn strangers<'a>(&self, spec: &'a JobSpec) -> Vec<&'a str> {
        spec.node_names
            .iter()
            .map(String::as_str)
            .filter(|name| !self.nodes.iter().any(|node| node.name() == *name))
            .collect()
    }

    fn standing(&self, spec: &JobSpec, chooser: &Chooser, node: &Node) -> Standing {
        let none = Labels::new();
        let (name, labels) = (node.name(), node.metadata.labels.as_ref().unwrap_or(&none));
        if spec.exclude_nodes.iter().any(|n| n == name) {
            return Standing::NotChosen("in excludeNodes".into());
        }
        if !chooser.names_allow(name) {
            return Standing::NotChosen("not in nodeNames".into());
        }
        if let Some(target) = chooser.target() {
            match self.target(target) {
                None => return Standing::NotChosen(format!("Target {target} does not exist")),
                Some(t) if !t.spec.holds(name, labels) => {
                    return Standing::NotChosen(format!("not in Target {target}"));
                }
                Some(_) => {}
            }
        }
        if let Some((key, wanted)) = chooser.unmet_label(labels) {
            let has = labels
                .get(key)
                .map_or("has no such label".into(), |value| format!("has {value:?}"));
            return Standing::NotChosen(format!("nodeSelector wants {key}={wanted}, it {has}"));
        }
        if !chooser.affinity_allows(name, labels) {
            return Standing::NotChosen("does not meet the required nodeAffinity".into());
        }
        if !self
            .targets
            .iter()
            .any(|t| t.spec.holds(name, labels) && t.spec.grants(&self.namespace_labels))
        {
            return Standing::Denied(format!(
                "no Target that holds it grants access to namespace {}",
                self.namespace
            ));
        }
        match unavailable(spec, node) {
            Some(why) => Standing::Unavailable(why),
            None => Standing::Available,
        }
    }
}

/// Why a chosen node cannot take work now.
fn unavailable(spec: &JobSpec, node: &Node) -> Option<String> {
    if !node.is_ready() {
        let condition = node.condition("Ready");
        let why = condition
            .map(|c| c.message.as_str())
            .filter(|m| !m.is_empty())
            .unwrap_or("its agent was not heard of");
        return Some(format!("not ready: {why}"));
    }
    if node.spec.unschedulable {
        return Some(format!("cordoned (`prow uncordon {}` ends that)", node.name()));
    }
    if let Some(taint) = repelling(&node.spec.taints, &spec.tolerations) {
        let value = if taint.value.is_empty() {
            String::new()
        } else {
            format!("={}", taint.value)
        };
        return Some(format!(
            "taint {}{value}:{:?} is not tolerated",
            taint.key, taint.effect
        ));
    }
    let none = ResourceList::new();
    let has = node.status.as_ref().map_or(&none, |status| &status.allocatable);
    let requests = spec
        .resources
        .as_ref()
        .map_or(&none, |resources| &resources.requests);
    requests.iter().find_map(|(name, wanted)| {
        let all = has.get(name).or_else(|| node.spec.extended_resources.get(name));
        match all {
            None => Some(format!("has no {name}, {wanted} are asked for")),
            Some(all) if all.milli() < wanted.milli() => {
                Some(format!("has {all} {name}, {wanted} are asked for"))
            }
            Some(_) => None,
        }
    })
}

/// All objects of a collection.
pub async fn list<T: DeserializeOwned>(session: &Session, path: &str) -> Result<Vec<T>> {
    let mut list = session.get(path).await?;
    serde_json::from_value(list["items"].take())
        .with_context(|| format!("the server's answer to {path} cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn fleet(nodes: Value, targets: Value) -> Fleet {
        Fleet {
            nodes: serde_json::from_value(nodes).unwrap(),
            targets: serde_json::from_value(targets).unwrap(),
            namespace: "ops".into(),
            namespace_labels: Labels::from([("team".into(), "ops".into())]),
        }
    }

    fn node(name: &str, spec: Value) -> Value {
        json!({"apiVersion": "prow.windows/v1", "kind": "Node", "metadata": {"name": name, "labels": {"role": "web"}}, "spec": spec,
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
    }

    fn target(name: &str, spec: Value) -> Value {
        json!({"apiVersion": "prow.windows/v1", "kind": "Target", "metadata": {"name": name}, "spec": spec})
    }

    fn standings(fleet: &Fleet, spec: Value) -> Vec<String> {
        let spec: JobSpec = serde_json::from_value(spec).unwrap();
        let judged = fleet.judge(&spec);
        judged
            .iter()
            .map(|(_, standing)| format!("{}: {}", standing.describe().0, standing.describe().1))
            .collect()
    }

    #[test]
    fn every_node_has_one_reason() {
        let open = json!([
            target(
                "all",
                json!({"selector": {}, "access": [{"namespaceSelector": {}}]})
            ),
            target("db", json!({"nodes": ["db1"]}))
        ]);
        let nodes = json!([
            node("a", json!({})),
            node("b", json!({"unschedulable": true})),
            node("c", json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]})),
        ]);
        let fleet = fleet(nodes, open);
        assert_eq!(
            standings(&fleet, json!({"nodeSelector": {"role": "web"}, "steps": []})),
            [
                "available: ",
                "unavailable: cordoned (`prow uncordon b` ends that)",
                "unavailable: taint gpu:NoSchedule is not tolerated"
            ]
        );
        assert!(standings(&fleet, json!({"targetRef": {"name": "db"}}))[0].contains("not in Target db"));
        assert!(standings(&fleet, json!({"targetRef": {"name": "gone"}}))[0].contains("does not exist"));
        assert!(
            standings(&fleet, json!({"nodeSelector": {"role": "db"}}))[0].contains("role=db, it has \"web\"")
        );
        assert!(standings(&fleet, json!({"excludeNodes": ["a"]}))[0].contains("excludeNodes"));
        assert!(
            standings(&fleet, json!({"resources": {"requests": {"licence": "1"}}}))[0]
                .contains("has no licence")
        );
    }

    #[test]
    fn a_namespace_without_access_is_denied_however_nodes_were_chosen() {
        let closed = json!([target(
            "all",
            json!({"selector": {}, "access": [{"namespaceSelector": {"matchLabels": {"team": "web"}}}]})
        )]);
        let fleet = fleet(json!([node("a", json!({}))]), closed);
        assert!(standings(&fleet, json!({"nodeNames": ["a"]}))[0].starts_with("denied: "));
    }

    #[test]
    fn listed_names_that_are_no_nodes_are_found() {
        let fleet = fleet(json!([node("a", json!({}))]), json!([]));
        let spec: JobSpec = serde_json::from_value(json!({"nodeNames": ["a", "ghost"]})).unwrap();
        assert_eq!(fleet.strangers(&spec), ["ghost"]);
    }
}
