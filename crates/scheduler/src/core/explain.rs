//! Why work waits, in words: one entry a reason, looked at again at most every ten seconds.

use super::{
    Core,
    filters::Rejection,
    job::JobState,
    queue::Held,
    signature::{Signature, SignatureId},
    world::World,
};
use api::{
    Job,
    job::Waiting,
    wanted::{Gate, Over},
};
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// How long reasons stand before they are looked at again.
const REFRESH: SignedDuration = SignedDuration::from_secs(10);
/// How long work that could be placed may wait before that is worth a word.
const PATIENCE: SignedDuration = SignedDuration::from_secs(1);
/// How many kinds of rejections one message names.
const NAMED: usize = 6;

/// Which Jobs' reasons are to be looked at, and when.
#[derive(Debug, Default)]
pub(crate) struct Explanations {
    due: BTreeSet<(Timestamp, Arc<str>)>,
    /// What was found out about signatures; many Jobs share one.
    known: HashMap<SignatureId, (Timestamp, String)>,
}

impl Explanations {
    /// A Job has something pending, or no longer.
    pub fn watch(&mut self, state: &mut JobState, pending: bool, now: Timestamp) {
        if pending && state.look_at.is_none() {
            self.look(state, now + PATIENCE);
        } else if !pending && !state.told.is_empty() {
            self.look(state, now);
        } else if !pending {
            self.forget(state);
            state.look_at = None;
        }
    }

    /// A Job cannot be placed as things are: that is said at once, but not again before its time.
    pub fn hurry(&mut self, state: &mut JobState, now: Timestamp) {
        let first = state.told.is_empty() || state.look_at.is_none();
        if first {
            self.look(state, now);
        }
    }

    fn look(&mut self, state: &mut JobState, at: Timestamp) {
        self.forget(state);
        state.look_at = Some(at);
        self.due.insert((at, state.uid().clone()));
    }

    pub fn forget(&mut self, state: &JobState) {
        if let Some(at) = state.look_at {
            self.due.remove(&(at, state.uid().clone()));
        }
    }
}

impl Core {
    /// Jobs whose reasons changed since they were last told, at most `limit`; each comes with what to write.
    pub fn explanations(&mut self, limit: usize, now: Timestamp) -> Vec<(Arc<Job>, Vec<Waiting>)> {
        let mut told = Vec::new();
        while told.len() < limit {
            let Some((at, uid)) = self.explanations.due.first().cloned() else {
                break;
            };
            if at > now {
                break;
            }
            self.explanations.due.pop_first();
            let waiting = self.waiting(&uid, now);
            let Some(state) = self.jobs.get_mut(&uid) else {
                continue;
            };
            state.look_at = None;
            if !waiting.is_empty() {
                self.explanations.look(state, now + REFRESH);
            }
            if state.told != waiting {
                state.told.clone_from(&waiting);
                told.push((state.job.clone(), waiting));
            }
        }
        told
    }

    /// When [`Core::explanations`] has something to look at.
    pub fn explain_at(&self) -> Option<Timestamp> {
        self.explanations.due.first().map(|(at, _)| *at)
    }

    /// A write of reasons failed: they are told again at the next look.
    pub fn untold(&mut self, uid: &str) {
        if let Some(state) = self.jobs.get_mut(uid) {
            state.told = vec![Waiting::default()];
        }
    }

    /// Why the pending indexes of a Job wait; the most important reason first.
    pub fn waiting(&mut self, uid: &str, now: Timestamp) -> Vec<Waiting> {
        let Some(state) = self.jobs.get(uid) else {
            return Vec::new();
        };
        let outlook = state.ledger.outlook(&state.job, now);
        let pending = outlook.counts.pending;
        if pending == 0 {
            return Vec::new();
        }
        if let Some(entry) = self.held_back(state, pending) {
            return vec![entry];
        }
        let mut entries = Vec::new();
        match outlook.gate {
            Gate::Shut(_) | Gate::Over(Over::Cancelled) => return entries,
            Gate::Open { .. } | Gate::Over(_) => {}
        }
        let (signature, uid) = (state.signature, state.uid().clone());
        let parked = self
            .queues
            .get(&state.job.spec.queue_name)
            .is_some_and(|q| q.is_parked(&state.lane()));
        let (ready, in_lane) = (state.ready_count(), state.in_lane);
        if parked && in_lane && ready > 0 {
            let message = self.message_for(signature, now);
            entries.push(entry("NoNodeFits", ready, message));
        }
        let Some(state) = self.jobs.get(&uid) else {
            return entries;
        };
        entries.extend(self.nodes_awaited(state));
        let later = u32::try_from(state.later.len()).unwrap_or(u32::MAX);
        if let Some(first) = state.later.values().min() {
            let message = format!("the next attempt may start at {first:.0}");
            entries.push(entry("Backoff", later, message));
        }
        if !(parked && in_lane) && ready > 0 {
            let message = if matches!(outlook.gate, Gate::Open { room: 0 }) {
                "as many run as parallelism allows".to_owned()
            } else {
                "work before it in the queue goes first".to_owned()
            };
            let reason = if in_lane { "Queued" } else { "Parallelism" };
            entries.push(entry(reason, ready, message));
        }
        entries
    }

    /// What holds back the whole Job, whatever nodes there are.
    fn held_back(&self, state: &JobState, pending: u32) -> Option<Waiting> {
        if let Some((_, message)) = &state.paused {
            return Some(entry("TaskRefused", pending, message.clone()));
        }
        let name = &state.job.spec.queue_name;
        let queue = self.queues.get(name);
        let labels = self.world.namespace_labels(state.job.namespace());
        let held = match queue {
            None => Some(Held::Missing),
            Some(queue) => queue.held().or((!queue.selects(labels)).then_some(Held::Closed)),
        };
        let lane = state.lane();
        if let Some(queue) = queue.filter(|q| held.is_none() && q.is_short(&lane)) {
            let requests = self.signatures.get(state.signature).map(|s| &s.requests)?;
            let (number, lacking) = self.lacks_quota(queue, requests)?;
            let (amount, resource) = (
                self.world.names.show(number, lacking),
                self.world.names.name(number),
            );
            let message = format!("the quota of Queue {name} and its tier lacks {amount} {resource}");
            return Some(entry("QueueQuota", pending, message));
        }
        let (reason, message) = match held? {
            Held::Missing => ("QueueMissing", format!("there is no Queue {name}")),
            Held::Stopped => ("QueueHeld", format!("Queue {name} is held by its stopPolicy")),
            Held::Full(max) => (
                "QueueLimit",
                format!("Queue {name} runs {max} Tasks, its maxRunning"),
            ),
            Held::Closed => {
                let namespace = state.job.namespace();
                (
                    "QueueClosed",
                    format!("Queue {name} does not select namespace {namespace}"),
                )
            }
        };
        Some(entry(reason, pending, message))
    }

    fn message_for(&mut self, id: SignatureId, now: Timestamp) -> String {
        if let Some((at, message)) = self.explanations.known.get(&id)
            && now.duration_since(*at) < REFRESH / 2
        {
            return message.clone();
        }
        let Some(signature) = self.signatures.get(id) else {
            return String::new();
        };
        let message = describe(signature, &self.world);
        self.explanations.known.insert(id, (now, message.clone()));
        message
    }

    /// PerNode items whose nodes will not do, by reason.
    fn nodes_awaited(&self, state: &JobState) -> Vec<Waiting> {
        let Some(signature) = self.signatures.get(state.signature) else {
            return Vec::new();
        };
        let mut unavailable = Tally::default();
        let mut other = Tally::default();
        for node in &state.parked {
            let rejection = match self.world.id(node) {
                Some(id) => signature.explain(id, &self.world),
                None => Some(Rejection::NoSuchNode),
            };
            match rejection.unwrap_or(Rejection::Kept) {
                rejection if rejection.is_unavailable() => unavailable.count(rejection),
                rejection => other.count(rejection),
            }
        }
        let desired = state.ledger.desired();
        [("NodeUnavailable", unavailable), ("NoNodeFits", other)]
            .into_iter()
            .filter(|(_, tally)| tally.total > 0)
            .map(|(reason, tally)| {
                let message = format!("{}/{desired} nodes: {}", tally.total, tally.tell(&self.world));
                entry(reason, tally.total, message)
            })
            .collect()
    }
}

/// `0/120 nodes: 80 do not match role=web, 30 tainted maintenance, 10 need 2Gi more memory`.
fn describe(signature: &Signature, world: &World) -> String {
    let mut tally = Tally::default();
    let mut nodes = 0;
    for (id, _) in world.nodes.iter().enumerate().filter(|(_, n)| n.exists) {
        nodes += 1;
        tally.count(signature.explain(id, world).unwrap_or(Rejection::Kept));
    }
    if nodes == 0 {
        return "there is no node".into();
    }
    format!("0/{nodes} nodes: {}", tally.tell(world))
}

/// Rejections by kind; of missing amounts the least counts.
#[derive(Default)]
struct Tally<'a> {
    by_kind: BTreeMap<Rejection<'a>, (u32, Rejection<'a>)>,
    total: u32,
}

impl<'a> Tally<'a> {
    fn count(&mut self, rejection: Rejection<'a>) {
        let kind = match rejection {
            Rejection::Resource(number, _) => Rejection::Resource(number, 0),
            other => other,
        };
        let (n, least) = self.by_kind.entry(kind).or_insert((0, rejection));
        *n += 1;
        *least = (*least).min(rejection);
        self.total += 1;
    }

    fn tell(&self, world: &World) -> String {
        let mut kinds: Vec<_> = self.by_kind.values().collect();
        kinds.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut parts: Vec<_> = kinds
            .iter()
            .take(NAMED)
            .map(|(n, rejection)| rejection.tell(*n as usize, &world.names))
            .collect();
        let rest: u32 = kinds.iter().skip(NAMED).map(|(n, _)| n).sum();
        if rest > 0 {
            parts.push(format!("{rest} for other reasons"));
        }
        parts.join(", ")
    }
}

fn entry(reason: &str, count: u32, message: String) -> Waiting {
    Waiting {
        reason: reason.to_owned(),
        count: i32::try_from(count).unwrap_or(i32::MAX),
        message: message.chars().take(1024).collect(),
    }
}
