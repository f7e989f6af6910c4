//! A Job as the scheduler holds it: its ledger, and which of its indexes may start, wait for a time, or wait for their node.

use super::{
    queue::{LaneId, Order},
    signature::SignatureId,
    world::NodeId,
};
use api::{
    Job, Task,
    job::{NodeSet, Waiting},
    task::{Stop, TaskPhase},
    wanted::{Chooser, Key, Ledger, Standing},
};
use jiff::Timestamp;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

/// What a Task made only as a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// A stable code.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

impl Record {
    /// How the Task says it: made with a stop, so that no agent claims it.
    pub fn stop(&self) -> Stop {
        Stop {
            reason: self.reason.to_owned(),
            message: self.message.clone(),
            grace_seconds: 0,
            force: false,
        }
    }
}

#[derive(Debug)]
pub(crate) struct JobState {
    pub job: Arc<Job>,
    pub order: Order,
    pub signature: SignatureId,
    pub ledger: Ledger,
    /// Live PerNode: how nodes that join are chosen.
    pub chooser: Option<Chooser>,
    /// PerNode: members in order, for their positions.
    members: Vec<Arc<str>>,
    /// Indexes that may start now; of an Indexed Job only those tried before.
    pub due: BTreeSet<Key>,
    /// Indexes that may start later.
    pub later: BTreeMap<Key, Timestamp>,
    /// Of those, the ones that wait only since nodes that would take them rejected them lately.
    shunned: BTreeSet<Key>,
    /// PerNode: nodes with an item that will not do now.
    pub parked: BTreeSet<Arc<str>>,
    /// PerNode: since when nodes have been found unavailable.
    pub unavailable_since: BTreeMap<Arc<str>, Timestamp>,
    /// Indexes that end without a start, to be recorded.
    pub records: BTreeMap<Key, Record>,
    /// Since when it has waited without a start.
    pub waiting_since: Timestamp,
    /// Its Tasks were refused: not before, and why.
    pub paused: Option<(Timestamp, String)>,
    pub in_lane: bool,
    /// What was last said about why it waits.
    pub told: Vec<Waiting>,
    /// When that is looked at again.
    pub look_at: Option<Timestamp>,
    failures: HashMap<NodeId, u32>,
    running: HashMap<NodeId, u32>,
}

impl JobState {
    pub fn new(job: Arc<Job>, signature: SignatureId, now: Timestamp) -> Self {
        let live = job.spec.is_per_node() && job.spec.node_set == NodeSet::Live;
        Self {
            order: order(&job),
            signature,
            ledger: Ledger::new(&job),
            chooser: live.then(|| Chooser::of(&job.spec)),
            members: Vec::new(),
            due: BTreeSet::new(),
            later: BTreeMap::new(),
            shunned: BTreeSet::new(),
            parked: BTreeSet::new(),
            unavailable_since: BTreeMap::new(),
            records: BTreeMap::new(),
            waiting_since: now,
            paused: None,
            in_lane: false,
            told: job.status.as_ref().map(|s| s.waiting.clone()).unwrap_or_default(),
            look_at: None,
            failures: HashMap::new(),
            running: HashMap::new(),
            job,
        }
    }

    pub fn uid(&self) -> &Arc<str> {
        &self.order.uid
    }

    pub fn lane(&self) -> LaneId {
        if self.job.spec.is_per_node() {
            LaneId::Own(self.uid().clone())
        } else {
            LaneId::Shared(self.signature)
        }
    }

    pub fn set_members(&mut self, mut members: Vec<Arc<str>>) {
        members.sort();
        self.ledger.set_members(members.iter().cloned());
        self.due
            .extend(self.ledger.fresh_nodes().iter().cloned().map(Key::Node));
        self.members = members;
    }

    /// Live: a node matches now, or no longer.
    pub fn set_member(&mut self, node: &Arc<str>, is_member: bool) {
        if !self.ledger.set_member(node, is_member) {
            return;
        }
        let key = Key::Node(node.clone());
        match (self.members.binary_search(node), is_member) {
            (Err(at), true) => self.members.insert(at, node.clone()),
            (Ok(at), false) => drop(self.members.remove(at)),
            _ => {}
        }
        if is_member && self.ledger.fresh_nodes().contains(node) {
            self.due.insert(key);
        } else if !is_member && self.ledger.standing(&key).is_none() {
            self.due.remove(&key);
            self.parked.remove(node);
        }
    }

    /// The number an index is shown with.
    pub fn position(&self, key: &Key) -> u32 {
        match key {
            Key::Index(index) => *index,
            Key::Node(node) => {
                let at = self.members.binary_search(node).unwrap_or_else(|at| at);
                u32::try_from(at).unwrap_or(u32::MAX)
            }
        }
    }

    /// Brings an index to where the ledger says it stands. Tells when it may start, if later.
    pub fn settle(&mut self, key: &Key, now: Timestamp) -> Option<Timestamp> {
        self.due.remove(key);
        self.later.remove(key);
        self.shunned.remove(key);
        if let Key::Node(node) = key {
            self.parked.remove(node);
        }
        match self.ledger.standing(key) {
            Some(Standing::Waiting(again)) => {
                let from = again.from.filter(|from| *from > now);
                match from {
                    Some(from) => drop(self.later.insert(key.clone(), from)),
                    None => drop(self.due.insert(key.clone())),
                }
                from
            }
            Some(_) => None,
            None => {
                if let Key::Node(node) = key
                    && self.ledger.fresh_nodes().contains(node)
                {
                    self.due.insert(key.clone());
                }
                None
            }
        }
    }

    /// An index waits until a node may be tried that rejected it lately, or another node turns up.
    pub fn shun(&mut self, key: Key, until: Timestamp) {
        self.due.remove(&key);
        self.shunned.insert(key.clone());
        self.later.insert(key, until);
    }

    /// Another node may have turned up.
    pub fn unshun(&mut self) {
        for key in std::mem::take(&mut self.shunned) {
            if self.later.remove(&key).is_some() {
                self.due.insert(key);
            }
        }
    }

    /// The time of an index has come.
    pub fn is_due(&mut self, key: Key, now: Timestamp) {
        if self.later.get(&key).is_some_and(|at| *at <= now) {
            self.later.remove(&key);
            self.shunned.remove(&key);
            self.due.insert(key);
        }
    }

    /// The first index that may start.
    pub fn next_key(&self) -> Option<Key> {
        let fresh = self.ledger.fresh().first().map(Key::Index);
        let due = self.due.first();
        match (due, fresh) {
            (Some(due), Some(fresh)) => Some(due.clone().min(fresh)),
            (due, fresh) => due.cloned().or(fresh),
        }
    }

    /// How many indexes could start if there were room for all.
    pub fn ready_count(&self) -> u32 {
        let due = u32::try_from(self.due.len()).unwrap_or(u32::MAX);
        self.ledger.fresh().len().saturating_add(due)
    }

    /// Serial number of the next attempt of an index.
    pub fn next_attempt(&self, key: &Key) -> u32 {
        match self.ledger.standing(key) {
            Some(Standing::Waiting(again)) => again.attempt,
            _ => 0,
        }
    }

    /// Nodes that must not get this index now, with the time until which.
    pub fn avoided(&self, key: &Key) -> &[(Arc<str>, Timestamp)] {
        match self.ledger.standing(key) {
            Some(Standing::Waiting(again)) => &again.avoid,
            _ => &[],
        }
    }

    pub fn count_running(&mut self, node: NodeId, more: bool) {
        let n = self.running.entry(node).or_default();
        *n = if more { *n + 1 } else { n.saturating_sub(1) };
        if *n == 0 {
            self.running.remove(&node);
        }
    }

    pub fn count_failure(&mut self, node: NodeId, task: &Task) {
        if matches!(task.phase(), TaskPhase::Failed | TaskPhase::Rejected) {
            *self.failures.entry(node).or_default() += 1;
        }
    }

    pub fn failures_on(&self, node: NodeId) -> u32 {
        self.failures.get(&node).copied().unwrap_or(0)
    }

    pub fn running_on(&self, node: NodeId) -> u32 {
        self.running.get(&node).copied().unwrap_or(0)
    }
}

/// The place of a Job in its queue.
pub(crate) fn order(job: &Job) -> Order {
    let created = job.metadata.creation_timestamp.as_ref();
    Order {
        priority: Reverse(job.spec.rank()),
        created: created.map_or(Timestamp::MIN, |t| t.0),
        uid: job.uid().into(),
    }
}
