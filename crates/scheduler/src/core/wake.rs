//! Waking what was set aside, when something happened that could let it go.

use super::{Core, filters::Clears, queue::LaneId, signature::SignatureId, world::NodeId};
use api::wanted::Key;
use jiff::Timestamp;
use std::{collections::BTreeSet, sync::Arc};

impl Core {
    pub(super) fn rejudge_node(&mut self, id: NodeId, now: Timestamp) {
        let mut woken = Vec::new();
        for (signature, state) in self.signatures.iter_mut() {
            let fits = state.judge(id, &self.world);
            // what counts for a spread may be another set of values now, whether this node fits or not
            if (fits || !state.spread.is_empty()) && self.parked.contains(&signature) {
                woken.push(signature);
            }
        }
        woken.into_iter().for_each(|id| self.wake_signature(id, now));
        self.wake_node(id, now);
    }

    /// A Target or Namespace changed: every answer may have changed.
    pub(super) fn rejudge(&mut self, change: Clears, now: Timestamp) {
        let live: Vec<_> = self.live.iter().cloned().collect();
        for id in 0..self.world.nodes.len() {
            for (_, signature) in self.signatures.iter_mut() {
                signature.judge(id, &self.world);
            }
            live.iter().for_each(|uid| self.join_live(uid, id));
        }
        let parked: Vec<_> = self.parked.iter().copied().collect();
        for id in parked {
            if self.signatures.get(id).is_some_and(|s| s.clears.has(change)) {
                self.wake_signature(id, now);
            }
        }
        for id in 0..self.world.nodes.len() {
            self.wake_node(id, now);
        }
        live.iter().for_each(|uid| self.touch(uid, now));
    }

    /// A Task ended on a node: parked work that fits there is tried again.
    pub(super) fn wake_capacity(&mut self, id: NodeId, now: Timestamp) {
        let fitting: Vec<_> = self
            .parked
            .iter()
            .copied()
            .filter(|s| self.signatures.get(*s).is_some_and(|s| s.fits.has(id)))
            .collect();
        fitting.into_iter().for_each(|s| self.wake_signature(s, now));
        self.wake_node(id, now);
    }

    /// A Task that others are kept apart from, or that is spread, ended: what waits for that may go to other nodes than its own too.
    pub(super) fn wake_near(&mut self, uid: &str, node: NodeId, now: Timestamp) {
        let Some(id) = self.jobs.get(uid).map(|s| s.signature) else {
            return;
        };
        let Some(signature) = self.signatures.get(id).filter(|s| s.is_near()) else {
            return;
        };
        let terms: BTreeSet<_> = signature
            .apart
            .holds
            .iter()
            .chain(&signature.apart.selected)
            .copied()
            .collect();
        let concerned = |other: SignatureId| {
            other == id
                || self.signatures.get(other).is_some_and(|s| {
                    s.apart
                        .holds
                        .iter()
                        .chain(&s.apart.selected)
                        .any(|term| terms.contains(term))
                })
        };
        let woken: Vec<_> = self.parked.iter().copied().filter(|id| concerned(*id)).collect();
        let near: BTreeSet<NodeId> = terms
            .iter()
            .filter_map(|term| self.world.terms.get(*term))
            .filter_map(|term| {
                let column = term.selected.topology;
                let value = self.world.topologies.value(column, node)?;
                Some(self.world.topologies.nodes(column, value))
            })
            .flatten()
            .copied()
            .filter(|near| self.waiters.contains_key(&self.world.nodes[*near].name))
            .collect();
        woken.into_iter().for_each(|id| self.wake_signature(id, now));
        near.into_iter().for_each(|node| self.wake_node(node, now));
    }

    /// Takes up the lanes of a signature, and what of it only nodes would take that it is to leave alone for a while.
    pub(super) fn wake_signature(&mut self, id: SignatureId, now: Timestamp) {
        self.parked.remove(&id);
        if let Some(signature) = self.signatures.get(id) {
            for queue in &signature.queues {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.park(&LaneId::Shared(id), false);
                }
            }
        }
        for uid in self.shunning.remove(&id).unwrap_or_default() {
            if let Some(state) = self.jobs.get_mut(&uid) {
                state.unshun();
            }
            self.touch(&uid, now);
        }
    }

    /// PerNode items that wait for this node are tried again.
    pub(super) fn wake_node(&mut self, id: NodeId, now: Timestamp) {
        let node = self.world.nodes[id].name.clone();
        for uid in self.waiters.remove(&node).unwrap_or_default() {
            if let Some(state) = self.jobs.get_mut(&uid)
                && state.parked.remove(&node)
            {
                state.due.insert(Key::Node(node.clone()));
            }
            self.touch(&uid, now);
        }
    }

    pub(super) fn stop_waiting(&mut self, node: &Arc<str>, uid: &str) {
        if let Some(jobs) = self.waiters.get_mut(node) {
            jobs.remove(uid);
            if jobs.is_empty() {
                self.waiters.remove(node);
            }
        }
    }
}
