//! Tasks: what they hold of their nodes and queues, and where they leave their indexes.

use super::{
    Core, TaskUse,
    amounts::{Amounts, SLOT},
    job::Record,
    timers::Timer,
    world::NodeId,
};
use api::{
    Task,
    task::TaskPhase,
    wanted::{Key, reason},
};
use jiff::Timestamp;
use std::sync::Arc;

impl Core {
    pub(super) fn task(&mut self, task: Arc<Task>, confirmed: bool, now: Timestamp) {
        let name: Arc<str> = task_key(&task).into();
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
        let stopping = old.as_ref().is_some_and(|o| o.stopping);
        let freed = old
            .as_ref()
            .filter(|o| o.holds.is_some() && (holds.is_none() || o.node != node))
            .map(|o| o.node);
        if let Some(holds) = &holds {
            self.world.use_node(node, holds, true);
            self.world.nodes[node].tasks.push(name.clone());
        }
        if let (Some(queue), true) = (&queue, open) {
            let queue = self.queues.entry(queue.clone()).or_default();
            queue.running += 1;
            holds.iter().for_each(|holds| queue.used.add(holds));
        }
        self.tasks_of.entry(uid.clone()).or_default().insert(name.clone());
        let settled = key.clone();
        let key_name = name.clone();
        self.tasks.insert(
            name,
            TaskUse {
                task,
                node,
                job: uid.clone(),
                key,
                queue,
                holds,
                counted: None,
                stopping,
                confirmed,
            },
        );
        self.count_near(&key_name, true);
        self.drain_task(&key_name);
        let shown = confirmed && old.as_ref().is_some_and(|o| !o.confirmed);
        if shown && !self.parked.is_empty() && self.queues.values().any(|q| q.preempts()) {
            self.wake_capacity(node, now); // only a Task that is shown can be pushed out
        }
        if let Some(key) = settled {
            self.settle(&uid, &key, now);
        }
        if let Some(node) = freed {
            self.freed(&uid, node, now);
        }
        self.touch(&uid, now);
    }

    /// Gives back what a Task holds and forgets it.
    pub(super) fn drop_use(&mut self, name: &str) -> Option<TaskUse> {
        self.count_near(name, false);
        let old = self.tasks.remove(name)?;
        if let Some(holds) = &old.holds {
            self.world.use_node(old.node, holds, false);
            let tasks = &mut self.world.nodes[old.node].tasks;
            if let Some(at) = tasks.iter().position(|other| **other == *name) {
                tasks.swap_remove(at);
            }
        }
        let open = !old.task.phase().is_terminal();
        if let (true, Some(queue)) = (open, &old.queue)
            && let Some(queue) = self.queues.get_mut(queue)
        {
            queue.running -= 1;
            old.holds.iter().for_each(|holds| queue.used.sub(holds));
        }
        if let (true, true, Some(state)) = (open, old.key.is_some(), self.jobs.get_mut(&old.job)) {
            state.count_running(old.node, false);
        }
        Some(old)
    }

    pub(super) fn task_gone(&mut self, task: &Task, now: Timestamp) {
        let name = task_key(task);
        let uid = &task.spec.job_ref.uid;
        let same = self
            .tasks
            .get(name.as_str())
            .is_some_and(|t| t.task.uid() == task.uid());
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
    pub(super) fn unassume(&mut self, placement: &super::Placement, now: Timestamp) {
        let name = format!("{}/{}", placement.job.namespace(), placement.name());
        if self.tasks.get(name.as_str()).is_some_and(|t| !t.confirmed) {
            self.remove_task(&name, now);
        }
    }

    pub(super) fn remove_task(&mut self, name: &str, now: Timestamp) {
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
            self.freed(&old.job, old.node, now);
        }
        self.touch(&old.job, now);
    }

    /// A Task of a Job gave back what it held of a node.
    fn freed(&mut self, uid: &Arc<str>, node: NodeId, now: Timestamp) {
        self.wake_capacity(node, now);
        self.wake_near(uid, node, now);
        let queue = self
            .jobs
            .get(uid)
            .and_then(|s| self.queues.get(&s.job.spec.queue_name));
        if let Some(tier) = queue.filter(|q| !q.quota.is_empty()).map(|q| q.tier()) {
            self.wake_quota(tier);
        }
    }

    /// Brings an index to where the ledger says it stands.
    pub(super) fn settle(&mut self, uid: &Arc<str>, key: &Key, now: Timestamp) {
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
}

pub(super) fn task_key(task: &Task) -> String {
    format!("{}/{}", task.namespace(), task.name())
}

fn one_slot() -> Amounts {
    let mut amounts = Amounts::default();
    *amounts.at(SLOT) = 1;
    amounts
}
