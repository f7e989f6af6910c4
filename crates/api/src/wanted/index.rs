//! One index: where it stands after its attempts.

use super::{
    attempt::{Attempt, Cost, Final, Marks, Verdict},
    backoff,
    rules::Rules,
};
use crate::names;
use jiff::Timestamp;
use std::{collections::BTreeMap, fmt, sync::Arc};

/// How often the system may end an index' attempts at no cost.
const FREE_SYSTEM_ENDS: u32 = 5;

/// What tells the indexes of a Job apart, in the order they go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Indexed: the number.
    Index(u32),
    /// PerNode: the node's name.
    Node(Arc<str>),
}

impl Key {
    /// As the names of Tasks take it.
    pub fn for_name(&self) -> names::Key<'_> {
        match self {
            Key::Index(index) => names::Key::Index(*index),
            Key::Node(node) => names::Key::Node(node),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Index(index) => index.fmt(f),
            Key::Node(node) => f.write_str(node),
        }
    }
}

/// A further attempt an index waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// Its serial number.
    pub attempt: u32,
    /// The earliest start; `None` means at once.
    pub from: Option<Timestamp>,
    /// Nodes that rejected it, each with the time until which they are left alone.
    pub avoid: Vec<(Arc<str>, Timestamp)>,
    /// What the index counts as if nothing more starts.
    pub counts_as: Final,
}

/// Where an index stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// An attempt is open.
    Running {
        /// Its node is lost.
        node_lost: bool,
    },
    /// It is done.
    Done(Final),
    /// It waits for a further attempt.
    Waiting(Again),
}

/// An index and what it adds to the Job's numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Index {
    pub standing: Standing,
    /// Attempts that may have started, beyond the first.
    pub retries: u32,
    pub fail_job: bool,
    pub marks: Marks,
    /// When its first Task was made.
    pub made: Option<Timestamp>,
}

impl Index {
    /// Judges an index by its attempts, sorted by number; there must be one.
    pub fn judge(rules: &Rules, job_uid: &str, key: &Key, attempts: &[Attempt]) -> Self {
        let mut walk = Walk::default();
        for attempt in attempts {
            walk.step(rules, attempt);
        }
        let standing = match (walk.open, walk.done) {
            (Some(node_lost), _) => Standing::Running { node_lost },
            (None, Some(done)) => Standing::Done(done),
            (None, None) => Standing::Waiting(walk.again(rules, job_uid, key, attempts)),
        };
        let started = attempts.iter().filter(|a| a.verdict != Verdict::Rejected).count();
        Self {
            marks: if walk.open.is_none() {
                walk.marks
            } else {
                Marks::default()
            },
            fail_job: walk.fail_job,
            made: attempts.iter().filter_map(|a| a.made).min(),
            retries: u32::try_from(started.saturating_sub(1)).unwrap_or(u32::MAX),
            standing,
        }
    }
}

/// The attempts walked so far.
#[derive(Default)]
struct Walk {
    open: Option<bool>,
    done: Option<Final>,
    fail_job: bool,
    marks: Marks,
    counted: u32,
    system: u32,
    repeats: u32,
    last: Option<(Final, Option<Timestamp>)>,
    rejections: BTreeMap<Arc<str>, (u32, Option<Timestamp>)>,
}

impl Walk {
    fn step(&mut self, rules: &Rules, attempt: &Attempt) {
        match attempt.verdict {
            Verdict::Open { node_lost } => self.open = Some(node_lost),
            Verdict::Final(end) => self.end(end, attempt),
            Verdict::FailJob => {
                self.fail_job = true;
                self.end(Final::Failed, attempt);
            }
            Verdict::Rejected => {
                let (times, last) = self.rejections.entry(attempt.node.clone()).or_default();
                *times += 1;
                *last = attempt.time;
            }
            Verdict::Again(cost, counts_as) => {
                self.system += u32::from(cost == Cost::System);
                let counted = match cost {
                    Cost::Counted => true,
                    Cost::Free => false,
                    Cost::System => self.system > FREE_SYSTEM_ENDS,
                };
                self.counted += u32::from(counted);
                if counted && self.counted > rules.limit {
                    self.end(counts_as, attempt);
                }
                self.repeats += 1;
                self.last = Some((counts_as, attempt.time));
            }
        }
    }

    /// The first end stands: nothing may have been tried after it.
    fn end(&mut self, end: Final, attempt: &Attempt) {
        if self.done.is_none() {
            self.done = Some(end);
            self.marks = attempt.marks;
        }
    }

    fn again(&self, rules: &Rules, job_uid: &str, key: &Key, attempts: &[Attempt]) -> Again {
        let attempt = attempts.last().map_or(0, |a| a.number.saturating_add(1));
        let mut from = self.last.and_then(|(_, ended)| {
            let wait = backoff::retry(
                &rules.backoff,
                self.repeats.saturating_sub(1),
                job_uid,
                key,
                self.repeats,
            );
            ended.map(|t| later(t, wait))
        });
        let avoid: Vec<_> = self
            .rejections
            .iter()
            .filter_map(|(node, (times, last))| {
                Some((node.clone(), later((*last)?, backoff::rejection(times - 1))))
            })
            .collect();
        let on_its_node = matches!(key, Key::Node(_));
        if on_its_node {
            from = from.max(avoid.iter().map(|(_, until)| *until).max());
        }
        Again {
            attempt,
            from,
            avoid: if on_its_node { Vec::new() } else { avoid },
            counts_as: self.last.map_or(Final::Cancelled, |(counts_as, _)| counts_as),
        }
    }
}

fn later(time: Timestamp, wait: std::time::Duration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}
