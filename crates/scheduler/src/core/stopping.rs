//! Stopping what runs: the work of a queue that is drained, and work that makes room for work that counts more.
//!
//! Preemption takes the cheapest set of Tasks on one node: those that count least, then the fewest,
//! then what holds least. Only work counts that may run again
//! (`onUnknown: Rerun`), and only if its queue's tier, or within the same tier its Job's priority, is lower. The node is kept for the
//! work that asked until it has its place there.

use super::{
    Core, TaskUse,
    amounts::Amounts,
    event::Stopping,
    lanes::later,
    queue::Order,
    signature::{Signature, SignatureId},
    timers::Timer,
    world::NodeId,
};
use api::{
    job::OnUnknown,
    queue::StopPolicy,
    task::{Stop, TaskPhase},
    wanted::{Gate, reason},
};
use jiff::Timestamp;
use std::{cmp::Reverse, sync::Arc};

/// How many nodes are made free for one Job at the same time.
const NODES_AT_ONCE: usize = 32;
/// How many nodes on which room could be made are compared.
const SAMPLE: usize = 64;
/// How long to wait before a stop that could not be written is tried again.
const AGAIN_SECONDS: i64 = 1;

/// Shares of the fleet are compared in millionths, so that equal sets are equal.
const SHARES: f64 = 1e6;

/// What work counts against other work: the tier of its queue, then the priority of its Job.
type Rank = (i32, i32);

/// Tasks that could be stopped on a node, from what counts least, the newest of equals first.
struct Set {
    node: NodeId,
    victims: Vec<Arc<str>>,
    highest: Option<Rank>,
    /// What they hold together.
    holds: Amounts,
}

impl Core {
    /// Stops the Rerun work of a queue that is drained.
    pub(super) fn drain_queue(&mut self, queue: &str) {
        let of_queue = |(_, task): &(&Arc<str>, &TaskUse)| task.queue.as_deref() == Some(queue);
        let mut names: Vec<_> = self
            .tasks
            .iter()
            .filter(of_queue)
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names.iter().for_each(|name| self.drain_task(name));
    }

    /// Stops a Task if its queue is drained and it may run again.
    pub(super) fn drain_task(&mut self, name: &str) {
        let Some(queue) = self.tasks.get(name).and_then(|task| task.queue.clone()) else {
            return;
        };
        let spec = self.queues.get(&queue).and_then(|q| q.spec.as_ref());
        let drained = spec.is_some_and(|s| s.stop_policy == StopPolicy::HoldAndDrain);
        if drained && self.may_stop(name) {
            let message =
                format!("Queue {queue} is drained by its stopPolicy; it runs again when that is lifted");
            self.stop(name, message, None);
        }
    }

    /// Whether a Task runs work that may run again, and is not stopped already.
    fn may_stop(&self, name: &str) -> bool {
        let Some(task) = self.tasks.get(name) else {
            return false;
        };
        let job = self.jobs.get(&task.job);
        let rerun = job.is_some_and(|s| s.job.spec.on_unknown == OnUnknown::Rerun);
        rerun && task.confirmed && task.holds.is_some() && !task.is_stopping()
    }

    fn stop(&mut self, name: &str, message: String, for_job: Option<&Arc<str>>) {
        let for_job = for_job.and_then(|uid| self.jobs.get(uid)).map(|s| s.job.clone());
        let Some(task) = self.tasks.get_mut(name) else {
            return;
        };
        let job = self.jobs.get(&task.job);
        task.stopping = true;
        self.stops.push_back(Stopping {
            task: task.task.clone(),
            stop: Stop {
                reason: reason::PREEMPTED.to_owned(),
                message,
                grace_seconds: job.map_or(0, |s| s.job.spec.termination_grace_period_seconds),
                force: false,
            },
            for_job,
        });
    }

    /// A stop could not be written.
    pub(super) fn not_stopped(&mut self, name: &str, now: Timestamp) {
        if self.tasks.contains_key(name) {
            self.timers
                .arm(later(now, AGAIN_SECONDS), Timer::Stop(name.into()));
        }
    }

    /// Looks again at a Task whose stop could not be written: what waits for its place asks anew.
    pub(super) fn stop_again(&mut self, name: &str, now: Timestamp) {
        let Some(task) = self.tasks.get_mut(name) else {
            return;
        };
        task.stopping = false;
        let node = task.node;
        self.drain_task(name);
        let keeper = self.reserved.get(&node).map(|(order, _)| order.uid.clone());
        if let Some(uid) = keeper {
            self.unreserve(|order| order.uid == uid, now);
        }
    }

    /// Stops the cheapest set of Tasks whose end would let this work in, and keeps their node for it. `only` is the node of a PerNode
    /// item. Tells whether it did anything.
    pub(super) fn preempt(
        &mut self,
        queue: &str,
        id: SignatureId,
        order: &Order,
        only: Option<NodeId>,
        now: Timestamp,
    ) -> bool {
        if !self.queues.get(queue).is_some_and(|q| q.preempts()) {
            return false;
        }
        self.give_up_useless(id, order, now);
        let (Some(work), Some(job)) = (self.signatures.get(id), self.jobs.get(&order.uid)) else {
            return false;
        };
        let kept = self
            .reserved
            .values()
            .filter(|(keeper, _)| keeper.uid == order.uid)
            .count();
        let room = match job.ledger.outlook(&job.job, now).gate {
            Gate::Open { room } => room.min(job.ready_count()),
            Gate::Shut(_) | Gate::Over(_) => 0,
        };
        if kept >= NODES_AT_ONCE.min(usize::try_from(room).unwrap_or(usize::MAX)) {
            return false;
        }
        let rank = (self.tier(queue), order.priority.0);
        let candidates: Box<dyn Iterator<Item = NodeId>> = match only {
            Some(node) => Box::new(std::iter::once(node)),
            None => Box::new(
                super::bits::common(&[&work.fits], &[], work.cursor)
                    .collect::<Vec<_>>()
                    .into_iter(),
            ),
        };
        let sets = candidates
            .filter(|node| work.fits.has(*node))
            .filter_map(|node| self.set(node, work, rank));
        let cost = |set: &Set| {
            let share = set.holds.share(&self.world.capacity) * SHARES;
            (set.highest, set.victims.len(), share as u64)
        };
        let Some(set) = sets.take(SAMPLE).min_by_key(cost) else {
            return false;
        };
        let name = format!("{}/{}", job.job.namespace(), job.job.name());
        for victim in &set.victims {
            let message = format!("makes room for Job {name} of Queue {queue}; it runs again by itself");
            self.stop(victim, message, Some(&order.uid));
        }
        self.reserved.insert(set.node, (order.clone(), queue.to_owned()));
        true
    }

    /// Lets go nodes kept for this work that will not have room for it once what is stopped there has ended.
    fn give_up_useless(&mut self, id: SignatureId, order: &Order, now: Timestamp) {
        let Some(work) = self.signatures.get(id) else {
            return;
        };
        let kept = self
            .reserved
            .iter()
            .filter(|(_, (keeper, _))| keeper.uid == order.uid);
        let useless: Vec<NodeId> = kept
            .map(|(node, _)| *node)
            .filter(|node| !work.fits.has(*node) || !self.fits_without(*node, work, &[]))
            .collect();
        for node in useless {
            self.reserved.remove(&node);
            self.wake_capacity(node, now);
        }
    }

    /// The cheapest set on one node; an empty one if what is stopped there already is enough.
    fn set(&self, node: NodeId, work: &Signature, rank: Rank) -> Option<Set> {
        if self.reserved.contains_key(&node) || work.rejects_beside_room(node, &self.world).is_some() {
            return None;
        }
        let mut lower: Vec<(Rank, Reverse<Option<Timestamp>>, Arc<str>)> = self.world.nodes[node]
            .tasks
            .iter()
            .filter(|name| self.may_stop(name))
            .filter_map(|name| {
                let task = self.tasks.get(name)?;
                let made = task.task.metadata.creation_timestamp.as_ref().map(|t| t.0);
                Some((self.rank(task)?, Reverse(made), name.clone()))
            })
            .filter(|(theirs, ..)| *theirs < rank)
            .collect();
        lower.sort();
        let mut victims: Vec<(Rank, Arc<str>)> = Vec::new();
        let names = |victims: &[(Rank, Arc<str>)]| victims.iter().map(|(_, n)| n.clone()).collect::<Vec<_>>();
        let mut lower = lower.into_iter();
        while !self.fits_without(node, work, &names(&victims)) {
            let (rank, _, name) = lower.next()?;
            victims.push((rank, name));
        }
        // what turns out not to be needed stays, from what counts most
        for at in (0..victims.len()).rev() {
            let mut without = victims.clone();
            without.remove(at);
            if self.fits_without(node, work, &names(&without)) {
                victims = without;
            }
        }
        let mut holds = Amounts::default();
        let tasks = victims.iter().filter_map(|(_, name)| self.tasks.get(name));
        tasks.filter_map(|t| t.holds.as_ref()).for_each(|h| holds.add(h));
        Some(Set {
            node,
            holds,
            highest: victims.iter().map(|(rank, _)| *rank).max(),
            victims: names(&victims),
        })
    }

    /// Whether there would be room if these Tasks, and those that are being stopped, were gone.
    fn fits_without(&self, node: NodeId, work: &Signature, victims: &[Arc<str>]) -> bool {
        let state = &self.world.nodes[node];
        let mut used = state.used.clone();
        for name in &state.tasks {
            let Some(task) = self.tasks.get(name) else {
                continue;
            };
            if let Some(holds) = task
                .holds
                .as_ref()
                .filter(|_| task.is_stopping() || victims.contains(name))
            {
                used.sub(holds);
            }
        }
        state.has_room(&used, work)
    }

    fn rank(&self, task: &TaskUse) -> Option<Rank> {
        let state = self.jobs.get(&task.job)?;
        Some((self.tier(&state.job.spec.queue_name), state.order.priority.0))
    }

    pub(super) fn tier(&self, queue: &str) -> i32 {
        self.queues.get(queue).map_or(0, |q| q.tier())
    }
}

impl TaskUse {
    /// Whether it was told to end, or is about to be.
    fn is_stopping(&self) -> bool {
        self.stopping || self.task.spec.stop.is_some() && self.task.phase() != TaskPhase::Bound
    }
}
