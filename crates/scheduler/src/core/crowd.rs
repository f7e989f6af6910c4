//! Tasks counted by the value of a label: which nodes are near one.

use super::{
    bits::Bits,
    topology::{Move, Topologies, TopologyId, Value},
    world::NodeId,
};
use std::collections::HashMap;

/// Some Tasks, by node and by the value their node has in one column.
#[derive(Debug)]
pub(crate) struct Crowd {
    pub topology: TopologyId,
    on: HashMap<NodeId, u32>,
    by_value: Vec<u32>,
    /// Nodes with a value that has any.
    near: Bits,
}

impl Crowd {
    pub fn new(topology: TopologyId) -> Self {
        Self {
            topology,
            on: HashMap::new(),
            by_value: Vec::new(),
            near: Bits::default(),
        }
    }

    /// Nodes near one of these Tasks.
    pub fn near(&self) -> &Bits {
        &self.near
    }

    /// How many have this value.
    pub fn with(&self, value: Value) -> u32 {
        self.by_value.get(value).copied().unwrap_or(0)
    }

    /// One more or less on a node.
    pub fn count(&mut self, node: NodeId, more: bool, topologies: &Topologies) {
        let on = self.on.entry(node).or_default();
        *on = if more { *on + 1 } else { on.saturating_sub(1) };
        if *on == 0 {
            self.on.remove(&node);
        }
        if let Some(value) = topologies.value(self.topology, node) {
            let now = if more {
                self.with(value) + 1
            } else {
                self.with(value).saturating_sub(1)
            };
            self.set(value, now, topologies);
        }
    }

    /// A node has another value now.
    pub fn moved(&mut self, change: Move, topologies: &Topologies) {
        if change.topology != self.topology {
            return;
        }
        let here = self.on.get(&change.node).copied().unwrap_or(0);
        if let Some(from) = change.from {
            self.set(from, self.with(from).saturating_sub(here), topologies);
        }
        if let Some(to) = change.to {
            self.set(to, self.with(to) + here, topologies);
        }
        let near = change.to.is_some_and(|to| self.with(to) > 0);
        self.near.set(change.node, near);
    }

    fn set(&mut self, value: Value, now: u32, topologies: &Topologies) {
        if value >= self.by_value.len() {
            self.by_value.resize(value + 1, 0);
        }
        let was = std::mem::replace(&mut self.by_value[value], now);
        if (was == 0) != (now == 0) {
            for node in topologies.nodes(self.topology, value) {
                self.near.set(*node, now > 0);
            }
        }
    }
}
