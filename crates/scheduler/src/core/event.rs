//! What the core is told, and what it decides.

use super::job::Record;
use api::{Job, Node, Queue, Target, Task, names, placement::Labels, task::Stop, wanted::Key};
use std::{sync::Arc, time::Duration};

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A Job is there, as shown.
    Job(Arc<Job>),
    /// The Job of this uid is gone.
    JobGone(String),
    /// The nodes of a PerNode Job, from its snapshot.
    Members {
        /// Uid of the Job.
        job: String,
        /// Names of its nodes.
        nodes: Vec<Arc<str>>,
    },
    /// A Task is there, as shown.
    Task(Arc<Task>),
    /// A Task is gone; shown as last seen.
    TaskGone(Arc<Task>),
    /// A Node is there, as shown.
    Node(Arc<Node>),
    /// The Node of this name is gone.
    NodeGone(String),
    /// A Queue is there, as shown.
    Queue(Arc<Queue>),
    /// The Queue of this name is gone.
    QueueGone(String),
    /// A Target is there, as shown.
    Target(Arc<Target>),
    /// The Target of this name is gone.
    TargetGone(String),
    /// A Namespace has these labels.
    Namespace(String, Labels),
    /// The Namespace of this name is gone.
    NamespaceGone(String),
    /// The Task of a decision could not be made.
    Refused {
        /// The decision.
        placement: Box<Placement>,
        /// Why.
        message: String,
        /// How long to leave the Job alone.
        wait: Duration,
    },
    /// A Task could not be stopped; that is tried again if it is still called for.
    NotStopped(Arc<Task>),
}

/// What the core decided.
#[derive(Clone, Debug)]
pub enum Decision {
    /// Make a Task.
    Place(Placement),
    /// Stop a Task.
    Stop(Stopping),
}

/// A decision: stop this Task; its work runs again at no cost.
#[derive(Clone, Debug)]
pub struct Stopping {
    /// The Task.
    pub task: Arc<Task>,
    /// How.
    pub stop: Stop,
    /// The Job that needs its place; none where its queue is drained.
    pub for_job: Option<Arc<Job>>,
}

/// A decision: make this Task.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The Job as it was when decided.
    pub job: Arc<Job>,
    /// Which index.
    pub key: Key,
    /// The number it is shown with.
    pub index: u32,
    /// How many indexes the Job has.
    pub count: u32,
    /// Serial number of the attempt.
    pub attempt: u32,
    /// The node; of an index that could not be placed a name that no node has.
    pub node: Arc<str>,
    /// Set if nothing is to run: the Task is the record of that.
    pub record: Option<Record>,
}

impl Placement {
    /// The name of the Task.
    pub fn name(&self) -> String {
        names::task(self.job.name(), self.job.uid(), self.key.for_name(), self.attempt)
    }
}
