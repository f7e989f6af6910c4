//! What a Job still wants: the one answer that scheduler and Job controller share.
//!
//! Waiting work is not objects. [`wanted`] computes it from the Job, its members and its Tasks:
//!
//! 1. each Task becomes an [`Attempt`]: still open, or ended with a [`Verdict`] (retry rules, failure policy, system ends);
//! 2. the attempts of one index, in order, give its [`Standing`]: running, done, or waiting for the next attempt from a time on;
//! 3. the standings of all indexes add up to [`Counts`], and the counts to a [`Gate`] (may more start?) and a phase.
//!
//! Only indexes that have a Task take memory; the rest are ranges. [`Ledger`] holds the same incrementally: a changed Task costs
//! one index. `wanted` is a ledger filled once, so both can never differ.
//!
//! Rules that are easy to get wrong:
//!
//! - the number of an attempt is a serial number; only failures of steps use up `retryStrategy.limit`;
//! - a `Rejected` attempt never started: it is free and only keeps the node away for a while;
//! - a system end before any step started is free, five times an index; later it is repeated for Rerun work only, or by a rule;
//! - a Task whose node is lost holds its index, but no place in `parallelism`;
//! - when nothing more may start, what never started counts as cancelled, and what waits for a retry as its last attempt.

mod attempt;
mod backoff;
mod index;
mod ledger;
mod members;
mod outlook;
mod ranges;
mod rules;
pub mod snapshot;

pub use attempt::{Attempt, Cost, FINAL_REASONS, Final, Marks, Verdict, reason};
pub use index::{Again, Key, Standing};
pub use ledger::Ledger;
pub use members::{Chooser, Holder, chosen};
pub use outlook::{Counts, Gate, Outlook, Over, Shut};
pub use ranges::Ranges;

use crate::{Job, Task};
use jiff::Timestamp;
use std::sync::Arc;

/// What a Job wants at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Counts, phase, and whether more may start.
    pub outlook: Outlook,
    /// Indexed: indexes without any attempt, which may start at once.
    pub fresh: Ranges,
    /// PerNode: nodes without any attempt, in order.
    pub fresh_nodes: Vec<Arc<str>>,
    /// Indexes that wait for a further attempt, in order.
    pub again: Vec<(Key, Again)>,
}

/// What `job` wants at `now`. `members` are the nodes of a PerNode Job (of its snapshot, or those that match now), `None` while
/// they are not chosen yet; they mean nothing to an Indexed Job. Tasks of other Jobs are passed over.
pub fn wanted<'a>(
    job: &Job,
    members: Option<&[Arc<str>]>,
    tasks: impl IntoIterator<Item = &'a Task>,
    now: Timestamp,
) -> Wanted {
    let mut ledger = Ledger::new(job);
    if let Some(members) = members {
        ledger.set_members(members.iter().cloned());
    }
    for task in tasks {
        ledger.apply(task);
    }
    ledger.wanted(job, now)
}

#[cfg(test)]
mod tests;
