//! Deciding: which work goes next, and to which node.

use super::{
    Core, Decision, Placement, bits,
    filters::{RESOURCES, Rejection, SPREAD},
    job::Record,
    lanes::later,
    queue::{LaneId, Order, QueueState},
    scores::{self, Candidate},
    signature::SignatureId,
    starving::STARVED_SECONDS,
    timers::Timer,
    world::NodeId,
};
use api::{
    Task,
    job::OnUnavailable,
    task::JobRef,
    wanted::{Gate, Key, reason},
};
use jiff::Timestamp;
use std::{cmp::Reverse, sync::Arc};

/// Nodes that fit are compared up to this many; beyond it the best of them is good enough.
const SAMPLE: usize = 32;

/// The node of records of work that was never placed. No agent claims a Task that is made with a stop.
const NOWHERE: &str = "unplaced";

/// What a search for a node found.
enum Found {
    Node(NodeId),
    /// Only nodes that rejected this index lately; until when the first of them is left alone.
    Avoided(Timestamp),
    Nothing,
}

impl Core {
    /// Makes a decision, or none until an event or [`Core::wake_at`].
    pub fn next(&mut self, now: Timestamp) -> Option<Decision> {
        self.fire(now);
        loop {
            if let Some(stopping) = self.stops.pop_front() {
                return Some(Decision::Stop(stopping));
            }
            if let Some(record) = self.next_record(now) {
                return Some(Decision::Place(record));
            }
            let (queue, order, lane) = self.choose()?;
            if self.park_short(&queue, &lane) {
                continue;
            }
            let placed = match lane {
                LaneId::Shared(signature) => self.try_shared(&queue, signature, &order, now),
                LaneId::Own(uid) => self.try_own(&queue, &uid, now),
            };
            if let Some(placement) = placed {
                return Some(Decision::Place(placement));
            }
        }
    }

    /// Parks a lane whose tier has no quota left for it.
    fn park_short(&mut self, name: &str, lane: &LaneId) -> bool {
        let short = match (self.queues.get(name), self.requests(lane)) {
            (Some(queue), Some(requests)) => self.lacks_quota(queue, requests).is_some(),
            _ => false,
        };
        if let Some(queue) = self.queues.get_mut(name).filter(|_| short) {
            queue.park_short(lane);
        }
        short
    }

    /// When [`Core::next`] must be asked again though nothing happened.
    pub fn wake_at(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    fn next_record(&mut self, now: Timestamp) -> Option<Placement> {
        let recording: Vec<Arc<str>> = self.recording.iter().cloned().collect();
        for uid in recording {
            let Some(state) = self.jobs.get_mut(&uid) else {
                self.recording.remove(&uid);
                continue;
            };
            if state.paused.is_some() {
                continue;
            }
            let Some((key, record)) = state.records.pop_first() else {
                self.recording.remove(&uid);
                continue;
            };
            let over = matches!(state.ledger.outlook(&state.job, now).gate, Gate::Over(_));
            let free = state.next_key().as_ref() == Some(&key)
                || state.due.contains(&key)
                || self.is_parked(&uid, &key);
            if !over && free {
                let node = match &key {
                    Key::Index(_) => NOWHERE.into(),
                    Key::Node(node) => node.clone(),
                };
                return self.place(&uid, key, node, Some(record), now);
            }
        }
        None
    }

    fn is_parked(&self, uid: &str, key: &Key) -> bool {
        let state = self.jobs.get(uid);
        matches!(key, Key::Node(node) if state.is_some_and(|s| s.parked.contains(node)))
    }

    /// The queue that goes next, and its head.
    fn choose(&self) -> Option<(String, Order, LaneId)> {
        let open = self.queues.iter().filter(|(_, queue)| queue.held().is_none());
        let heads = open.filter_map(|(name, queue)| Some((name, queue, queue.head()?)));
        let first = heads.min_by(|(_, a, head_a), (_, b, head_b)| {
            let class = |queue: &QueueState, head: &(Order, LaneId)| {
                let requests = self.requests(&head.1).filter(|_| !queue.quota.is_empty());
                (Reverse(queue.tier()), requests.is_some_and(|r| queue.borrows(r)))
            };
            let classes = class(a, head_a).cmp(&class(b, head_b));
            classes.then(a.served.total_cmp(&b.served))
        });
        first.map(|(name, _, (order, lane))| (name.clone(), order.clone(), lane.clone()))
    }

    fn try_shared(
        &mut self,
        queue: &str,
        id: SignatureId,
        order: &Order,
        now: Timestamp,
    ) -> Option<Placement> {
        let state = self.jobs.get(&order.uid)?;
        let labels = self.world.namespace_labels(state.job.namespace());
        let selected = self.queues.get(queue).is_some_and(|q| q.selects(labels));
        let key = state.next_key()?; // a Job without any is in no lane
        let starved = later(state.waiting_since, STARVED_SECONDS);
        let found = if selected {
            self.search(queue, id, order, &key, now)
        } else {
            Found::Nothing
        };
        match found {
            Found::Node(node) => {
                let node = self.world.nodes[node].name.clone();
                self.place(&order.uid, key, node, None, now)
            }
            Found::Avoided(until) => {
                let state = self.jobs.get_mut(&order.uid)?;
                state.shun(key.clone(), until);
                self.shunning.entry(id).or_default().insert(order.uid.clone());
                self.parked.insert(id);
                self.timers.arm(until, Timer::Due(order.uid.clone(), key));
                self.touch(&order.uid, now);
                None
            }
            Found::Nothing if selected && self.preempt(queue, id, order, None, now) => None,
            Found::Nothing => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.park(&LaneId::Shared(id), true);
                }
                self.parked.insert(id);
                self.look_for_starved(starved, now);
                let hopeless = !selected || self.signatures.get(id).is_some_and(|s| s.fits.is_empty());
                if let Some(state) = self.jobs.get_mut(&order.uid).filter(|_| hopeless) {
                    self.explanations.hurry(state, now);
                }
                None
            }
        }
    }

    /// The best of the nodes that fit, or of enough of them.
    fn search(&mut self, queue: &str, id: SignatureId, order: &Order, key: &Key, now: Timestamp) -> Found {
        if let Some(work) = self.signatures.get_mut(id) {
            work.refresh(&self.world);
        }
        let (Some(work), Some(job)) = (self.signatures.get(id), self.jobs.get(&order.uid)) else {
            return Found::Nothing;
        };
        let placement = self
            .queues
            .get(queue)
            .and_then(|q| q.spec.as_ref())
            .map(|s| s.placement);
        let mut avoided = None;
        let mut best = None;
        let mut seen = 0;
        let mut full = Vec::new();
        let with = [&work.fits, self.world.free(work.emergency)];
        let without: Vec<_> = std::iter::once(&work.full)
            .chain(work.apart.near(&self.world.terms))
            .collect();
        for node in bits::common(&with, &without, work.cursor) {
            let state = &self.world.nodes[node];
            if RESOURCES.rejects(work, state, &self.world).is_some() {
                full.push(node);
                continue;
            }
            let skewed = SPREAD.rejects(work, state, &self.world).is_some();
            if skewed || !self.may_use(node, queue, order) {
                continue;
            }
            let until = job
                .avoided(key)
                .iter()
                .find(|(name, until)| *name == state.name && *until > now);
            if let Some((_, until)) = until {
                avoided = Some(avoided.map_or(*until, |a: Timestamp| a.min(*until)));
                continue;
            }
            let score = scores::of(&Candidate {
                world: &self.world,
                node: state,
                work,
                job,
                placement: placement.unwrap_or_default(),
            });
            if best.is_none_or(|(top, _)| score > top) {
                best = Some((score, node));
            }
            seen += 1;
            if seen == SAMPLE {
                break;
            }
        }
        if let Some(work) = self.signatures.get_mut(id) {
            full.into_iter().for_each(|node| {
                work.full.set(node, true);
            });
            if let Some((_, node)) = best {
                work.cursor = node + 1;
            }
        }
        match (best, avoided) {
            (Some((_, node)), _) => Found::Node(node),
            (None, Some(until)) => Found::Avoided(until),
            (None, None) => Found::Nothing,
        }
    }

    /// A PerNode Job: the first item whose node will do. The others wait for their nodes.
    fn try_own(&mut self, queue: &str, uid: &Arc<str>, now: Timestamp) -> Option<Placement> {
        let state = self.jobs.get(uid)?;
        let labels = self.world.namespace_labels(state.job.namespace());
        let selected = self.queues.get(queue).is_some_and(|q| q.selects(labels));
        if !selected {
            if let Some(queue) = self.queues.get_mut(queue) {
                queue.park(&LaneId::Own(uid.clone()), true);
            }
            let state = self.jobs.get_mut(uid)?;
            self.explanations.hurry(state, now);
            return None;
        }
        let Some(Key::Node(node)) = state.next_key() else {
            return None;
        };
        let order = state.order.clone();
        let signature = self.signatures.get(state.signature)?;
        let rejection = match self.world.id(&node) {
            None => Some(Rejection::NoSuchNode),
            Some(id) => signature
                .explain(id, &self.world)
                .or((!self.may_use(id, queue, &order)).then_some(Rejection::Kept)),
        };
        let Some(rejection) = rejection else {
            let key = Key::Node(node.clone());
            return self.place(uid, key, node, None, now);
        };
        let unavailable = rejection.is_unavailable();
        let full = matches!(rejection, Rejection::NoSlot | Rejection::Resource(..));
        let gone =
            rejection == Rejection::NoSuchNode && !state.job.spec.node_names.iter().any(|n| **n == *node);
        let hopeless = !full && rejection != Rejection::Kept;
        let why = rejection.tell(1, &self.world.names);
        let (id, at) = (state.signature, self.world.id(&node));
        if full && at.is_some() {
            self.preempt(queue, id, &order, at, now);
        }
        self.set_aside(uid, &node, unavailable, gone, why, now);
        let state = self.jobs.get_mut(uid)?;
        if hopeless {
            self.explanations.hurry(state, now);
        }
        None
    }

    /// A PerNode item whose node will not do: it waits, or ends as `onUnavailable` says.
    fn set_aside(
        &mut self,
        uid: &Arc<str>,
        node: &Arc<str>,
        unavailable: bool,
        gone: bool,
        why: String,
        now: Timestamp,
    ) {
        let Some(state) = self.jobs.get_mut(uid) else {
            return;
        };
        state.due.remove(&Key::Node(node.clone()));
        state.parked.insert(node.clone());
        let policy = state.job.spec.on_unavailable;
        let record = match (gone, unavailable && policy != OnUnavailable::Wait) {
            (true, _) => Some((
                reason::NODE_GONE,
                format!("node {node} was removed before its turn"),
            )),
            (_, true) => Some((
                reason::NODE_UNAVAILABLE,
                format!("node {node}: {}", why.trim_start_matches("1 ")),
            )),
            _ => None,
        };
        if let Some((reason, message)) = record {
            state
                .records
                .insert(Key::Node(node.clone()), Record { reason, message });
            self.recording.insert(uid.clone());
        } else if unavailable {
            let unready = self
                .world
                .id(node)
                .and_then(|id| self.world.nodes[id].unready_since);
            let since = unready.map_or(now, |t| t.max(state.order.created).min(now));
            let since = *state.unavailable_since.entry(node.clone()).or_insert(since);
            if let Some(seconds) = state.job.spec.starting_deadline() {
                let timer = Timer::Unavailable(uid.clone(), node.clone());
                self.timers.arm(later(since, seconds), timer);
            }
        } else {
            state.unavailable_since.remove(node);
        }
        self.waiters.entry(node.clone()).or_default().insert(uid.clone());
        self.touch(uid, now);
    }

    /// Decides: from here on the work counts as placed.
    fn place(
        &mut self,
        uid: &Arc<str>,
        key: Key,
        node: Arc<str>,
        record: Option<Record>,
        now: Timestamp,
    ) -> Option<Placement> {
        let node_name = node.clone();
        let state = self.jobs.get_mut(uid)?;
        state.waiting_since = now;
        state.unavailable_since.remove(&node);
        let placement = Placement {
            index: state.position(&key),
            count: state.ledger.desired(),
            attempt: state.next_attempt(&key),
            job: state.job.clone(),
            key,
            node,
            record,
        };
        if placement.record.is_none() {
            let queue = self.queues.get_mut(&state.job.spec.queue_name);
            let requests = self.signatures.get(state.signature).map(|s| &s.requests);
            if let (Some(queue), Some(requests)) = (queue, requests) {
                let weight = queue.spec.as_ref().map_or(1, |s| s.weight.max(1));
                queue.served += requests.share(&self.world.capacity) / f64::from(weight);
            }
            self.unreserve_for(uid, &node_name, now);
        }
        self.task(Arc::new(provisional(&placement)), false, now);
        Some(placement)
    }
}

/// A Task as the ledger needs it, until the watch shows the real one.
fn provisional(placement: &Placement) -> Task {
    let mut task = Task::default();
    task.metadata.namespace = placement.job.metadata.namespace.clone();
    task.metadata.name = Some(placement.name());
    task.spec.job_ref = JobRef {
        name: placement.job.name().to_owned(),
        uid: placement.job.uid().to_owned(),
        work_hash: String::new(),
    };
    task.spec.index = i32::try_from(placement.index).unwrap_or(i32::MAX);
    task.spec.attempt = i32::try_from(placement.attempt).unwrap_or(i32::MAX);
    task.spec.node_name = placement.node.to_string();
    task.spec.stop = placement.record.as_ref().map(|r| r.stop());
    task
}
