//! `topologySpreadConstraints`: how evenly the Tasks of one Job lie over the values of a label.
//!
//! The values that count are those of nodes that could take the work but for free resources: a zone that is down does not hold up
//! the others. Work with a constraint has a signature of its own, since another Job's Tasks do not count.

use super::{
    bits::Bits,
    crowd::Crowd,
    topology::{Move, Topologies, TopologyId, Value},
    world::NodeId,
};
use api::placement::{SpreadConstraint, Unsatisfiable};
use std::collections::BTreeMap;

/// One constraint, and where the Job's Tasks are.
#[derive(Debug)]
pub(crate) struct Spread {
    pub topology: TopologyId,
    pub max_skew: u32,
    /// Whether work waits where it cannot be met.
    pub required: bool,
    crowd: Crowd,
    /// Which values count.
    domains: Bits,
    /// How many of these values have so many Tasks.
    levels: BTreeMap<u32, u32>,
    stale: bool,
}

impl Spread {
    pub fn new(constraint: &SpreadConstraint, topology: TopologyId) -> Self {
        Self {
            topology,
            max_skew: u32::try_from(constraint.max_skew).unwrap_or(1),
            required: constraint.when_unsatisfiable == Unsatisfiable::DoNotSchedule,
            crowd: Crowd::new(topology),
            domains: Bits::default(),
            levels: BTreeMap::new(),
            stale: true,
        }
    }

    /// Nodes or their labels changed.
    pub fn outdate(&mut self) {
        self.stale = true;
    }

    /// A node has another value of a label now.
    pub fn moved(&mut self, change: Move, topologies: &Topologies) {
        if change.topology == self.topology {
            self.crowd.moved(change, topologies);
            self.stale = true;
        }
    }

    /// Looks anew at which values count, if that may have changed.
    pub fn refresh(&mut self, fits: &Bits, topologies: &Topologies) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.domains = Bits::default();
        self.levels.clear();
        for node in fits.iter() {
            if let Some(value) = topologies.value(self.topology, node)
                && self.domains.set(value, true)
            {
                *self.levels.entry(self.crowd.with(value)).or_default() += 1;
            }
        }
    }

    /// One Task of the Job more or less on a node.
    pub fn count(&mut self, node: NodeId, more: bool, topologies: &Topologies) {
        let value = topologies.value(self.topology, node);
        let was = value.map(|value| self.crowd.with(value));
        self.crowd.count(node, more, topologies);
        let (Some(value), Some(was)) = (value, was) else {
            return;
        };
        if self.stale || !self.domains.has(value) {
            return;
        }
        if let Some(n) = self.levels.get_mut(&was) {
            *n -= 1;
            if *n == 0 {
                self.levels.remove(&was);
            }
        }
        *self.levels.entry(self.crowd.with(value)).or_default() += 1;
    }

    /// How far a value would be above the least if one more Task came to it.
    pub fn skew(&self, value: Value) -> u32 {
        let least = self.levels.keys().next().copied().unwrap_or(0);
        (self.crowd.with(value) + 1).saturating_sub(least)
    }
}
