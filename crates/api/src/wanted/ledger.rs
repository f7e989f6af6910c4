//! The indexes of one Job and their attempts, held incrementally: a changed Task costs one index.

use super::{
    Wanted,
    attempt::{Attempt, Final},
    index::{Again, Index, Key, Standing},
    outlook::{self, Outlook},
    ranges::Ranges,
    rules::Rules,
};
use crate::{Job, Task, job::NodeSet};
use jiff::Timestamp;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// What is known of a Job's indexes.
#[derive(Clone, Debug)]
pub struct Ledger {
    uid: String,
    rules: Rules,
    pub(super) per_node: bool,
    live: bool,
    touched: BTreeMap<Key, (Vec<Attempt>, Index)>,
    fresh: Ranges,
    fresh_nodes: BTreeSet<Arc<str>>,
    pub(super) members: Option<BTreeSet<Arc<str>>>,
    completions: u32,
    pub(super) totals: Totals,
}

/// Sums over the indexes that have a Task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub active: u32,
    /// Of the active ones, those whose node is lost.
    pub lost: u32,
    pub done: Tally,
    /// What wait for a retry, by what they count as if there is none.
    pub waiting: Tally,
    pub retries: u32,
    pub warnings: u32,
    pub compliant: u32,
    pub drifted: u32,
    pub changed: u32,
    /// Indexes that a rule lets fail the Job.
    pub fail_job: u32,
    /// Indexes by the time their first Task was made.
    pub made: BTreeMap<Timestamp, u32>,
}

/// Numbers of indexes by what they count as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub succeeded: u32,
    pub skipped: u32,
    pub cancelled: u32,
    pub unknown: u32,
    pub failed: u32,
}

impl Tally {
    fn of(&mut self, end: Final) -> &mut u32 {
        match end {
            Final::Succeeded => &mut self.succeeded,
            Final::Skipped => &mut self.skipped,
            Final::Cancelled => &mut self.cancelled,
            Final::Unknown => &mut self.unknown,
            Final::Failed => &mut self.failed,
        }
    }

    pub fn sum(&self) -> u32 {
        self.succeeded + self.skipped + self.cancelled + self.unknown + self.failed
    }
}

/// Adds or takes away.
fn count(number: &mut u32, by: u32, add: bool) {
    *number = if add {
        number.saturating_add(by)
    } else {
        number.saturating_sub(by)
    };
}

impl Totals {
    fn count(&mut self, index: &Index, add: bool) {
        match &index.standing {
            Standing::Running { node_lost } => {
                count(&mut self.active, 1, add);
                count(&mut self.lost, u32::from(*node_lost), add);
            }
            Standing::Done(end) => count(self.done.of(*end), 1, add),
            Standing::Waiting(again) => count(self.waiting.of(again.counts_as), 1, add),
        }
        count(&mut self.retries, index.retries, add);
        count(&mut self.warnings, u32::from(index.marks.warning), add);
        count(&mut self.compliant, index.marks.compliant, add);
        count(&mut self.drifted, index.marks.drifted, add);
        count(&mut self.changed, index.marks.changed, add);
        count(&mut self.fail_job, u32::from(index.fail_job), add);
        if let Some(made) = index.made {
            let indexes = self.made.entry(made).or_default();
            count(indexes, 1, add);
            if *indexes == 0 {
                self.made.remove(&made);
            }
        }
    }
}

impl Ledger {
    /// A Job without Tasks.
    pub fn new(job: &Job) -> Self {
        let per_node = job.spec.is_per_node();
        let completions = match per_node {
            true => 0,
            false => u32::try_from(job.spec.completions.unwrap_or(1)).unwrap_or(0),
        };
        Self {
            uid: job.uid().to_owned(),
            rules: Rules::of(&job.spec),
            per_node,
            live: job.spec.node_set == NodeSet::Live,
            touched: BTreeMap::new(),
            fresh: Ranges::below(completions),
            fresh_nodes: BTreeSet::new(),
            members: None,
            completions,
            totals: Totals::default(),
        }
    }

    /// Sets the nodes of a PerNode Job. A node that left and has a Task stays.
    pub fn set_members(&mut self, members: impl IntoIterator<Item = Arc<str>>) {
        if !self.per_node {
            return;
        }
        let members: BTreeSet<_> = members.into_iter().collect();
        let touched = |node: &Arc<str>| self.touched.contains_key(&Key::Node(node.clone()));
        self.fresh_nodes = members.iter().filter(|n| !touched(n)).cloned().collect();
        self.members = Some(members);
    }

    /// Adds a node to a Live Job's members or takes it away; says whether that changed anything.
    pub fn set_member(&mut self, node: &Arc<str>, is_member: bool) -> bool {
        if !self.per_node || !self.live {
            return false;
        }
        let members = self.members.get_or_insert_default();
        let changed = if is_member {
            members.insert(node.clone())
        } else {
            members.remove(node)
        };
        if changed && is_member && !self.touched.contains_key(&Key::Node(node.clone())) {
            self.fresh_nodes.insert(node.clone());
        } else if changed && !is_member {
            self.fresh_nodes.remove(node);
        }
        changed
    }

    /// Takes in a Task as it is now; tells which index it belongs to, if to one of this Job.
    pub fn apply(&mut self, task: &Task) -> Option<Key> {
        let key = self.key_of(task)?;
        let attempt = Attempt::of(task, &self.rules);
        self.change(&key, |attempts| {
            match attempts.binary_search_by_key(&attempt.number, |a| a.number) {
                Ok(at) => attempts[at] = attempt,
                Err(at) => attempts.insert(at, attempt),
            }
        });
        Some(key)
    }

    /// Forgets a Task, as if it had never been; tells which index it belonged to.
    pub fn remove(&mut self, task: &Task) -> Option<Key> {
        let key = self.key_of(task)?;
        let number = u32::try_from(task.spec.attempt).unwrap_or(0);
        self.change(&key, |attempts| attempts.retain(|a| a.number != number));
        Some(key)
    }

    /// Which index of this Job a Task belongs to.
    pub fn key_of(&self, task: &Task) -> Option<Key> {
        if task.spec.job_ref.uid != self.uid {
            return None;
        }
        if self.per_node {
            return Some(Key::Node(task.spec.node_name.as_str().into()));
        }
        let index = u32::try_from(task.spec.index).ok()?;
        (index < self.completions).then_some(Key::Index(index))
    }

    fn change(&mut self, key: &Key, edit: impl FnOnce(&mut Vec<Attempt>)) {
        let old = self.touched.remove(key);
        let mut attempts = match old {
            Some((attempts, index)) => {
                self.totals.count(&index, false);
                attempts
            }
            None => Vec::new(),
        };
        edit(&mut attempts);
        if attempts.is_empty() {
            self.untouch(key);
            return;
        }
        match key {
            Key::Index(index) => self.fresh.remove(*index),
            Key::Node(node) => {
                self.fresh_nodes.remove(node);
            }
        }
        let index = Index::judge(&self.rules, &self.uid, key, &attempts);
        self.totals.count(&index, true);
        self.touched.insert(key.clone(), (attempts, index));
    }

    fn untouch(&mut self, key: &Key) {
        match key {
            Key::Index(index) => self.fresh.insert(*index),
            Key::Node(node) => {
                if self.members.as_ref().is_some_and(|m| m.contains(node)) {
                    self.fresh_nodes.insert(node.clone());
                }
            }
        }
    }

    /// Where an index stands; `None` if it has no attempt.
    pub fn standing(&self, key: &Key) -> Option<&Standing> {
        self.touched.get(key).map(|(_, index)| &index.standing)
    }

    /// Indexed: indexes without any attempt.
    pub fn fresh(&self) -> &Ranges {
        &self.fresh
    }

    /// PerNode: nodes without any attempt.
    pub fn fresh_nodes(&self) -> &BTreeSet<Arc<str>> {
        &self.fresh_nodes
    }

    /// How many indexes there are now.
    pub fn desired(&self) -> u32 {
        if self.per_node {
            let touched = u32::try_from(self.touched.len()).unwrap_or(u32::MAX);
            touched + u32::try_from(self.fresh_nodes.len()).unwrap_or(u32::MAX)
        } else {
            self.completions
        }
    }

    /// Counts, phase, and whether more may start.
    pub fn outlook(&self, job: &Job, now: Timestamp) -> Outlook {
        outlook::of(self, job, now)
    }

    /// All of it: what [`super::wanted`] answers.
    pub fn wanted(&self, job: &Job, now: Timestamp) -> Wanted {
        let again = |(key, (_, index)): (&Key, &(Vec<Attempt>, Index))| match &index.standing {
            Standing::Waiting(again) => Some((key.clone(), again.clone())),
            _ => None,
        };
        let again: Vec<(Key, Again)> = self.touched.iter().filter_map(again).collect();
        Wanted {
            outlook: self.outlook(job, now),
            fresh: self.fresh.clone(),
            fresh_nodes: self.fresh_nodes.iter().cloned().collect(),
            again,
        }
    }
}
