//! Taking in events: what changes, what it wakes.

use super::{
    Core, Event, TaskUse,
    amounts::{Amounts, SLOT},
    filters::Clears,
    job::{self, JobState, Record},
    queue::LaneId,
    signature::SignatureId,
    timers::Timer,
    world::NodeId,
};
use api::{
    Job, Node, QueueSpec, Task,
    task::TaskPhase,
    wanted::{Gate, Key, reason},
};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

impl Core {
    /// Takes in an event.
    pub fn apply(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Job(job) => self.job(job, now),
            Event::JobGone(uid) => self.forget_job(&uid, now),
            Event::Members { job, nodes } => {
                if let Some(state) = self.jobs.get_mut(job.as_str()) {
                    state.set_members(nodes);
                    self.touch(&job, now);
                }
            }
            Event::Task(task) => self.task(task, true, now),
            Event::TaskGone(task) => self.task_gone(&task, now),
            Event::Node(node) => self.node(&node, now),
            Event::NodeGone(name) => {
                if let Some(id) = self.world.delete_node(&name) {
                    self.leave_live(&name, now);
                    self.rejudge_node(id, now);
                }
            }
            Event::Queue(queue) => {
                let name = queue.metadata.name.clone().unwrap_or_default();
                self.queue(name, Some(queue.spec.clone()));
            }
            Event::QueueGone(name) => self.queue(name, None),
            Event::Target(target) => {
                let name = target.metadata.name.clone().unwrap_or_default();
                if self.world.apply_target(&name, &target.spec) {
                    self.rejudge(Clears::TARGET, now);
                }
            }
            Event::TargetGone(name) => {
                self.world.delete_target(&name);
                self.rejudge(Clears::TARGET, now);
            }
            Event::Namespace(name, labels) => {
                if self.world.apply_namespace(&name, labels) {
                    self.rejudge(Clears::NAMESPACE, now);
                    self.queues.values_mut().for_each(|q| q.wake_all());
                }
            }
            Event::NamespaceGone(name) => {
                self.world.delete_namespace(&name);
                self.rejudge(Clears::NAMESPACE, now);
            }
            Event::Refused {
                placement,
                message,
                wait,
            } => {
                let uid = placement.job.uid().to_owned();
                self.unassume(&placement, now);
                if let Some(state) = self.jobs.get_mut(uid.as_str()) {
                    let until = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
                    state.paused = Some((until, message));
                    if let Some(record) = placement.record {
                        state.records.insert(placement.key, record);
                        self.recording.insert(state.uid().clone());
                    }
                    self.timers.arm(until, Timer::Pause(state.uid().clone()));
                }
                self.touch(&uid, now);
            }
        }
    }

    fn job(&mut self, job: Arc<Job>, now: Timestamp) {
        let uid = job.uid().to_owned();
        if job.phase().is_terminal() {
            return self.forget_job(&uid, now);
        }
        if self.jobs.contains_key(uid.as_str()) {
            self.leave_lane(&uid);
            if let Some(state) = self.jobs.get_mut(uid.as_str()) {
                state.order = job::order(&job);
                state.job = job;
            }
            return self.touch(&uid, now);
        }
        let signature = self.signatures.take(&job, &mut self.world);
        if let Some(signature) = self.signatures.get_mut(signature)
            && signature.cursor == 0
        {
            signature.cursor = self.seed % self.world.nodes.len().max(1);
        }
        let state = JobState::new(job.clone(), signature, now);
        let uid = state.uid().clone();
        let live = state.chooser.is_some();
        if let Some(seconds) = job.spec.starting_deadline().filter(|_| !job.spec.is_per_node()) {
            let at = later(now, seconds);
            self.timers.arm(at, Timer::Starting(uid.clone()));
        }
        self.jobs.insert(uid.clone(), state);
        if live {
            self.live.insert(uid.clone());
            (0..self.world.nodes.len()).for_each(|id| self.join_live(&uid, id));
        }
        let known: Vec<_> = self.tasks_of.get(&uid).into_iter().flatten().cloned().collect();
        for name in known {
            if let Some(task) = self.tasks.get(&name).map(|t| t.task.clone()) {
                self.task(task, true, now);
            }
        }
        self.touch(&uid, now);
    }

    fn forget_job(&mut self, uid: &str, now: Timestamp) {
        self.leave_lane(uid);
        if let Some(state) = self.jobs.remove(uid) {
            self.release_signature(state.signature);
            self.explanations.forget(&state);
            self.live.remove(uid);
            self.recording.remove(uid);
            self.unreserve(|order| order.uid == *state.uid(), now);
            for node in &state.parked {
                self.stop_waiting(node, uid);
            }
        }
    }

    fn release_signature(&mut self, id: SignatureId) {
        self.signatures.release(id);
        if self.signatures.get(id).is_none() {
            self.parked.remove(&id);
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

    pub(super) fn task(&mut self, task: Arc<Task>, confirmed: bool, now: Timestamp) {
        let name = task_key(&task);
        let uid: Arc<str> = task.spec.job_ref.uid.as_str().into();
        let node = self.world.id_or_new(&task.spec.node_name);
        let old = self.drop_use(&name);
        let was_open = old.as_ref().is_none_or(|o| !o.task.phase().is_terminal());
        let (mut queue, mut amounts) = match &old {
            Some(old) => (old.queue.clone(), old.holds.clone()),
            None => (None, None),
        };
        let state = self.jobs.get_mut(&uid);
        if let Some(state) = &state {
            queue = Some(state.job.spec.queue_name.clone());
            amounts = self.signatures.get(state.signature).map(|s| s.requests.clone());
        }
        // a Task that is stopped before its claim is never claimed: it takes no room
        let open = !task.phase().is_terminal();
        let idle = task.phase() == TaskPhase::Bound && task.spec.stop.is_some();
        let holds = (open && !idle).then(|| amounts.unwrap_or_else(one_slot));
        let mut key = None;
        if let Some(state) = state {
            key = state.ledger.apply(&task);
            if open {
                state.count_running(node, true);
            } else if was_open {
                state.count_failure(node, &task);
            }
        }
        let freed = old
            .as_ref()
            .filter(|o| o.holds.is_some() && (holds.is_none() || o.node != node))
            .map(|o| o.node);
        if let Some(holds) = &holds {
            self.world.use_node(node, holds, true);
        }
        if let (Some(queue), true) = (&queue, open) {
            self.queues.entry(queue.clone()).or_default().running += 1;
        }
        self.tasks_of.entry(uid.clone()).or_default().insert(name.clone());
        let settled = key.clone();
        self.tasks.insert(
            name,
            TaskUse {
                task,
                node,
                job: uid.clone(),
                key,
                queue,
                holds,
                confirmed,
            },
        );
        if let Some(key) = settled {
            self.settle(&uid, &key, now);
        }
        if let Some(node) = freed {
            self.wake_capacity(node, now);
        }
        self.touch(&uid, now);
    }

    /// Gives back what a Task holds and forgets it.
    fn drop_use(&mut self, name: &str) -> Option<TaskUse> {
        let old = self.tasks.remove(name)?;
        if let Some(holds) = &old.holds {
            self.world.use_node(old.node, holds, false);
        }
        let open = !old.task.phase().is_terminal();
        if let (true, Some(queue)) = (open, &old.queue)
            && let Some(queue) = self.queues.get_mut(queue)
        {
            queue.running -= 1;
        }
        if let (true, true, Some(state)) = (open, old.key.is_some(), self.jobs.get_mut(&old.job)) {
            state.count_running(old.node, false);
        }
        Some(old)
    }

    fn task_gone(&mut self, task: &Task, now: Timestamp) {
        let name = task_key(task);
        let uid = &task.spec.job_ref.uid;
        let same = self.tasks.get(&name).is_some_and(|t| t.task.uid() == task.uid());
        if !same {
            return;
        }
        self.remove_task(&name, now);
        let may_have_run = !matches!(task.phase(), TaskPhase::Bound | TaskPhase::Rejected);
        let Some(state) = self.jobs.get_mut(uid.as_str()) else {
            return;
        };
        if let Some(key) = state.ledger.key_of(task).filter(|_| may_have_run) {
            let record = Record {
                reason: reason::TASK_GONE,
                message: format!(
                    "Task {} was removed by force; whether it did its work is not known",
                    task.name()
                ),
            };
            state.records.insert(key, record);
            self.recording.insert(state.uid().clone());
        }
    }

    /// Takes back what was assumed of a placement that could not be made, unless the watch showed it after all.
    fn unassume(&mut self, placement: &super::Placement, now: Timestamp) {
        let name = format!("{}/{}", placement.job.namespace(), placement.name());
        if self.tasks.get(&name).is_some_and(|t| !t.confirmed) {
            self.remove_task(&name, now);
        }
    }

    fn remove_task(&mut self, name: &str, now: Timestamp) {
        let Some(old) = self.drop_use(name) else { return };
        if let Some(names) = self.tasks_of.get_mut(&old.job) {
            names.remove(name);
            if names.is_empty() {
                self.tasks_of.remove(&old.job);
            }
        }
        let key = self
            .jobs
            .get_mut(&old.job)
            .and_then(|state| state.ledger.remove(&old.task));
        if let Some(key) = key {
            self.settle(&old.job, &key, now);
        }
        if old.holds.is_some() {
            self.wake_capacity(old.node, now);
        }
        self.touch(&old.job, now);
    }

    /// Brings an index to where the ledger says it stands.
    fn settle(&mut self, uid: &Arc<str>, key: &Key, now: Timestamp) {
        let Some(state) = self.jobs.get_mut(uid) else {
            return;
        };
        let was_parked = matches!(key, Key::Node(node) if state.parked.contains(node));
        if let Some(at) = state.settle(key, now) {
            self.timers.arm(at, Timer::Due(uid.clone(), key.clone()));
        }
        if let (true, Key::Node(node)) = (was_parked, key) {
            self.stop_waiting(node, uid);
        }
    }

    fn node(&mut self, node: &Node, now: Timestamp) {
        let id = self.world.apply_node(node);
        let live: Vec<_> = self.live.iter().cloned().collect();
        for uid in live {
            self.join_live(&uid, id);
            self.touch(&uid, now);
        }
        self.rejudge_node(id, now);
    }

    /// Takes a node into a Live Job, or out, as it matches now.
    fn join_live(&mut self, uid: &Arc<str>, id: NodeId) {
        let Some(state) = self.jobs.get_mut(uid) else {
            return;
        };
        let Some(chooser) = &state.chooser else { return };
        let node = &self.world.nodes[id];
        let held = chooser
            .target()
            .is_some_and(|t| node.targets.iter().any(|n| n == t));
        let is_member = node.exists && chooser.chooses(&node.name, &node.labels, held);
        state.set_member(&node.name.clone(), is_member);
    }

    fn leave_live(&mut self, name: &str, now: Timestamp) {
        let Some(id) = self.world.id(name) else { return };
        let live: Vec<_> = self.live.iter().cloned().collect();
        for uid in live {
            self.join_live(&uid, id);
            self.touch(&uid, now);
        }
    }

    fn rejudge_node(&mut self, id: NodeId, now: Timestamp) {
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
    fn rejudge(&mut self, change: Clears, now: Timestamp) {
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

    fn wake_signature(&mut self, id: SignatureId) {
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
    fn wake_node(&mut self, id: NodeId, now: Timestamp) {
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

    fn queue(&mut self, name: String, spec: Option<QueueSpec>) {
        let queue = self.queues.entry(name).or_default();
        if queue.spec != spec {
            queue.spec = spec;
            queue.wake_all();
        }
    }

    /// Does what timers ask for.
    pub(super) fn fire(&mut self, now: Timestamp) {
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::Due(uid, key) => {
                    if let Some(state) = self.jobs.get_mut(&uid)
                        && state.later.get(&key).is_some_and(|at| *at <= now)
                    {
                        state.later.remove(&key);
                        state.due.insert(key);
                    }
                    self.touch(&uid, now);
                }
                Timer::Pause(uid) => {
                    if let Some(state) = self.jobs.get_mut(&uid)
                        && state.paused.as_ref().is_some_and(|(until, _)| *until <= now)
                    {
                        state.paused = None;
                    }
                    self.touch(&uid, now);
                }
                Timer::Deadline(uid) => self.touch(&uid, now),
                Timer::Starting(uid) => self.starting_deadline(&uid, now),
                Timer::Unavailable(uid, node) => self.unavailable_deadline(&uid, &node, now),
                Timer::Starved => self.reserve(now),
            }
        }
    }

    /// An Indexed Job that fits nowhere for `startingDeadlineSeconds`: its first index ends, then perhaps the next.
    fn starting_deadline(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some(state) = self.jobs.get_mut(uid) else {
            return;
        };
        let Some(seconds) = state.job.spec.starting_deadline() else {
            return;
        };
        let end = later(state.waiting_since, seconds);
        let queue = self.queues.get(&state.job.spec.queue_name);
        let fits_nowhere = state.in_lane && queue.is_some_and(|q| q.is_parked(&state.lane()));
        let again = if end > now {
            end
        } else {
            if let (true, Some(key)) = (fits_nowhere, state.next_key()) {
                let record = Record {
                    reason: reason::NOT_STARTED,
                    message: format!("nothing fitted for startingDeadlineSeconds ({seconds} s)"),
                };
                state.records.insert(key, record);
                self.recording.insert(uid.clone());
            }
            later(now, 1)
        };
        self.timers.arm(again, Timer::Starting(uid.clone()));
    }

    fn unavailable_deadline(&mut self, uid: &Arc<str>, node: &Arc<str>, now: Timestamp) {
        let Some(state) = self.jobs.get_mut(uid) else {
            return;
        };
        let Some(seconds) = state.job.spec.starting_deadline() else {
            return;
        };
        let Some(since) = state.unavailable_since.get(node) else {
            return;
        };
        let end = later(*since, seconds);
        if end > now {
            return self
                .timers
                .arm(end, Timer::Unavailable(uid.clone(), node.clone()));
        }
        if state.parked.contains(node) {
            let record = Record {
                reason: reason::NODE_UNAVAILABLE,
                message: format!("node {node} was not available for startingDeadlineSeconds ({seconds} s)"),
            };
            state.records.insert(Key::Node(node.clone()), record);
            self.recording.insert(uid.clone());
        }
    }

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

    fn enter_lane(&mut self, uid: &str) {
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
        queue.insert(order, lane);
        if let Some(signature) = self.signatures.get_mut(signature) {
            signature.queues.insert(name);
        }
    }

    fn leave_lane(&mut self, uid: &str) {
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

pub(super) fn task_key(task: &Task) -> String {
    format!("{}/{}", task.namespace(), task.name())
}

pub(super) fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time.saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}

fn one_slot() -> Amounts {
    let mut amounts = Amounts::default();
    *amounts.at(SLOT) = 1;
    amounts
}
