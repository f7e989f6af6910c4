//! A world to tell stories in: nodes, Jobs, and Tasks that are made and ended at will.

use super::lies::Lie;
use crate::core::{Core, Decision, Event, Placement, Stopping};
use api::{
    Job, JobSpec, Node, Queue, QueueSpec, Target, Task,
    amount::Amount,
    job::CompletionMode,
    placement::{LabelSelector, Labels, Resources, Taint},
    quantity::Quantity,
    target::Access,
    task::{TaskPhase, TaskStatus},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use std::{collections::BTreeMap, sync::Arc};

pub(super) struct Lab {
    pub core: Core,
    pub now: Timestamp,
    pub tasks: BTreeMap<String, Task>,
    pub nodes: BTreeMap<String, Node>,
    pub jobs: BTreeMap<String, Job>,
    pub queues: BTreeMap<String, QueueSpec>,
    /// How the core is lied to, to see whether that is noticed.
    pub lie: Option<Lie>,
    /// Tasks that were stopped, as `task for job`.
    pub stopped: Vec<String>,
}

impl Lab {
    /// A world with queue `default`, namespace `ops` and Target `all` that lets everyone in.
    pub fn new() -> Self {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let mut lab = Self {
            core: Core::new(1),
            now,
            tasks: BTreeMap::new(),
            nodes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            queues: BTreeMap::new(),
            lie: None,
            stopped: Vec::new(),
        };
        lab.queue("default", |_| {});
        lab.tell(Event::Namespace("ops".into(), Labels::new()));
        lab.target("all", |t| {
            t.spec.selector = Some(LabelSelector::default());
            t.spec.access = vec![Access::default()];
        });
        lab
    }

    pub fn tell(&mut self, event: Event) {
        let event = match self.lie {
            Some(lie) => lie.twist(event),
            None => Some(event),
        };
        if let Some(event) = event {
            self.core.apply(event, self.now);
        }
    }

    pub fn wait(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub fn queue(&mut self, name: &str, edit: impl FnOnce(&mut QueueSpec)) {
        let mut queue = Queue::new(
            name,
            QueueSpec {
                weight: 1,
                ..Default::default()
            },
        );
        edit(&mut queue.spec);
        self.queues.insert(name.into(), queue.spec.clone());
        self.tell(Event::Queue(Arc::new(queue)));
    }

    pub fn target(&mut self, name: &str, edit: impl FnOnce(&mut Target)) {
        let mut target = Target::new(name, Default::default());
        edit(&mut target);
        self.tell(Event::Target(Arc::new(target)));
    }

    /// A ready node with room for `slots` Tasks.
    pub fn node(&mut self, name: &str, slots: u32, edit: impl FnOnce(&mut Node)) {
        let mut node = Node::new(name, Default::default());
        let status = node.status.get_or_insert_default();
        for (resource, amount) in [
            ("slots", slots.to_string()),
            ("cpu", "4".into()),
            ("memory", "8Gi".into()),
        ] {
            status.allocatable.insert(resource.into(), Quantity(amount));
        }
        status.conditions.push(Condition {
            type_: "Ready".into(),
            status: "True".into(),
            reason: "Heartbeat".into(),
            message: String::new(),
            last_transition_time: Time(self.now),
            observed_generation: None,
        });
        edit(&mut node);
        self.nodes.insert(name.into(), node.clone());
        self.tell(Event::Node(Arc::new(node)));
    }

    pub fn edit_node(&mut self, name: &str, edit: impl FnOnce(&mut Node)) {
        let node = self.nodes.get_mut(name).unwrap();
        edit(node);
        let node = Arc::new(node.clone());
        self.tell(Event::Node(node));
    }

    /// An Indexed Job that runs as many at once as it wants.
    pub fn job(&mut self, name: &str, completions: i32, edit: impl FnOnce(&mut JobSpec)) {
        self.labelled(name, completions, &[], edit);
    }

    /// The same, with labels.
    pub fn labelled(
        &mut self,
        name: &str,
        completions: i32,
        labels: &[(&str, &str)],
        edit: impl FnOnce(&mut JobSpec),
    ) {
        let mut job = Job::new(
            name,
            JobSpec {
                queue_name: "default".into(),
                completions: Some(completions),
                parallelism: Some(Amount::Percent("100%".into())),
                max_failures: Some(Amount::Percent("100%".into())),
                ..Default::default()
            },
        );
        job.metadata.namespace = Some("ops".into());
        job.metadata.uid = Some(format!("uid-{name}"));
        job.metadata.creation_timestamp = Some(Time(self.now));
        let own = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        job.metadata.labels = Some(own.collect());
        edit(&mut job.spec);
        self.jobs.insert(name.into(), job.clone());
        self.tell(Event::Job(Arc::new(job)));
    }

    pub fn edit_job(&mut self, name: &str, edit: impl FnOnce(&mut Job)) {
        let job = self.jobs.get_mut(name).unwrap();
        edit(job);
        let job = Arc::new(job.clone());
        self.tell(Event::Job(job));
    }

    pub fn per_node(&mut self, name: &str, nodes: &[&str], edit: impl FnOnce(&mut JobSpec)) {
        self.job(name, 1, |spec| {
            spec.completions = None;
            spec.completion_mode = Some(CompletionMode::PerNode);
            edit(spec);
        });
        self.tell(Event::Members {
            job: format!("uid-{name}"),
            nodes: nodes.iter().map(|n| Arc::from(*n)).collect(),
        });
    }

    /// One placement; what is to be stopped before it is stopped.
    pub fn decide(&mut self) -> Option<Placement> {
        loop {
            match self.core.next(self.now)? {
                Decision::Place(placement) => return Some(placement),
                Decision::Stop(stopping) => self.stop(stopping),
            }
        }
    }

    /// One decision, carried out: the watch shows the Task.
    pub fn step(&mut self) -> Option<Placement> {
        let placement = self.decide()?;
        self.carry_out(placement.clone());
        Some(placement)
    }

    /// The Task of a decision is made, and the watch shows it.
    pub fn carry_out(&mut self, placement: Placement) {
        let mut task = Task::default();
        task.metadata.namespace = Some("ops".into());
        task.metadata.name = Some(placement.name());
        task.metadata.uid = Some(format!("uid-{}-{}", placement.name(), self.tasks.len()));
        task.metadata.creation_timestamp = Some(Time(self.now));
        task.spec.job_ref.name = placement.job.name().into();
        task.spec.job_ref.uid = placement.job.uid().into();
        task.spec.index = placement.index as i32;
        task.spec.attempt = placement.attempt as i32;
        task.spec.node_name = placement.node.to_string();
        task.spec.stop = placement.record.as_ref().map(|r| r.stop());
        assert!(
            self.tasks.insert(placement.name(), task.clone()).is_none(),
            "{} is made twice",
            placement.name()
        );
        self.tell(Event::Task(Arc::new(task)));
    }

    fn stop(&mut self, stopping: Stopping) {
        let name = stopping.task.name().to_owned();
        let task = self.tasks.get_mut(&name).unwrap();
        assert!(task.spec.stop.is_none(), "{name} is stopped twice");
        task.spec.stop = Some(stopping.stop);
        let task = Arc::new(task.clone());
        let of = stopping.for_job.map(|job| format!(" for {}", job.name()));
        self.stopped
            .push(format!("{}{}", short(&name), of.unwrap_or_default()));
        self.tell(Event::Task(task));
    }

    /// All decisions there are, as `task@node`; records as `task!reason`.
    pub fn run(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.step())
            .map(|p| {
                let name = p.name().replace("-uid-", "-").replace("-d-", "-");
                match p.record {
                    None => format!("{}@{}", short(&name), p.node),
                    Some(record) => format!("{}!{}", short(&name), record.reason),
                }
            })
            .collect()
    }

    pub fn end(&mut self, task: &str, phase: TaskPhase, reason: &str) {
        let now = self.now;
        let name = self.tasks.keys().find(|n| short(n) == task).expect(task).clone();
        let task = self.tasks.get_mut(&name).unwrap();
        task.status = Some(TaskStatus {
            phase,
            reason: reason.into(),
            started_steps: true,
            finished_at: phase.is_terminal().then_some(MicroTime(now)),
            ..Default::default()
        });
        let task = Arc::new(task.clone());
        self.tell(Event::Task(task));
    }

    /// The reasons a Job waits, as `reason count: message`.
    pub fn why(&mut self, job: &str) -> Vec<String> {
        self.core
            .waiting(&format!("uid-{job}"), self.now)
            .into_iter()
            .map(|w| format!("{} {}: {}", w.reason, w.count, w.message))
            .collect()
    }
}

/// A Task's name without the part of the uid and without attempt 0: `a-3`, `a-3-1`.
pub(super) fn short(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('-').collect();
    if parts.len() >= 4 {
        parts.remove(parts.len() - 3);
    }
    if parts.len() > 2 && parts.last() == Some(&"0") {
        parts.pop();
    }
    parts.join("-")
}

pub(super) fn requests(pairs: &[(&str, &str)]) -> Option<Resources> {
    Some(Resources {
        requests: pairs
            .iter()
            .map(|(k, v)| ((*k).into(), Quantity((*v).into())))
            .collect(),
        ..Default::default()
    })
}

pub(super) fn taint(key: &str) -> Taint {
    Taint {
        key: key.into(),
        value: String::new(),
        effect: api::placement::Effect::NoSchedule,
        time_added: None,
    }
}

pub(super) fn label(node: &mut Node, key: &str, value: &str) {
    let labels = node.metadata.labels.get_or_insert_default();
    labels.insert(key.into(), value.into());
}

pub(super) fn not_ready(node: &mut Node) {
    node.status.as_mut().unwrap().conditions[0].status = "Unknown".into();
}
