//! The slow, obvious reference: what may go where, worked out anew from plain objects for every question.

use super::lab::Lab;
use api::{
    Job, Node, QueueSpec, Task,
    placement::{AntiAffinityTerm, Labels, Unsatisfiable},
    queue::{Ordering, StopPolicy},
    selector::repelling,
    wanted::{Gate, Key, wanted},
};
use std::collections::BTreeMap;

const NOTHING: &Labels = &Labels::new();

pub(super) struct Oracle<'a>(pub &'a Lab);

impl<'a> Oracle<'a> {
    fn labels(node: &Node) -> &Labels {
        node.metadata.labels.as_ref().unwrap_or(NOTHING)
    }

    fn job_labels(job: &Job) -> &Labels {
        job.metadata.labels.as_ref().unwrap_or(NOTHING)
    }

    pub fn job_of(&self, task: &Task) -> &'a Job {
        &self.0.jobs[&task.spec.job_ref.name]
    }

    fn queue(&self, job: &Job) -> Option<&'a QueueSpec> {
        self.0.queues.get(&job.spec.queue_name)
    }

    pub fn tier(&self, job: &Job) -> i32 {
        self.queue(job).map_or(0, |q| q.priority)
    }

    /// Tasks that hold something of their node.
    fn holding(&self) -> impl Iterator<Item = &'a Task> {
        let idle = |t: &Task| t.phase().is_bound() && t.spec.stop.is_some();
        self.0
            .tasks
            .values()
            .filter(move |t| !t.phase().is_terminal() && !idle(t))
    }

    fn cpu(job: &Job) -> u64 {
        let requests = job.spec.resources.as_ref().map(|r| &r.requests);
        requests
            .and_then(|r| r.get("cpu"))
            .and_then(|q| q.milli())
            .unwrap_or(0)
    }

    /// A node's value of a topology key.
    fn value(&self, node: &str, key: &str) -> Option<&'a str> {
        let (name, node) = self.0.nodes.get_key_value(node)?;
        if key == "kubernetes.io/hostname" {
            return Some(name);
        }
        Self::labels(node).get(key).map(String::as_str)
    }

    fn terms(job: &Job) -> &[AntiAffinityTerm] {
        let anti = job
            .spec
            .affinity
            .as_ref()
            .and_then(|a| a.job_anti_affinity.as_ref());
        anti.map_or(&[], |a| &a.required_during_scheduling_ignored_during_execution)
    }

    /// Why a node will not do, whatever runs.
    fn unfit(&self, job: &Job, name: &str) -> Option<String> {
        let node = &self.0.nodes[name];
        if node.spec.unschedulable {
            return Some(format!("{name} is cordoned"));
        }
        if repelling(&node.spec.taints, &job.spec.tolerations).is_some() {
            return Some(format!("{name} is tainted"));
        }
        let unmet = job
            .spec
            .node_selector
            .iter()
            .find(|(k, v)| Self::labels(node).get(*k) != Some(v));
        unmet.map(|(k, v)| format!("{name} does not match {k}={v}"))
    }

    /// Why a Task of the Job may not go to a node now.
    pub fn refuses(&self, job: &Job, name: &str) -> Option<String> {
        if !self.0.nodes.contains_key(name) {
            return Some(format!("{name} does not exist"));
        }
        if let Some(why) = self.unfit(job, name) {
            return Some(why);
        }
        let allocatable = &self.0.nodes[name].status.as_ref().unwrap().allocatable;
        let here = || self.holding().filter(|t| t.spec.node_name == name);
        let slots = allocatable["slots"].value().unwrap() + u64::from(job.spec.is_emergency());
        if here().count() as u64 >= slots {
            return Some(format!("{name} has no slot"));
        }
        let (used, asks) = (
            here().map(|t| Self::cpu(self.job_of(t))).sum::<u64>(),
            Self::cpu(job),
        );
        if asks > 0 && used + asks > allocatable["cpu"].milli().unwrap() {
            return Some(format!("{name} lacks cpu"));
        }
        for other in self.holding() {
            let near = |term: &AntiAffinityTerm| {
                let (a, b) = (
                    self.value(name, &term.topology_key),
                    self.value(&other.spec.node_name, &term.topology_key),
                );
                a.is_some() && a == b
            };
            let theirs = self.job_of(other);
            let mine = Self::terms(job)
                .iter()
                .any(|t| near(t) && t.label_selector.matches(Self::job_labels(theirs)));
            let back = Self::terms(theirs)
                .iter()
                .any(|t| near(t) && t.label_selector.matches(Self::job_labels(job)));
            if mine || back {
                return Some(format!("{name} is near {}", other.name()));
            }
        }
        let hard =
            |c: &&api::placement::SpreadConstraint| c.when_unsatisfiable == Unsatisfiable::DoNotSchedule;
        for constraint in job.spec.topology_spread_constraints.iter().filter(hard) {
            let key = &constraint.topology_key;
            let Some(value) = self.value(name, key) else {
                return Some(format!("{name} lacks {key}"));
            };
            let counts = self.domains(job, key);
            let least = counts.values().min().copied().unwrap_or(0);
            let skew = counts.get(value).copied().unwrap_or(0) + 1 - least;
            if skew > constraint.max_skew {
                return Some(format!("{name} would be skewed by {skew}"));
            }
        }
        None
    }

    /// How many Tasks of the Job run at each value that some node which is not unfit has.
    fn domains(&self, job: &Job, key: &str) -> BTreeMap<&'a str, i32> {
        let fit = self.0.nodes.keys().filter(|n| self.unfit(job, n).is_none());
        let mut counts: BTreeMap<&str, i32> = fit.filter_map(|n| Some((self.value(n, key)?, 0))).collect();
        for task in self.holding().filter(|t| t.spec.job_ref.uid == job.uid()) {
            if let Some(count) = self
                .value(&task.spec.node_name, key)
                .and_then(|v| counts.get_mut(v))
            {
                *count += 1;
            }
        }
        counts
    }

    /// Why the Job's queue lets nothing more of it start.
    pub fn held(&self, job: &Job) -> Option<String> {
        let name = &job.spec.queue_name;
        let Some(queue) = self.queue(job) else {
            return Some(format!("{name} is missing"));
        };
        if queue.stop_policy != StopPolicy::None {
            return Some(format!("{name} is held"));
        }
        let open = self.0.tasks.values().filter(|t| !t.phase().is_terminal());
        let running = open.filter(|t| self.job_of(t).spec.queue_name == *name).count();
        if queue.max_running.is_some_and(|max| running as i32 >= max) {
            return Some(format!("{name} is full"));
        }
        let (asks, quota) = (Self::cpu(job), |q: &QueueSpec| {
            q.quota.get("cpu").and_then(|c| c.milli())
        });
        if asks == 0 || quota(queue).is_none() {
            return None;
        }
        let sharing = |(_, q): &(&String, &QueueSpec)| q.priority == queue.priority && quota(q).is_some();
        let all: u64 = self
            .0
            .queues
            .iter()
            .filter(sharing)
            .filter_map(|(_, q)| quota(q))
            .sum();
        let used: u64 = self
            .0
            .queues
            .iter()
            .filter(sharing)
            .map(|(n, _)| self.cpu_in(n))
            .sum();
        (used + asks > all).then(|| format!("{name} lacks quota"))
    }

    fn cpu_in(&self, queue: &str) -> u64 {
        let jobs = self.holding().map(|t| self.job_of(t));
        jobs.filter(|j| j.spec.queue_name == queue).map(Self::cpu).sum()
    }

    /// Whether one more of the Job would go beyond its own queue's quota.
    pub fn borrows(&self, job: &Job) -> bool {
        let quota = self
            .queue(job)
            .and_then(|q| q.quota.get("cpu"))
            .and_then(|c| c.milli());
        let asks = Self::cpu(job);
        quota.is_some_and(|quota| asks > 0 && self.cpu_in(&job.spec.queue_name) + asks > quota)
    }

    /// Indexes that may start now, in order, each with the nodes that rejected it lately.
    fn ready(&self, job: &Job) -> Vec<(Key, Vec<String>)> {
        let now = self.0.now;
        let wanted = wanted(job, None, self.0.tasks.values(), now);
        if !matches!(wanted.outlook.gate, Gate::Open { room } if room > 0) {
            return Vec::new();
        }
        let fresh = wanted.fresh.iter().flatten().map(|i| (Key::Index(i), Vec::new()));
        let again = wanted
            .again
            .into_iter()
            .filter(|(_, again)| again.from.is_none_or(|from| from <= now));
        let again = again.map(|(key, again)| {
            let avoid = again.avoid.iter().filter(|(_, until)| *until > now);
            (key, avoid.map(|(node, _)| node.to_string()).collect())
        });
        let mut all: Vec<_> = fresh.chain(again).collect();
        all.sort();
        all
    }

    /// Where something of the Job could go now.
    pub fn could_go(&self, job: &Job) -> Vec<(Key, String)> {
        if self.held(job).is_some() {
            return Vec::new();
        }
        let nodes: Vec<_> = self
            .0
            .nodes
            .keys()
            .filter(|n| self.refuses(job, n).is_none())
            .collect();
        let mut places = Vec::new();
        for (key, avoided) in self.ready(job) {
            let free = nodes.iter().filter(|n| !avoided.contains(n));
            places.extend(free.map(|n| (key.clone(), (*n).clone())));
        }
        places
    }

    /// Whether `a` goes before `b` wherever it could go.
    pub fn before(&self, a: &Job, b: &Job) -> bool {
        let place = |job: &Job| {
            let created = job.metadata.creation_timestamp.as_ref().map(|t| t.0);
            (std::cmp::Reverse(job.spec.rank()), created, job.uid().to_owned())
        };
        match self.tier(a).cmp(&self.tier(b)) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal if a.spec.queue_name == b.spec.queue_name => place(a) < place(b),
            std::cmp::Ordering::Equal => self.is_head(a) && !self.borrows(a) && self.borrows(b),
        }
    }

    /// Whether nothing of the Job's queue that may start goes before it.
    fn is_head(&self, job: &Job) -> bool {
        let queue = self
            .0
            .jobs
            .values()
            .filter(|other| other.spec.queue_name == job.spec.queue_name);
        let mut before = queue.filter(|other| self.before(other, job));
        !before.any(|other| !self.ready(other).is_empty())
    }

    /// Whether work before the Job in a strict queue lets nothing pass. An index that some node rejected lately may be in the way or
    /// not, as one in backoff is not: it counts unless the answer must be `sure`.
    pub fn blocked(&self, job: &Job, sure: bool) -> bool {
        let strict = self
            .queue(job)
            .is_some_and(|q| q.ordering == Ordering::StrictFifo);
        let in_the_way = |other: &Job| {
            let mut ready = self.ready(other).into_iter();
            ready.any(|(_, avoided)| !sure || avoided.is_empty())
        };
        strict
            && self.0.jobs.values().any(|other| {
                other.spec.queue_name == job.spec.queue_name && self.before(other, job) && in_the_way(other)
            })
    }

    /// How good a node is: fewest failures of the Job, most even, fewest of its Tasks, least used. Higher is better.
    pub fn score(&self, job: &Job, name: &str) -> [i64; 4] {
        let of_job = |t: &&&Task| t.spec.job_ref.uid == job.uid() && t.spec.node_name == name;
        let all: Vec<&Task> = self.0.tasks.values().collect();
        let ended_badly = |t: &&Task| {
            matches!(
                t.phase(),
                api::task::TaskPhase::Failed | api::task::TaskPhase::Rejected
            )
        };
        let failures = all.iter().filter(of_job).filter(|t| ended_badly(t)).count() as i64;
        let own = all
            .iter()
            .filter(of_job)
            .filter(|t| !t.phase().is_terminal())
            .count() as i64;
        let skew: i64 = job
            .spec
            .topology_spread_constraints
            .iter()
            .map(|c| {
                let counts = self.domains(job, &c.topology_key);
                let least = counts.values().min().copied().unwrap_or(0);
                let value = self.value(name, &c.topology_key);
                value.map_or(i64::from(u32::MAX), |v| {
                    i64::from(counts.get(v).copied().unwrap_or(0) + 1 - least)
                })
            })
            .sum();
        let here = || self.holding().filter(|t| t.spec.node_name == name);
        let allocatable = &self.0.nodes[name].status.as_ref().unwrap().allocatable;
        let part = |used: u64, all: u64| if all == 0 { 0.0 } else { used as f64 / all as f64 };
        let slots = part(here().count() as u64, allocatable["slots"].value().unwrap());
        let cpu: u64 = here().map(|t| Self::cpu(self.job_of(t))).sum();
        let used = slots.max(part(cpu, allocatable["cpu"].milli().unwrap()));
        [-failures, -skew, -own, -((used * 10_000.0) as i64)]
    }
}
