//! Labels that group nodes, as columns: which value a node has, and which nodes have a value.
//!
//! Only labels that some work names as a `topologyKey` have a column.

use super::world::{NodeId, NodeState};
use std::collections::HashMap;

/// The label that means the node itself, whatever its labels say.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Number of a column.
pub(crate) type TopologyId = usize;

/// Number of a value in its column.
pub(crate) type Value = usize;

/// A node changed its value in a column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub topology: TopologyId,
    pub node: NodeId,
    pub from: Option<Value>,
    pub to: Option<Value>,
}

/// All columns.
#[derive(Debug, Default)]
pub(crate) struct Topologies {
    all: Vec<Topology>,
    by_key: HashMap<String, TopologyId>,
}

#[derive(Debug, Default)]
struct Topology {
    key: String,
    numbers: HashMap<String, Value>,
    of: Vec<Option<Value>>,
    nodes: Vec<Vec<NodeId>>,
}

impl Topologies {
    /// The column of a label, filled when it is first asked for.
    pub fn column(&mut self, key: &str, nodes: &[NodeState]) -> TopologyId {
        if let Some(id) = self.by_key.get(key) {
            return *id;
        }
        let id = self.all.len();
        self.by_key.insert(key.to_owned(), id);
        self.all.push(Topology {
            key: key.to_owned(),
            ..Default::default()
        });
        for node in nodes {
            self.all[id].place(node);
        }
        id
    }

    /// Puts a node where its labels now say; tells in which columns it moved.
    pub fn place(&mut self, node: &NodeState) -> Vec<Move> {
        let places = self.all.iter_mut().enumerate();
        places
            .filter_map(|(topology, column)| {
                let (from, to) = column.place(node);
                (from != to).then_some(Move {
                    topology,
                    node: node.id,
                    from,
                    to,
                })
            })
            .collect()
    }

    /// The label of a column.
    pub fn key(&self, topology: TopologyId) -> &str {
        &self.all[topology].key
    }

    /// The value of a node, if it has one.
    pub fn value(&self, topology: TopologyId, node: NodeId) -> Option<Value> {
        self.all[topology].of.get(node).copied().flatten()
    }

    /// The nodes that have a value.
    pub fn nodes(&self, topology: TopologyId, value: Value) -> &[NodeId] {
        &self.all[topology].nodes[value]
    }
}

impl Topology {
    fn place(&mut self, node: &NodeState) -> (Option<Value>, Option<Value>) {
        let text = if self.key == HOSTNAME {
            Some(&*node.name)
        } else {
            node.labels.get(&self.key).map(String::as_str)
        };
        let to = text.filter(|_| node.exists).map(|text| self.number(text));
        if node.id >= self.of.len() {
            self.of.resize(node.id + 1, None);
        }
        let from = std::mem::replace(&mut self.of[node.id], to);
        if from != to {
            if let Some(from) = from {
                self.nodes[from].retain(|other| *other != node.id);
            }
            if let Some(to) = to {
                self.nodes[to].push(node.id);
            }
        }
        (from, to)
    }

    fn number(&mut self, text: &str) -> Value {
        if let Some(value) = self.numbers.get(text) {
            return *value;
        }
        self.numbers.insert(text.to_owned(), self.nodes.len());
        self.nodes.push(Vec::new());
        self.nodes.len() - 1
    }
}
