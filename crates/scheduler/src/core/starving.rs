//! Work that waits long gets a node kept for it, so that big work does not starve behind small.

use super::{
    Core,
    lanes::later,
    queue::{LaneId, Order},
    timers::Timer,
    world::NodeId,
};
use jiff::Timestamp;

/// After this long parked, work gets a node reserved.
pub(super) const STARVED_SECONDS: i64 = 300;
/// How often that is looked at again while anything is parked.
const STARVED_AGAIN: i64 = 60;

impl Core {
    /// Whether work of this place may go to a node that may be kept free for other work.
    pub(super) fn may_use(&self, node: NodeId, queue: &str, order: &Order) -> bool {
        let Some((keeper, keepers_queue)) = self.reserved.get(&node) else {
            return true;
        };
        let tier = |name: &str| self.queues.get(name).map_or(0, |q| q.tier());
        let higher = tier(queue) > tier(keepers_queue);
        higher || queue == keepers_queue && order <= keeper
    }

    /// Keeps a node free for the first of each queue's work that has waited long. The node drains towards it: it is woken as the
    /// node's Tasks end.
    pub(super) fn reserve(&mut self, now: Timestamp) {
        self.starved_at = None;
        let fits = |node: &NodeId, keeper: &Order| {
            let signature = self
                .jobs
                .get(&keeper.uid)
                .and_then(|job| self.signatures.get(job.signature));
            signature.is_some_and(|s| s.fits.has(*node))
        };
        let useless: Vec<Order> = self
            .reserved
            .iter()
            .filter(|(node, (keeper, _))| !fits(node, keeper))
            .map(|(_, (keeper, _))| keeper.clone())
            .collect();
        self.unreserve(|order| useless.contains(order), now);
        let queues = self.queues.iter().filter(|(_, queue)| queue.held().is_none());
        let keep: Vec<_> = queues
            .filter_map(|(name, queue)| {
                let starved = queue
                    .firsts()
                    .find_map(|(order, lane)| self.starved(order, lane, now))?;
                Some((starved, name.clone()))
            })
            .collect();
        for ((order, node), name) in keep {
            if let Some(node) = node {
                self.reserved.entry(node).or_insert((order, name));
            }
        }
        if !self.parked.is_empty() {
            self.look_for_starved(later(now, STARVED_AGAIN), now);
        }
    }

    /// Work was placed: one of the nodes kept for its Job is kept no longer, the one it went to if it is among them.
    pub(super) fn unreserve_for(&mut self, uid: &str, node: &str, now: Timestamp) {
        if self.reserved.is_empty() {
            return;
        }
        let of_job = |node: &NodeId| {
            self.reserved
                .get(node)
                .is_some_and(|(keeper, _)| *keeper.uid == *uid)
        };
        let here = self.world.id(node).filter(of_job);
        let any = || self.reserved.keys().copied().find(of_job);
        if let Some(node) = here.or_else(any) {
            self.reserved.remove(&node);
            self.wake_capacity(node, now);
        }
    }

    /// Gives up the nodes kept for some work: what waits for them is tried again.
    pub(super) fn unreserve(&mut self, whose: impl Fn(&Order) -> bool, now: Timestamp) {
        let freed: Vec<NodeId> = self
            .reserved
            .iter()
            .filter(|(_, (keeper, _))| whose(keeper))
            .map(|(node, _)| *node)
            .collect();
        for node in freed {
            self.reserved.remove(&node);
            self.wake_capacity(node, now);
        }
    }

    /// Whether this Job has waited long though a node could hold it, and the node to keep for it: none if it has one already.
    pub(super) fn starved(
        &self,
        order: &Order,
        lane: &LaneId,
        now: Timestamp,
    ) -> Option<(Order, Option<NodeId>)> {
        let LaneId::Shared(id) = lane else { return None };
        let state = self.jobs.get(&order.uid)?;
        if later(state.waiting_since, STARVED_SECONDS) > now {
            return None;
        }
        if self.reserved.values().any(|(keeper, _)| keeper.uid == order.uid) {
            return Some((order.clone(), None));
        }
        let work = self.signatures.get(*id)?;
        let could = |node: &NodeId| {
            let state = &self.world.nodes[*node];
            let whole = |(number, amount)| amount <= state.allocatable.get(number);
            work.fits.has(*node) && !self.reserved.contains_key(node) && work.requests.iter().all(whole)
        };
        let used = |node: &NodeId| {
            let state = &self.world.nodes[*node];
            (state.used.share(&state.allocatable) * 10_000.0) as u64
        };
        let emptiest = (0..self.world.nodes.len()).filter(could).min_by_key(used)?;
        Some((order.clone(), Some(emptiest)))
    }

    pub(super) fn look_for_starved(&mut self, at: Timestamp, now: Timestamp) {
        if at > now && self.starved_at.is_none_or(|next| next > at) {
            self.starved_at = Some(at);
            self.timers.arm(at, Timer::Starved);
        }
    }
}
