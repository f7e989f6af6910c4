//! One Task as an attempt: still open, or ended with a verdict on its index.

use super::rules::Rules;
use crate::{
    Task,
    retry::FailureAction,
    task::{ResolvedAs, StepPhase, StepStatus, TaskPhase},
};
use jiff::Timestamp;
use std::sync::Arc;

/// Reasons that controllers give Tasks they end; agents give their own.
pub mod reason {
    /// A user settled an unknown outcome.
    pub const RESOLVED: &str = "Resolved";
    /// `activeDeadlineSeconds` passed.
    pub const DEADLINE: &str = "DeadlineExceeded";
    /// The Job was cancelled.
    pub const CANCELLED: &str = "Cancelled";
    /// PerNode: the node was not available (onUnavailable).
    pub const NODE_UNAVAILABLE: &str = "NodeUnavailable";
    /// PerNode: the node was deleted before it had its turn.
    pub const NODE_GONE: &str = "NodeGone";
    /// Indexed: nothing fitted until `startingDeadlineSeconds`.
    pub const NOT_STARTED: &str = "NotStarted";
    /// The Task was removed by force; whether it ran is not known.
    pub const TASK_GONE: &str = "TaskGone";
    /// The node was lost: before the claim (Rejected), or with the outcome open (Unknown).
    pub const NODE_LOST: &str = "NodeLost";
    /// The fence of a Rerun Task passed.
    pub const FENCED: &str = "Fenced";
    /// A NoExecute taint that is not tolerated.
    pub const EVICTED: &str = "Evicted";
    /// It made room for work that counts more, or its queue is drained.
    pub const PREEMPTED: &str = "Preempted";
}

/// Reasons after which an index is not tried again, whatever the rules say.
pub const FINAL_REASONS: [&str; 7] = [
    reason::RESOLVED,
    reason::DEADLINE,
    reason::CANCELLED,
    reason::NODE_UNAVAILABLE,
    reason::NODE_GONE,
    reason::NOT_STARTED,
    reason::TASK_GONE,
];

/// What an index counts as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Final {
    /// It did its work.
    Succeeded,
    /// It did not apply.
    Skipped,
    /// It was cancelled, or never started.
    Cancelled,
    /// Its outcome is not known.
    Unknown,
    /// It failed for good.
    Failed,
}

/// What a further attempt costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One of `retryStrategy.limit`.
    Counted,
    /// Nothing, by a rule or since it was preempted.
    Free,
    /// Nothing the first five times, then as [`Cost::Counted`].
    System,
}

/// What an attempt means for its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has not ended.
    Open {
        /// Its node is lost: it holds the index, but no place in `parallelism`.
        node_lost: bool,
    },
    /// The index is done.
    Final(Final),
    /// The index is done and the Job fails.
    FailJob,
    /// It may be tried again; if it is not, the index counts as the second value.
    Again(Cost, Final),
    /// It never started.
    Rejected,
}

/// Numbers about the steps of a finished attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// It passed, but not without a remark.
    pub warning: bool,
    /// Steps whose check found the host as desired.
    pub compliant: u32,
    /// Steps whose check found drift, in Audit mode.
    pub drifted: u32,
    /// Steps that ran because their check found drift.
    pub changed: u32,
}

/// What a Task tells about its index.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Serial number, from 0.
    pub number: u32,
    /// The node it was bound to.
    pub node: Arc<str>,
    /// What it means for the index.
    pub verdict: Verdict,
    /// When its Task was made; not known of one that is being made.
    pub made: Option<Timestamp>,
    /// When it ended; of an open one, when it was made.
    pub time: Option<Timestamp>,
    /// Numbers about its steps.
    pub marks: Marks,
}

impl Attempt {
    pub(super) fn of(task: &Task, rules: &Rules) -> Self {
        let made = task.metadata.creation_timestamp.as_ref().map(|t| t.0);
        let ended = task
            .status
            .as_ref()
            .and_then(|s| s.finished_at.as_ref())
            .map(|t| t.0);
        let (verdict, accepted) = judge(task, rules);
        let mut marks = marks(task, rules, verdict);
        marks.warning |= accepted;
        Self {
            number: u32::try_from(task.spec.attempt).unwrap_or(0),
            node: task.spec.node_name.as_str().into(),
            verdict,
            made,
            time: ended.or(made),
            marks,
        }
    }
}

/// The verdict, and whether a failure was accepted by a rule.
fn judge(task: &Task, rules: &Rules) -> (Verdict, bool) {
    let Some(status) = &task.status else {
        return (Verdict::Open { node_lost: false }, false);
    };
    let plain = match status.phase {
        TaskPhase::Bound | TaskPhase::Claimed | TaskPhase::Running | TaskPhase::Rebooting => Verdict::Open {
            node_lost: task.is_node_lost(),
        },
        TaskPhase::Succeeded => Verdict::Final(Final::Succeeded),
        TaskPhase::Skipped => Verdict::Final(Final::Skipped),
        TaskPhase::Cancelled => Verdict::Final(Final::Cancelled),
        TaskPhase::Rejected => Verdict::Rejected,
        TaskPhase::Failed | TaskPhase::Unknown => return failure(task, rules),
    };
    (plain, false)
}

fn failure(task: &Task, rules: &Rules) -> (Verdict, bool) {
    let status = task.status.as_ref();
    let unknown = task.phase() == TaskPhase::Unknown;
    let reason = status.map(|s| s.reason.as_str()).unwrap_or_default();
    if let (true, Some(resolution)) = (unknown, &task.spec.resolution) {
        let settled = match resolution.as_ {
            ResolvedAs::Succeeded => Final::Succeeded,
            ResolvedAs::Failed => Final::Failed,
        };
        return (Verdict::Final(settled), false);
    }
    let counts_as = if unknown || reason == reason::TASK_GONE {
        Final::Unknown
    } else {
        Final::Failed
    };
    if FINAL_REASONS.contains(&reason) {
        return (Verdict::Final(counts_as), false);
    }
    let by_system = unknown || status.is_some_and(|s| s.is_system_end());
    let action = rules.action(task, by_system);
    match action {
        Some(FailureAction::FailJob) => return (Verdict::FailJob, false),
        Some(FailureAction::FailIndex) => return (Verdict::Final(counts_as), false),
        Some(FailureAction::Ignore) => return (Verdict::Again(Cost::Free, counts_as), false),
        Some(FailureAction::Accept) => return (Verdict::Final(Final::Succeeded), true),
        Some(FailureAction::Count) | None => {}
    }
    let verdict = if by_system {
        let untouched = !unknown && !status.is_some_and(|s| s.started_steps);
        if reason == reason::PREEMPTED && (untouched || rules.rerun) {
            return (Verdict::Again(Cost::Free, counts_as), false); // however often: it did nothing wrong
        }
        if untouched || rules.rerun {
            Verdict::Again(Cost::System, counts_as)
        } else if action.is_some() && !unknown {
            Verdict::Again(Cost::Counted, counts_as)
        } else {
            Verdict::Final(counts_as)
        }
    } else if status.is_some_and(|s| s.may_retry(rules.retry_on)) {
        Verdict::Again(Cost::Counted, counts_as)
    } else {
        Verdict::Final(counts_as)
    };
    (verdict, false)
}

fn marks(task: &Task, rules: &Rules, verdict: Verdict) -> Marks {
    let steps = match &task.status {
        Some(status) if verdict == Verdict::Final(Final::Succeeded) => status.steps.as_slice(),
        _ => return Marks::default(),
    };
    let count = |test: &dyn Fn(&StepStatus) -> bool| {
        u32::try_from(steps.iter().filter(|s| test(s)).count()).unwrap_or(u32::MAX)
    };
    Marks {
        warning: steps.iter().any(|s| {
            s.phase == StepPhase::Failed || matches!(s.reason.as_str(), "Warning" | "PendingReboot")
        }),
        compliant: count(&|s| s.reason == "Compliant"),
        drifted: count(&|s| s.reason == "Drifted"),
        changed: count(&|s| {
            s.phase == StepPhase::Succeeded && s.reason != "Drifted" && rules.checked.contains(&s.name)
        }),
    }
}
