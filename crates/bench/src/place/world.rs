//! The world the core is told of: nodes, Jobs, and Tasks that are made as it decides.

use super::shape::{COLOUR, Shape, ZONE, ZONES, requests};
use api::{
    Job, JobSpec, Node, Queue, QueueSpec, Target, Task,
    amount::Amount,
    placement::{Effect, LabelSelector, Labels, Taint},
    quantity::Quantity,
    queue::Preemption,
    target::Access,
    task::{TaskPhase, TaskStatus},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use scheduler::core::{Core, Decision, Event, Placement, Stopping};
use std::{collections::VecDeque, sync::Arc};

/// Namespace and queue of all work.
const NAMESPACE: &str = "bench";
/// CPUs of a node.
pub const CPUS: usize = 4;
/// A Task ends, or a node comes or goes, every so many placements.
const CHURN: u32 = 10;

pub struct World {
    core: Core,
    now: Timestamp,
    shape: Shape,
    nodes: Vec<Arc<Node>>,
    /// Tasks that run, oldest first.
    running: VecDeque<Arc<Task>>,
    gone: Option<usize>,
}

impl World {
    /// Nodes with room for all that is to run, and the Tasks that run before.
    pub fn new(shape: Shape, nodes: usize, initial: u32, measured: u32) -> Self {
        let mut world = Self {
            core: Core::new(1),
            now: Timestamp::UNIX_EPOCH,
            shape,
            nodes: Vec::new(),
            running: VecDeque::new(),
            gone: None,
        };
        world.tell(Event::Namespace(NAMESPACE.into(), Labels::new()));
        let queue = QueueSpec {
            weight: 1,
            preemption: Preemption::LowerPriority,
            ..Default::default()
        };
        world.tell(Event::Queue(Arc::new(Queue::new("default", queue))));
        let mut all = Target::new("all", Default::default());
        all.spec.selector = Some(LabelSelector::default());
        all.spec.access = vec![Access::default()];
        world.tell(Event::Target(Arc::new(all)));
        let tasks = initial as usize + measured as usize;
        let each = tasks.div_ceil(nodes.max(1)) * ZONES * 2 + 2;
        for number in 0..nodes {
            let node = Arc::new(node(shape, number, each));
            world.tell(Event::Node(node.clone()));
            world.nodes.push(node);
        }
        let full = u32::try_from(nodes * CPUS).unwrap_or(u32::MAX);
        let runs = if shape == Shape::Preempt { full } else { initial };
        if runs > 0 {
            world.job("initial", runs, |spec| shape.initial(spec));
        }
        while let Some(Decision::Place(placement)) = world.decide() {
            world.made(&placement);
        }
        world
    }

    /// The work that is measured, and what waits beside it.
    pub fn submit(&mut self, runs: u32) {
        let shape = self.shape;
        if shape == Shape::Unschedulable {
            for number in 0..runs {
                self.job(&format!("never-{number}"), 1, |spec| {
                    spec.resources = requests("1000", "500Mi");
                });
            }
        }
        if shape.one_job() {
            self.job("measured", runs, |spec| shape.measured(spec));
        } else {
            for number in 0..runs {
                self.job(&format!("measured-{number}"), 1, |spec| shape.measured(spec));
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.core.apply(event, self.now);
    }

    pub fn decide(&mut self) -> Option<Decision> {
        self.core.next(self.now)
    }

    /// Why something waits.
    pub fn why(&mut self) -> String {
        let told = self
            .core
            .explanations(1, self.now + SignedDuration::from_hours(1));
        let reasons = told.iter().flat_map(|(_, waiting)| waiting);
        reasons.map(|w| w.message.clone()).collect::<Vec<_>>().join("; ")
    }

    fn job(&mut self, name: &str, completions: u32, edit: impl FnOnce(&mut JobSpec)) {
        let mut job = Job::new(
            name,
            JobSpec {
                queue_name: "default".into(),
                completions: i32::try_from(completions).ok(),
                parallelism: Some(Amount::Percent("100%".into())),
                ..Default::default()
            },
        );
        job.metadata.namespace = Some(NAMESPACE.into());
        job.metadata.uid = Some(format!("uid-{name}"));
        job.metadata.creation_timestamp = Some(Time(self.now));
        if self.shape == Shape::AntiAffinity {
            job.metadata.labels = Some([(COLOUR.to_owned(), "green".to_owned())].into());
        }
        edit(&mut job.spec);
        self.tell(Event::Job(Arc::new(job)));
    }

    /// The Task of a decision is made, and the watch shows it, claimed.
    pub fn made(&mut self, placement: &Placement) {
        let mut task = Task::default();
        task.metadata.namespace = Some(NAMESPACE.into());
        task.metadata.name = Some(placement.name());
        task.metadata.uid = task.metadata.name.clone();
        task.metadata.creation_timestamp = Some(Time(self.now));
        task.spec.job_ref.name = placement.job.name().into();
        task.spec.job_ref.uid = placement.job.uid().into();
        task.spec.index = i32::try_from(placement.index).unwrap_or(i32::MAX);
        task.spec.attempt = i32::try_from(placement.attempt).unwrap_or(i32::MAX);
        task.spec.node_name = placement.node.to_string();
        task.status = Some(TaskStatus {
            phase: TaskPhase::Running,
            ..Default::default()
        });
        let task = Arc::new(task);
        self.running.push_back(task.clone());
        self.tell(Event::Task(task));
    }

    /// A Task that is stopped ends.
    pub fn stopped(&mut self, stopping: &Stopping) {
        self.end(&stopping.task, TaskPhase::Failed, &stopping.stop.reason);
    }

    fn end(&mut self, task: &Task, phase: TaskPhase, reason: &str) {
        let mut task = task.clone();
        task.status = Some(TaskStatus {
            phase,
            reason: reason.to_owned(),
            finished_at: Some(MicroTime(self.now)),
            ..Default::default()
        });
        self.tell(Event::Task(Arc::new(task)));
    }

    /// What else happens in a busy fleet.
    pub fn churn(&mut self, placed: u32) {
        if !placed.is_multiple_of(CHURN) {
            return;
        }
        if let Some(task) = self.running.pop_front() {
            self.end(&task, TaskPhase::Succeeded, "");
        }
        match self.gone.take() {
            Some(number) => self.tell(Event::Node(self.nodes[number].clone())),
            None => {
                let number = placed as usize % self.nodes.len();
                self.tell(Event::NodeGone(self.nodes[number].name().to_owned()));
                self.gone = Some(number);
            }
        }
    }
}

fn node(shape: Shape, number: usize, slots: usize) -> Node {
    let mut node = Node::new(&format!("node-{number}"), Default::default());
    let zone = format!("zone-{}", number % ZONES);
    node.metadata.labels = Some([(ZONE.to_owned(), zone)].into());
    if shape == Shape::Taints && number.is_multiple_of(2) {
        node.spec.taints = vec![Taint {
            key: "maintenance".into(),
            value: String::new(),
            effect: Effect::NoSchedule,
            time_added: None,
        }];
    }
    let cpus = if shape == Shape::Preempt {
        CPUS
    } else {
        CPUS.max(slots)
    };
    let status = node.status.get_or_insert_default();
    for (resource, amount) in [
        ("slots", slots.max(CPUS).to_string()),
        ("cpu", cpus.to_string()),
        ("memory", format!("{}Gi", slots.max(CPUS))),
    ] {
        status.allocatable.insert(resource.into(), Quantity(amount));
    }
    status.conditions.push(Condition {
        type_: "Ready".into(),
        status: "True".into(),
        reason: "Heartbeat".into(),
        message: String::new(),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        observed_generation: None,
    });
    node
}
