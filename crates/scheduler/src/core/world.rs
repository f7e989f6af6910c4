//! What the scheduler knows of nodes, Targets and namespaces, as columns over numbered nodes.

use super::{
    amounts::{Amounts, Names, SLOT},
    apart::Terms,
    bits::Bits,
    freed::Freed,
    signature::Signature,
    topology::{Move, Topologies, TopologyId},
};
use api::{
    Node, TargetSpec,
    node::CORDONED_FOR,
    placement::{Labels, ResourceList, Taint},
    wanted::Holder,
};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// Number of a node; never given to another.
pub(crate) type NodeId = usize;

/// A node as the filters see it.
#[derive(Debug, Default)]
pub(crate) struct NodeState {
    pub id: NodeId,
    pub name: Arc<str>,
    /// Whether there is such a Node; Tasks may still name one that is gone.
    pub exists: bool,
    pub labels: Labels,
    pub taints: Vec<Taint>,
    pub ready: bool,
    /// Since when it has not been ready.
    pub unready_since: Option<Timestamp>,
    pub unschedulable: bool,
    /// The uid of the Job in whose name it is cordoned; that Job's next attempt may still go there.
    pub cordoned_for: Option<String>,
    pub features: BTreeSet<String>,
    pub allocatable: Amounts,
    pub used: Amounts,
    /// Tasks in the slot that only emergencies may use are counted in `used` too.
    pub targets: Vec<String>,
    /// Names of Tasks that hold something of it.
    pub tasks: Vec<Arc<str>>,
}

impl NodeState {
    /// Whether work fits beside what is used.
    pub fn has_room(&self, used: &Amounts, work: &Signature) -> bool {
        self.lacks(used, work).is_none()
    }

    /// The first resource of which there is too little beside what is used, and how much is missing.
    pub fn lacks(&self, used: &Amounts, work: &Signature) -> Option<(usize, u64)> {
        work.requests.iter().find_map(|(number, amount)| {
            let all = match number {
                SLOT => self.slots(work.emergency),
                _ => self.allocatable.get(number),
            };
            let missing = used.get(number).saturating_add(amount).saturating_sub(all);
            (amount > 0 && missing > 0).then_some((number, missing))
        })
    }

    /// How many Tasks it may run; an emergency may use one more.
    pub fn slots(&self, emergency: bool) -> u64 {
        self.allocatable.get(SLOT) + u64::from(emergency)
    }
}

/// A Target as the filters see it.
#[derive(Debug)]
pub(crate) struct TargetState {
    pub spec: TargetSpec,
    pub holder: Holder,
}

/// Nodes, Targets and namespaces.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub names: Names,
    pub nodes: Vec<NodeState>,
    by_name: HashMap<Arc<str>, NodeId>,
    pub targets: BTreeMap<String, TargetState>,
    namespaces: HashMap<String, Labels>,
    /// What all nodes have together.
    pub capacity: Amounts,
    /// Nodes with a slot free; the second for emergencies.
    free: [Bits; 2],
    pub topologies: Topologies,
    pub terms: Terms,
    pub freed: Freed,
}

impl World {
    pub fn id(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The number of a node that may not exist.
    pub fn id_or_new(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.id(name) {
            return id;
        }
        let name: Arc<str> = name.into();
        self.by_name.insert(name.clone(), self.nodes.len());
        self.nodes.push(NodeState {
            id: self.nodes.len(),
            name,
            ..Default::default()
        });
        self.nodes.len() - 1
    }

    /// Takes in a node; tells in which columns of labels it moved.
    pub fn apply_node(&mut self, node: &Node) -> (NodeId, Vec<Move>) {
        let id = self.id_or_new(node.name());
        let status = node.status.clone().unwrap_or_default();
        let mut allocatable = self.names.read(&status.allocatable);
        allocatable.add(&self.names.read(&node.spec.extended_resources));
        if !status.allocatable.contains_key(api::node::SLOTS) {
            *allocatable.at(SLOT) = default_slots(&status.allocatable);
        }
        self.capacity.sub(&self.nodes[id].allocatable);
        self.capacity.add(&allocatable);
        let ready = node.is_ready();
        let state = &mut self.nodes[id];
        state.exists = true;
        state.labels = node.metadata.labels.clone().unwrap_or_default();
        state.taints = node.spec.taints.clone();
        state.ready = ready;
        state.unready_since = (!ready)
            .then(|| node.condition("Ready").map(|c| c.last_transition_time.0))
            .flatten();
        state.unschedulable = node.spec.unschedulable;
        state.cordoned_for = node
            .metadata
            .annotations
            .as_ref()
            .and_then(|a| a.get(CORDONED_FOR))
            .cloned();
        state.features = status.features.iter().cloned().collect();
        state.allocatable = allocatable;
        self.join_targets(id);
        self.count_slots(id);
        self.freed.push(id);
        (id, self.regroup(id))
    }

    /// The column of a label.
    pub fn column(&mut self, key: &str) -> TopologyId {
        self.topologies.column(key, &self.nodes)
    }

    fn regroup(&mut self, id: NodeId) -> Vec<Move> {
        let moves = self.topologies.place(&self.nodes[id]);
        for change in &moves {
            self.terms.moved(*change, &self.topologies);
        }
        moves
    }

    pub fn delete_node(&mut self, name: &str) -> Option<(NodeId, Vec<Move>)> {
        let id = self.id(name)?;
        let state = &mut self.nodes[id];
        let used = std::mem::take(&mut state.used);
        let tasks = std::mem::take(&mut state.tasks);
        let allocatable = std::mem::take(&mut state.allocatable);
        *state = NodeState {
            id,
            name: state.name.clone(),
            used,
            tasks,
            ..Default::default()
        };
        self.capacity.sub(&allocatable);
        self.count_slots(id);
        Some((id, self.regroup(id)))
    }

    /// Tells whether anything changed.
    pub fn apply_target(&mut self, name: &str, spec: &TargetSpec) -> bool {
        if self.targets.get(name).is_some_and(|t| t.spec == *spec) {
            return false; // only its status changed
        }
        let state = TargetState {
            spec: spec.clone(),
            holder: Holder::of(spec),
        };
        self.targets.insert(name.to_owned(), state);
        (0..self.nodes.len()).for_each(|id| self.join_targets(id));
        true
    }

    pub fn delete_target(&mut self, name: &str) {
        self.targets.remove(name);
        (0..self.nodes.len()).for_each(|id| self.join_targets(id));
    }

    fn join_targets(&mut self, id: NodeId) {
        let node = &mut self.nodes[id];
        let held = self
            .targets
            .iter()
            .filter(|(_, t)| t.holder.holds(&node.name, &node.labels));
        node.targets = held.map(|(name, _)| name.clone()).collect();
    }

    /// Tells whether anything changed.
    pub fn apply_namespace(&mut self, name: &str, labels: Labels) -> bool {
        let old = self.namespaces.insert(name.to_owned(), labels);
        old.as_ref() != self.namespaces.get(name)
    }

    pub fn delete_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }

    pub fn namespace_labels(&self, name: &str) -> &Labels {
        static NONE: Labels = Labels::new();
        self.namespaces.get(name).unwrap_or(&NONE)
    }

    /// Takes or gives back what a Task uses.
    pub fn use_node(&mut self, id: NodeId, amounts: &Amounts, take: bool) {
        let node = &mut self.nodes[id];
        if take {
            node.used.add(amounts);
        } else {
            node.used.sub(amounts);
            self.freed.push(id);
        }
        self.count_slots(id);
    }

    fn count_slots(&mut self, id: NodeId) {
        let node = &self.nodes[id];
        let used = node.used.get(SLOT);
        for (emergency, free) in self.free.iter_mut().enumerate() {
            free.set(id, node.exists && used < node.slots(emergency == 1));
        }
    }

    /// Nodes with a slot free.
    pub fn free(&self, emergency: bool) -> &Bits {
        &self.free[usize::from(emergency)]
    }
}

/// As many as there are CPUs, at least 2.
fn default_slots(allocatable: &ResourceList) -> u64 {
    let cpus = allocatable.get("cpu").and_then(|q| q.value()).unwrap_or(0);
    cpus.max(2)
}
