//! Quotas: what a queue may use of its tier.
//!
//! The quotas of a tier's queues add up to what their work may request together. What one does not use another may borrow; work within
//! its own queue's quota goes before work that borrows, so what was lent comes back as work ends.

use super::{
    Core,
    amounts::Amounts,
    queue::{LaneId, QueueState},
};

impl Core {
    /// What a queue's tier lacks for a request, by the number of the resource.
    pub(super) fn lacks_quota(&self, queue: &QueueState, requests: &Amounts) -> Option<(usize, u64)> {
        queue.quota.iter().find_map(|(number, _)| {
            let request = requests.get(*number);
            if request == 0 {
                return None;
            }
            let (mut all, mut used) = (0u64, 0u64);
            for other in self.queues.values().filter(|q| q.tier() == queue.tier()) {
                if let Some((_, quota)) = other.quota.iter().find(|(n, _)| n == number) {
                    all = all.saturating_add(*quota);
                    used = used.saturating_add(other.used.get(*number));
                }
            }
            let lacking = used.saturating_add(request).saturating_sub(all);
            (lacking > 0).then_some((*number, lacking))
        })
    }

    /// Takes up what waits for quota in a tier: some was given back.
    pub(super) fn wake_quota(&mut self, tier: i32) {
        let queues = self.queues.values_mut().filter(|q| q.tier() == tier);
        queues.for_each(QueueState::wake_short);
    }

    /// What a lane's work asks for.
    pub(super) fn requests(&self, lane: &LaneId) -> Option<&Amounts> {
        let signature = match lane {
            LaneId::Shared(id) => *id,
            LaneId::Own(uid) => self.jobs.get(uid)?.signature,
        };
        self.signatures.get(signature).map(|s| &s.requests)
    }
}

impl QueueState {
    /// Whether a request goes beyond the queue's own quota.
    pub fn borrows(&self, requests: &Amounts) -> bool {
        self.quota.iter().any(|(number, quota)| {
            let request = requests.get(*number);
            request > 0 && self.used.get(*number).saturating_add(request) > *quota
        })
    }
}
