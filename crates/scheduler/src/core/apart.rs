//! Jobs that keep apart: the terms of `jobAntiAffinity`, and where the Tasks are that each term is about.
//!
//! As with Pods a required term holds both ways: work that has it stays away from the Tasks it selects, and what it selects stays
//! away from the Tasks of work that has it. A term lives as long as a signature names it.

use super::{
    bits::Bits,
    crowd::Crowd,
    topology::{Move, Topologies, TopologyId},
    world::NodeId,
};
use api::placement::{AntiAffinityTerm, LabelSelector, Labels};
use std::collections::BTreeMap;

/// Number of a term; never given to another.
pub(crate) type TermId = usize;

/// All terms in use.
#[derive(Debug, Default)]
pub(crate) struct Terms {
    all: BTreeMap<TermId, Term>,
    next: TermId,
}

#[derive(Debug)]
pub(crate) struct Term {
    namespace: String,
    selector: LabelSelector,
    /// Tasks of Jobs that the term selects.
    pub selected: Crowd,
    /// Tasks of Jobs that have the term as a requirement.
    pub holders: Crowd,
}

/// Which terms concern a Job.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Apart {
    /// Its own requirements.
    pub holds: Vec<TermId>,
    /// Its own preferences, with their weights.
    pub prefers: Vec<(i32, TermId)>,
    /// Terms, its own or others', that select it.
    pub selected: Vec<TermId>,
}

impl Apart {
    /// Sets of nodes that are too near.
    pub fn near<'a>(&'a self, terms: &'a Terms) -> impl Iterator<Item = &'a Bits> {
        let selected = self.holds.iter().filter_map(|id| Some(&terms.get(*id)?.selected));
        let holders = self
            .selected
            .iter()
            .filter_map(|id| Some(&terms.get(*id)?.holders));
        selected.chain(holders).map(Crowd::near)
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Terms {
    /// The number of a term, and whether it is new.
    pub fn intern(
        &mut self,
        namespace: &str,
        term: &AntiAffinityTerm,
        topology: TopologyId,
    ) -> (TermId, bool) {
        let same = |known: &Term| {
            known.namespace == namespace
                && known.selected.topology == topology
                && known.selector == term.label_selector
        };
        if let Some((id, _)) = self.all.iter().find(|(_, known)| same(known)) {
            return (*id, false);
        }
        let id = self.next;
        self.next += 1;
        let term = Term {
            namespace: namespace.to_owned(),
            selector: term.label_selector.clone(),
            selected: Crowd::new(topology),
            holders: Crowd::new(topology),
        };
        self.all.insert(id, term);
        (id, true)
    }

    pub fn get(&self, id: TermId) -> Option<&Term> {
        self.all.get(&id)
    }

    /// The terms that select a Job with these labels.
    pub fn selecting(&self, namespace: &str, labels: &Labels) -> Vec<TermId> {
        let selects = |term: &Term| term.namespace == namespace && term.selector.matches(labels);
        let found = self.all.iter().filter(|(_, term)| selects(term));
        found.map(|(id, _)| *id).collect()
    }

    /// Counts a Task of a Job that these terms concern.
    pub fn count(&mut self, apart: &Apart, node: NodeId, more: bool, topologies: &Topologies) {
        for id in &apart.selected {
            if let Some(term) = self.all.get_mut(id) {
                term.selected.count(node, more, topologies);
            }
        }
        for id in &apart.holds {
            if let Some(term) = self.all.get_mut(id) {
                term.holders.count(node, more, topologies);
            }
        }
    }

    /// A node has another value of a label now.
    pub fn moved(&mut self, change: Move, topologies: &Topologies) {
        for term in self.all.values_mut() {
            term.selected.moved(change, topologies);
            term.holders.moved(change, topologies);
        }
    }

    /// Forgets terms that nothing names any longer.
    pub fn keep(&mut self, named: impl Fn(TermId) -> bool) {
        self.all.retain(|id, _| named(*id));
    }
}
