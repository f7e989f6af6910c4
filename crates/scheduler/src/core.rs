//! The scheduler's core: a deterministic state machine. Events in, decisions out; no clock, no randomness, no I/O of its own.
//!
//! [`Core::apply`] takes in an event, [`Core::next`] makes one decision in numbered phases:
//!
//! 1. timers that are due bring indexes back (backoff, rejections, pauses, deadlines);
//! 2. Tasks that are to be stopped are named;
//! 3. indexes that end without a start are recorded;
//! 4. work that has been parked for long gets a node reserved, so that small work does not starve it;
//! 5. a queue is chosen: highest tier, within quota before borrowing, then the one that was given the least by weight;
//! 6. its head is taken: priority, age, uid, index. Retries keep their place;
//! 7. nodes are filtered and scored (`filters`, `scores`); PerNode items carry their node;
//! 8. the best is assumed taken at once, before any watch shows it, and returned. If none fits, room is made where the queue may do
//!    that ([`stopping`]); else the lane is parked.
//!
//! The cost of a placement depends on neither the amount of waiting work (lanes of equal work, ranges of indexes) nor much on the
//! number of nodes (bit sets per signature).

mod amounts;
mod apart;
mod bits;
mod crowd;
mod deadlines;
mod event;
mod explain;
mod filters;
mod freed;
mod intake;
mod job;
mod lanes;
mod place;
mod queue;
mod quota;
mod scores;
mod signature;
mod signing;
mod spread;
mod starving;
mod stopping;
mod tasks;
mod timers;
mod topology;
mod wake;
mod world;

pub use event::{Decision, Event, Placement, Stopping};
pub use job::Record;

use amounts::Amounts;
use api::{Task, wanted::Key};
use explain::Explanations;
use jiff::Timestamp;
use job::JobState;
use queue::{Order, QueueState};
use signature::{SignatureId, Signatures};
use signing::Counted;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};
use timers::Timers;
use world::{NodeId, World};

/// See the module.
#[derive(Debug, Default)]
pub struct Core {
    world: World,
    signatures: Signatures,
    queues: BTreeMap<String, QueueState>,
    jobs: BTreeMap<Arc<str>, JobState>,
    /// Tasks by `<namespace>/<name>`.
    tasks: HashMap<Arc<str>, TaskUse>,
    /// Names of Tasks by the uid of their Job, whether that is known or not.
    tasks_of: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Signatures with a parked lane.
    parked: BTreeSet<SignatureId>,
    /// Jobs by signature with an index that waits for other nodes than those which rejected it lately.
    shunning: HashMap<SignatureId, BTreeSet<Arc<str>>>,
    /// PerNode Jobs with an item that waits for a node.
    waiters: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// PerNode Jobs that take in nodes as they join.
    live: BTreeSet<Arc<str>>,
    /// Jobs with something to record.
    recording: BTreeSet<Arc<str>>,
    /// Nodes kept free for work that starved.
    reserved: BTreeMap<NodeId, (Order, String)>,
    /// Tasks to be stopped.
    stops: VecDeque<Stopping>,
    /// When starved work is looked for next.
    starved_at: Option<Timestamp>,
    timers: Timers,
    explanations: Explanations,
    seed: usize,
}

/// What a Task takes on its node.
#[derive(Debug)]
struct TaskUse {
    task: Arc<Task>,
    node: NodeId,
    job: Arc<str>,
    key: Option<Key>,
    queue: Option<String>,
    /// What it holds of the node; nothing once it ended.
    holds: Option<Amounts>,
    /// What it is counted into, for Jobs that are spread or kept apart.
    counted: Option<Counted>,
    /// Whether it is to be stopped, though the watch has not shown that yet.
    stopping: bool,
    /// Whether the watch has shown it.
    confirmed: bool,
}

impl Core {
    /// A core that knows nothing yet. The seed decides where searches begin.
    pub fn new(seed: u64) -> Self {
        Self {
            seed: usize::try_from(seed % 1_000_003).unwrap_or(0),
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests;
