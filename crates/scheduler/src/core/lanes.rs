//! Jobs in and out of their lanes: a Job is in one while something of it may start now.

use super::{Core, timers::Timer};
use api::wanted::Gate;
use jiff::{SignedDuration, Timestamp};

impl Core {
    /// Brings a Job to where it belongs after anything about it changed: into its lane if something of it may start, else out.
    pub(super) fn touch(&mut self, uid: &str, now: Timestamp) {
        let Some(state) = self.jobs.get_mut(uid) else {
            return;
        };
        let outlook = state.ledger.outlook(&state.job, now);
        if let Some(deadline) = outlook.deadline.filter(|d| *d > now) {
            self.timers.arm(deadline, Timer::Deadline(state.uid().clone()));
        }
        if matches!(outlook.gate, Gate::Over(_)) {
            state.records.clear();
        }
        let open = matches!(outlook.gate, Gate::Open { room } if room > 0);
        let eligible = open && state.paused.is_none() && state.next_key().is_some();
        self.explanations.watch(state, outlook.counts.pending > 0, now);
        if eligible {
            self.enter_lane(uid);
        } else {
            self.leave_lane(uid);
        }
    }

    pub(super) fn enter_lane(&mut self, uid: &str) {
        let Some(state) = self.jobs.get_mut(uid).filter(|s| !s.in_lane) else {
            return;
        };
        state.in_lane = true;
        let name = state.job.spec.queue_name.clone();
        let (order, lane, signature) = (state.order.clone(), state.lane(), state.signature);
        let tier = self.queues.get(&name).map_or(0, |q| q.tier());
        let rivals = self
            .queues
            .iter()
            .filter(|(n, q)| **n != name && q.tier() == tier && q.has_heads());
        let least = rivals.map(|(_, q)| q.served).fold(f64::INFINITY, f64::min);
        let queue = self.queues.entry(name.clone()).or_default();
        if !queue.has_heads() && least.is_finite() {
            queue.served = queue.served.max(least); // an idle queue saves up nothing
        }
        queue.insert(order.clone(), lane.clone());
        queue.try_anew(&order, &lane);
        if let Some(signature) = self.signatures.get_mut(signature) {
            signature.queues.insert(name);
        }
    }

    pub(super) fn leave_lane(&mut self, uid: &str) {
        let Some(state) = self.jobs.get_mut(uid).filter(|s| s.in_lane) else {
            return;
        };
        state.in_lane = false;
        let lane = state.lane();
        if let Some(queue) = self.queues.get_mut(&state.job.spec.queue_name) {
            queue.remove(&state.order, lane);
        }
    }
}

pub(super) fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}
