//! Taking in events: what each changes.

use super::{
    Core, Event,
    filters::Clears,
    job::{self, JobState},
    lanes::later,
    signature::SignatureId,
    tasks::task_key,
    timers::Timer,
    topology::Move,
    world::NodeId,
};
use api::{Job, Node, QueueSpec};
use jiff::Timestamp;
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
                if let Some((id, moves)) = self.world.delete_node(&name) {
                    self.regroup(&moves, now);
                    self.leave_live(&name, now);
                    self.rejudge_node(id, now);
                }
            }
            Event::Queue(queue) => {
                let name = queue.metadata.name.clone().unwrap_or_default();
                self.queue(&name, Some(queue.spec.clone()));
            }
            Event::QueueGone(name) => self.queue(&name, None),
            Event::NotStopped(task) => self.not_stopped(&task_key(&task), now),
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

    pub(super) fn job(&mut self, job: Arc<Job>, now: Timestamp) {
        let uid = job.uid().to_owned();
        if job.phase().is_terminal() {
            return self.forget_job(&uid, now);
        }
        if self.jobs.contains_key(uid.as_str()) {
            self.leave_lane(&uid);
            let mut relabelled = None;
            if let Some(state) = self.jobs.get_mut(uid.as_str()) {
                state.order = job::order(&job);
                let labels = state.job.metadata.labels != job.metadata.labels;
                relabelled = labels.then(|| state.uid().clone());
                state.job = job;
            }
            if let Some(uid) = relabelled {
                self.resign(&uid, now);
            }
            return self.touch(&uid, now);
        }
        let signature = self.sign(&job, now);
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

    pub(super) fn forget_job(&mut self, uid: &str, now: Timestamp) {
        self.leave_lane(uid);
        let tasks: Vec<_> = self.tasks_of.get(uid).into_iter().flatten().cloned().collect();
        tasks.iter().for_each(|name| self.count_near(name, false));
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

    /// Nodes moved to another value of a label: with them the Tasks on them, so that other nodes may be free to take what waits.
    fn regroup(&mut self, moves: &[Move], now: Timestamp) {
        if moves.is_empty() {
            return;
        }
        for (_, signature) in self.signatures.iter_mut() {
            moves.iter().for_each(|m| signature.moved(*m, &self.world));
        }
        let near = |id: &SignatureId| self.signatures.get(*id).is_some_and(|s| s.is_near());
        let woken: Vec<_> = self.parked.iter().copied().filter(near).collect();
        woken.into_iter().for_each(|id| self.wake_signature(id, now));
        let mut awaited: Vec<_> = self
            .waiters
            .keys()
            .filter_map(|name| self.world.id(name))
            .collect();
        awaited.sort_unstable();
        awaited.into_iter().for_each(|node| self.wake_node(node, now));
    }

    pub(super) fn node(&mut self, node: &Node, now: Timestamp) {
        let (id, moves) = self.world.apply_node(node);
        self.regroup(&moves, now);
        let live: Vec<_> = self.live.iter().cloned().collect();
        for uid in live {
            self.join_live(&uid, id);
            self.touch(&uid, now);
        }
        self.rejudge_node(id, now);
    }

    pub(super) fn queue(&mut self, name: &str, spec: Option<QueueSpec>) {
        let queue = self.queues.entry(name.to_owned()).or_default();
        if queue.spec == spec {
            return; // only its status changed
        }
        let old_tier = queue.tier();
        queue.quota = spec
            .as_ref()
            .map_or_else(Vec::new, |s| self.world.names.limits(&s.quota));
        queue.spec = spec;
        queue.wake_all();
        let tier = queue.tier();
        self.wake_quota(tier);
        self.wake_quota(old_tier);
        self.drain_queue(name);
    }

    /// Takes a node into a Live Job, or out, as it matches now.
    pub(super) fn join_live(&mut self, uid: &Arc<str>, id: NodeId) {
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

    pub(super) fn leave_live(&mut self, name: &str, now: Timestamp) {
        let Some(id) = self.world.id(name) else { return };
        let live: Vec<_> = self.live.iter().cloned().collect();
        for uid in live {
            self.join_live(&uid, id);
            self.touch(&uid, now);
        }
    }
}
