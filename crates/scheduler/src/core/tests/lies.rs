//! Planted bugs. The core is told something that is not so; from then on it decides exactly as a core would that has the bug, while
//! the oracle judges by what is true.

use crate::core::Event;
use api::{
    Job, Node, Queue, Task,
    amount::Amount,
    quantity::Quantity,
    queue::{Ordering, StopPolicy},
};
use std::sync::Arc;

/// One kind of bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lie {
    /// Nodes seem to have a slot more than they have.
    SlotTooMany,
    /// What work asks for is not counted.
    RequestsIgnored,
    TaintsIgnored,
    CordonIgnored,
    SelectorIgnored,
    SpreadIgnored,
    /// The skew may be one more than it may.
    SpreadOffByOne,
    AntiAffinityIgnored,
    /// Labels of Jobs are not looked at: what others keep apart from is not found.
    AntiAffinityOneWay,
    PriorityIgnored,
    TierIgnored,
    StrictIgnored,
    MaxRunningIgnored,
    QuotaIgnored,
    HoldIgnored,
    ParallelismIgnored,
    SuspendIgnored,
    /// A node that changed is not looked at again.
    NodeChangeMissed,
    /// What a Task held is not given back.
    EndMissed,
    /// A failed attempt is taken for none.
    FailureForgotten,
}

pub(super) const ALL: [Lie; 20] = [
    Lie::SlotTooMany,
    Lie::RequestsIgnored,
    Lie::TaintsIgnored,
    Lie::CordonIgnored,
    Lie::SelectorIgnored,
    Lie::SpreadIgnored,
    Lie::SpreadOffByOne,
    Lie::AntiAffinityIgnored,
    Lie::AntiAffinityOneWay,
    Lie::PriorityIgnored,
    Lie::TierIgnored,
    Lie::StrictIgnored,
    Lie::MaxRunningIgnored,
    Lie::QuotaIgnored,
    Lie::HoldIgnored,
    Lie::ParallelismIgnored,
    Lie::SuspendIgnored,
    Lie::NodeChangeMissed,
    Lie::EndMissed,
    Lie::FailureForgotten,
];

impl Lie {
    /// What the core is told instead; nothing if it is not told at all.
    pub fn twist(self, event: Event) -> Option<Event> {
        Some(match event {
            Event::Node(node) if self == Lie::NodeChangeMissed && node.metadata.generation > Some(1) => {
                return None;
            }
            Event::Node(node) => Event::Node(edited(&node, |n| self.node(n))),
            Event::Job(job) => Event::Job(edited(&job, |j| self.job(j))),
            Event::Queue(queue) => Event::Queue(edited(&queue, |q| self.queue(q))),
            Event::Task(task) if self == Lie::EndMissed && task.phase().is_terminal() => return None,
            Event::Task(task) => Event::Task(edited(&task, |t| self.task(t))),
            other => other,
        })
    }

    fn node(self, node: &mut Node) {
        match self {
            Lie::SlotTooMany => {
                let allocatable = &mut node.status.as_mut().unwrap().allocatable;
                let slots = allocatable["slots"].value().unwrap() + 1;
                allocatable.insert("slots".into(), Quantity(slots.to_string()));
            }
            Lie::TaintsIgnored => node.spec.taints.clear(),
            Lie::CordonIgnored => node.spec.unschedulable = false,
            _ => {}
        }
    }

    fn job(self, job: &mut Job) {
        let spec = &mut job.spec;
        match self {
            Lie::RequestsIgnored => spec.resources = None,
            Lie::SelectorIgnored => spec.node_selector.clear(),
            Lie::SpreadIgnored => spec.topology_spread_constraints.clear(),
            Lie::SpreadOffByOne => spec
                .topology_spread_constraints
                .iter_mut()
                .for_each(|c| c.max_skew += 1),
            Lie::AntiAffinityIgnored => spec.affinity = None,
            Lie::AntiAffinityOneWay => job.metadata.labels = None,
            Lie::PriorityIgnored => spec.priority = None,
            Lie::ParallelismIgnored => spec.parallelism = Some(Amount::Count(1000)),
            Lie::SuspendIgnored => spec.suspend = false,
            _ => {}
        }
    }

    fn queue(self, queue: &mut Queue) {
        let spec = &mut queue.spec;
        match self {
            Lie::TierIgnored => spec.priority = 0,
            Lie::StrictIgnored => spec.ordering = Ordering::PriorityThenFifo,
            Lie::MaxRunningIgnored => spec.max_running = None,
            Lie::QuotaIgnored => spec.quota.clear(),
            Lie::HoldIgnored => spec.stop_policy = StopPolicy::None,
            _ => {}
        }
    }

    fn task(self, task: &mut Task) {
        if self == Lie::FailureForgotten
            && let Some(status) = &mut task.status
            && status.phase == api::task::TaskPhase::Failed
        {
            status.phase = api::task::TaskPhase::Rejected;
        }
    }
}

fn edited<T: Clone>(object: &Arc<T>, edit: impl FnOnce(&mut T)) -> Arc<T> {
    let mut object = (**object).clone();
    edit(&mut object);
    Arc::new(object)
}
