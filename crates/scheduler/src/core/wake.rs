//! Waking what was set aside, when something happened that could let it go.

use super::{Core, filters::Clears, queue::LaneId, signature::SignatureId, world::NodeId};
use api::wanted::Key;
use jiff::Timestamp;
use std::sync::Arc;

impl Core {
    pub(super) fn rejudge_node(&mut self, id: NodeId, now: Timestamp) {
        for (signature, state) in self.signatures.iter_mut() {
            if state.judge(id, &self.world) && self.parked.remove(&signature) {
                for queue in &state.queues {
                    if let Some(queue) = self.queues.get_mut(queue) {
                        queue.park(&LaneId::Shared(signature), false);
                    }
                }
            }
        }
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
                self.wake_signature(id);
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
        fitting.into_iter().for_each(|s| self.wake_signature(s));
        self.wake_node(id, now);
    }

    pub(super) fn wake_signature(&mut self, id: SignatureId) {
        self.parked.remove(&id);
        let Some(signature) = self.signatures.get(id) else {
            return;
        };
        for queue in &signature.queues {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.park(&LaneId::Shared(id), false);
            }
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
