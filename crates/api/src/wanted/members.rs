//! Which nodes a Job chooses: all ways of choosing are intersected, minus `excludeNodes`.

use crate::{
    job::JobSpec,
    placement::{LabelSelector, Labels, NodeSelector},
    target::TargetSpec,
};
use std::{collections::BTreeSet, collections::HashSet, sync::Arc};

/// The ways a Job chooses nodes, ready to be asked about many.
#[derive(Clone, Debug, Default)]
pub struct Chooser {
    target: Option<String>,
    names: HashSet<String>,
    excluded: HashSet<String>,
    selector: Labels,
    required: Option<NodeSelector>,
}

impl Chooser {
    /// Of a Job.
    pub fn of(spec: &JobSpec) -> Self {
        Self {
            target: spec.target_ref.as_ref().map(|t| t.name.clone()),
            names: spec.node_names.iter().cloned().collect(),
            excluded: spec.exclude_nodes.iter().cloned().collect(),
            selector: spec.node_selector.clone(),
            required: spec
                .affinity
                .as_ref()
                .and_then(|a| a.node_affinity.as_ref())
                .and_then(|a| a.required_during_scheduling_ignored_during_execution.clone()),
        }
    }

    /// The Target it names.
    pub fn target(&self) -> Option<&str> {
        self.target.as_deref()
    }

    /// Whether the names it lists, if any, let this node be chosen.
    pub fn names_allow(&self, node: &str) -> bool {
        (self.names.is_empty() || self.names.contains(node)) && !self.excluded.contains(node)
    }

    /// The first label of the selector the node lacks.
    pub fn unmet_label(&self, labels: &Labels) -> Option<(&str, &str)> {
        self.selector
            .iter()
            .find(|(k, v)| labels.get(*k) != Some(v))
            .map(|(k, v)| (k.as_str(), v.as_str()))
    }

    /// Whether the required affinity, if any, is met.
    pub fn affinity_allows(&self, node: &str, labels: &Labels) -> bool {
        self.required.as_ref().is_none_or(|r| r.matches(node, labels))
    }

    /// Whether the Job chooses this node. `held` says whether the Target it names holds the node; who may run there is another
    /// question.
    pub fn chooses(&self, node: &str, labels: &Labels, held: bool) -> bool {
        (self.target.is_none() || held)
            && self.names_allow(node)
            && self.unmet_label(labels).is_none()
            && self.affinity_allows(node, labels)
    }

    /// Names it lists where nothing else narrows the choice: a name that is no node (yet) is then a member too, so that it is
    /// reported and not forgotten.
    fn listed(&self) -> impl Iterator<Item = &str> {
        let alone = self.target.is_none() && self.selector.is_empty() && self.required.is_none();
        self.names
            .iter()
            .filter(move |n| alone && !self.excluded.contains(*n))
            .map(String::as_str)
    }
}

/// The nodes a Target holds, ready to be asked about many.
#[derive(Clone, Debug, Default)]
pub struct Holder {
    selector: Option<LabelSelector>,
    names: HashSet<String>,
    excluded: HashSet<String>,
}

impl Holder {
    /// Of a Target.
    pub fn of(spec: &TargetSpec) -> Self {
        Self {
            selector: spec.selector.clone(),
            names: spec.nodes.iter().cloned().collect(),
            excluded: spec.exclude_nodes.iter().cloned().collect(),
        }
    }

    /// Whether it holds a node; the same answer as [`TargetSpec::holds`].
    pub fn holds(&self, node: &str, labels: &Labels) -> bool {
        (self.names.contains(node) || self.selector.as_ref().is_some_and(|s| s.matches(labels)))
            && !self.excluded.contains(node)
    }
}

/// The nodes a Job chooses among those there are, sorted. `target` is the Target that `targetRef` names; one that does not exist
/// chooses nothing.
pub fn chosen<'a>(
    spec: &JobSpec,
    target: Option<&TargetSpec>,
    nodes: impl IntoIterator<Item = (&'a str, &'a Labels)>,
) -> Vec<Arc<str>> {
    let chooser = Chooser::of(spec);
    let holder = target.map(Holder::of);
    let mut members: BTreeSet<&str> = chooser.listed().collect();
    for (name, labels) in nodes {
        let held = holder.as_ref().is_some_and(|h| h.holds(name, labels));
        if chooser.chooses(name, labels, held) {
            members.insert(name);
        }
    }
    members.into_iter().map(Arc::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::LocalRef;

    fn fleet() -> Vec<(String, Labels)> {
        ["db1", "web1", "web2", "web3"]
            .iter()
            .map(|n| {
                let role = n[..n.len() - 1].to_owned();
                ((*n).to_owned(), Labels::from([("role".into(), role)]))
            })
            .collect()
    }

    fn names(spec: &JobSpec, target: Option<&TargetSpec>) -> Vec<String> {
        let fleet = fleet();
        let nodes = fleet.iter().map(|(n, l)| (n.as_str(), l));
        chosen(spec, target, nodes)
            .iter()
            .map(|n| n.to_string())
            .collect()
    }

    #[test]
    fn ways_of_choosing_are_intersected() {
        let mut spec = JobSpec {
            node_selector: Labels::from([("role".into(), "web".into())]),
            exclude_nodes: vec!["web2".into()],
            ..Default::default()
        };
        assert_eq!(names(&spec, None), ["web1", "web3"]);
        spec.node_names = vec!["web3".into(), "db1".into()];
        assert_eq!(names(&spec, None), ["web3"]);
        spec.target_ref = Some(LocalRef { name: "none".into() });
        assert!(
            names(&spec, None).is_empty(),
            "a Target that is not there chooses nothing"
        );
        let target = TargetSpec {
            nodes: vec!["web3".into()],
            ..Default::default()
        };
        assert_eq!(names(&spec, Some(&target)), ["web3"]);
    }

    #[test]
    fn a_name_that_is_no_node_is_a_member_all_the_same() {
        let spec = JobSpec {
            node_names: vec!["web1".into(), "ghost".into(), "other".into()],
            exclude_nodes: vec!["other".into()],
            ..Default::default()
        };
        assert_eq!(names(&spec, None), ["ghost", "web1"]);
    }
}
