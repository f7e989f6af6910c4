//! From sums over indexes to a Job's counts, its phase, and whether more may start.

use super::{
    attempt::reason,
    ledger::{Ledger, Tally},
};
use crate::{
    Job, JobStatus,
    amount::{Amount, Round},
    job::JobPhase,
};
use jiff::{SignedDuration, Timestamp};

/// Numbers of indexes; the first is the sum of the seven after it, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names are those of JobStatus, which documents them
pub struct Counts {
    pub desired: u32,
    pub pending: u32,
    pub active: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub unknown: u32,
    pub cancelled: u32,
    pub skipped: u32,
    pub retries: u32,
    pub warnings: u32,
    pub compliant: u32,
    pub drifted: u32,
    pub changed: u32,
}

/// Why nothing starts for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shut {
    /// `suspend` is set.
    Suspended,
    /// PerNode: the nodes are not chosen yet.
    NotChosen,
}

/// Why nothing more starts, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Cancelled, or deleted.
    Cancelled,
    /// A failure rule says FailJob.
    FailJob,
    /// More failed or unknown indexes than `maxFailures`.
    TooManyFailures {
        /// How many failed or are unknown.
        failed: u32,
        /// How many may.
        allowed: u32,
    },
    /// `activeDeadlineSeconds` passed.
    Deadline,
}

/// Whether more may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// So many may start now.
    Open {
        /// What `parallelism` leaves.
        room: u32,
    },
    /// Not now.
    Shut(Shut),
    /// Never again.
    Over(Over),
}

/// Where a Job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// Numbers of indexes.
    pub counts: Counts,
    /// The phase they make.
    pub phase: JobPhase,
    /// Whether more may start.
    pub gate: Gate,
    /// When the first Task was made.
    pub started: Option<Timestamp>,
    /// When `activeDeadlineSeconds` passes.
    pub deadline: Option<Timestamp>,
}

impl Outlook {
    /// The reason open Tasks are to be stopped with, if they are.
    pub fn stop(&self) -> Option<&'static str> {
        match self.gate {
            Gate::Over(Over::Cancelled) => Some(reason::CANCELLED),
            Gate::Over(Over::Deadline) => Some(reason::DEADLINE),
            Gate::Open { .. } | Gate::Shut(_) | Gate::Over(Over::FailJob | Over::TooManyFailures { .. }) => {
                None
            }
        }
    }

    /// Why the Job ended so, in a sentence; empty where the counts say it all.
    pub fn message(&self) -> String {
        match self.gate {
            Gate::Over(Over::Cancelled) => "the Job was cancelled".into(),
            Gate::Over(Over::FailJob) => "a failure rule says FailJob".into(),
            Gate::Over(Over::TooManyFailures { failed, allowed }) => {
                let indexes = if failed == 1 { "index" } else { "indexes" };
                format!(
                    "{failed} {indexes} failed or unknown, maxFailures allows {allowed}: nothing more starts"
                )
            }
            Gate::Over(Over::Deadline) => "activeDeadlineSeconds passed".into(),
            Gate::Open { .. } | Gate::Shut(_) => String::new(),
        }
    }
}

impl Counts {
    /// Writes the numbers into a status.
    pub fn write(&self, status: &mut JobStatus) {
        let n = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
        status.desired = n(self.desired);
        status.pending = n(self.pending);
        status.active = n(self.active);
        status.succeeded = n(self.succeeded);
        status.failed = n(self.failed);
        status.unknown = n(self.unknown);
        status.cancelled = n(self.cancelled);
        status.skipped = n(self.skipped);
        status.retries = n(self.retries);
        status.warnings = n(self.warnings);
        status.compliant = n(self.compliant);
        status.drifted = n(self.drifted);
        status.changed = n(self.changed);
    }
}

pub(super) fn of(ledger: &Ledger, job: &Job, now: Timestamp) -> Outlook {
    let totals = &ledger.totals;
    let started = totals.made.keys().next().copied();
    let deadline = job
        .spec
        .active_deadline_seconds
        .zip(started)
        .and_then(|(seconds, start)| start.checked_add(SignedDuration::from_secs(seconds)).ok());
    let desired = ledger.desired();
    let waiting = desired - totals.active - totals.done.sum();
    let fresh = waiting - totals.waiting.sum();
    let over = over(ledger, job, desired, waiting, deadline.is_some_and(|d| d <= now));

    let mut ends = totals.done;
    if over.is_some() {
        add(&mut ends, &totals.waiting);
        ends.cancelled += fresh;
    }
    let counts = Counts {
        desired,
        pending: if over.is_some() { 0 } else { waiting },
        active: totals.active,
        succeeded: ends.succeeded,
        failed: ends.failed,
        unknown: ends.unknown,
        cancelled: ends.cancelled,
        skipped: ends.skipped,
        retries: totals.retries,
        warnings: totals.warnings,
        compliant: totals.compliant,
        drifted: totals.drifted,
        changed: totals.changed,
    };
    let chosen = !ledger.per_node || ledger.members.is_some();
    let gate = match over {
        Some(over) => Gate::Over(over),
        None if job.spec.suspend => Gate::Shut(Shut::Suspended),
        None if !chosen => Gate::Shut(Shut::NotChosen),
        None => Gate::Open {
            room: parallelism(job, desired).saturating_sub(totals.active - totals.lost),
        },
    };
    Outlook {
        counts,
        phase: phase(&counts, gate, chosen, started.is_some()),
        gate,
        started,
        deadline,
    }
}

/// How many may run at once: a number, or a percentage of the indexes.
fn parallelism(job: &Job, desired: u32) -> u32 {
    let amount = job.spec.parallelism.as_ref();
    amount.unwrap_or(&Amount::Count(1)).of(desired, Round::Up)
}

fn over(ledger: &Ledger, job: &Job, desired: u32, waiting: u32, late: bool) -> Option<Over> {
    if job.spec.cancel.is_some() || job.metadata.deletion_timestamp.is_some() {
        return Some(Over::Cancelled);
    }
    if late && waiting + ledger.totals.active > 0 {
        return Some(Over::Deadline); // before failures: it stops what runs, they do not
    }
    if ledger.totals.fail_job > 0 {
        return Some(Over::FailJob);
    }
    let failed = ledger.totals.done.failed + ledger.totals.done.unknown;
    let amount = job.spec.max_failures.as_ref();
    let allowed = amount.unwrap_or(&Amount::Count(0)).of(desired, Round::Down);
    (failed > allowed).then_some(Over::TooManyFailures { failed, allowed })
}

fn add(to: &mut Tally, more: &Tally) {
    to.succeeded += more.succeeded;
    to.skipped += more.skipped;
    to.cancelled += more.cancelled;
    to.unknown += more.unknown;
    to.failed += more.failed;
}

/// The worst of its indexes wins at the end: Failed, Unknown, Cancelled, Succeeded; skipped ones never worsen it.
fn phase(counts: &Counts, gate: Gate, chosen: bool, started: bool) -> JobPhase {
    let over = match gate {
        Gate::Over(over) => Some(over),
        Gate::Open { .. } | Gate::Shut(_) => None,
    };
    let ended = counts.active == 0 && counts.pending == 0 && (chosen || over.is_some());
    if !ended {
        return match gate {
            Gate::Shut(Shut::Suspended) if counts.active == 0 => JobPhase::Suspended,
            _ if started => JobPhase::Running,
            _ => JobPhase::Pending,
        };
    }
    let broken = matches!(over, Some(Over::FailJob | Over::Deadline));
    if counts.failed > 0 || broken {
        JobPhase::Failed
    } else if counts.unknown > 0 {
        JobPhase::Unknown
    } else if counts.cancelled > 0 || over == Some(Over::Cancelled) && counts.desired == 0 {
        JobPhase::Cancelled
    } else {
        JobPhase::Succeeded
    }
}
