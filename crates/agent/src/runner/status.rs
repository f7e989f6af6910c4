//! From the runner's journal to the Task's status.

use crate::journal::{Entry, List, Restart, RunRecord};
use api::task::{RollbackOutcome, SYSTEM_ENDS, StepPhase, StepStatus, TaskPhase, TaskStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

/// Whether a runner ever took the task: a journal without a whole record means that nothing was started.
pub fn has_begun(records: &[Entry<RunRecord>]) -> bool {
    !records.is_empty()
}

/// The restart of the host that a run waits for.
pub fn awaited_restart(records: &[Entry<RunRecord>]) -> Option<&Restart> {
    records.iter().rev().find_map(|entry| match &entry.record {
        RunRecord::RebootRequested(restart) => Some(Some(restart)),
        RunRecord::Resumed { .. } | RunRecord::Recovering { .. } | RunRecord::Finished { .. } => Some(None),
        _ => None,
    })?
}

/// The record of a running step that restarts the host by itself, where the run was cut off in it.
pub fn restarting_step(records: &[Entry<RunRecord>]) -> Option<&Entry<RunRecord>> {
    let last = records
        .iter()
        .rev()
        .find(|e| !matches!(&e.record, RunRecord::RunnerStarted { .. }))?;
    matches!(
        last.record,
        RunRecord::StepStarted {
            restarts_host: true,
            ..
        }
    )
    .then_some(last)
}

/// How a task ends whose work was stopped for this reason.
pub fn phase_when_stopped(reason: &str) -> TaskPhase {
    if matches!(reason, "Timeout" | "DeadlineExceeded") || SYSTEM_ENDS.contains(&reason) {
        TaskPhase::Failed
    } else {
        TaskPhase::Cancelled
    }
}

/// What the API should show of a task, from its whole journal so far. `claim`, `conditions` and `logsPending` are the agent's.
///
/// The phase is Claimed until a step started or was decided, then Running until the record `finished`, then what that says.
pub fn status_from_journal(records: &[Entry<RunRecord>]) -> TaskStatus {
    let mut status = TaskStatus {
        phase: TaskPhase::Claimed,
        ..TaskStatus::default()
    };
    for entry in records {
        apply(&mut status, &entry.record, &entry.at);
    }
    status
}

/// The same for a task whose runner is gone without an end: Failed with `reason`, the step it was in too. Says truthfully whether a
/// step of `steps` had started; a journal of another boot may lie (unsynced, cloned, reverted), then the caller sets `startedSteps`.
pub fn status_when_lost(records: &[Entry<RunRecord>], reason: &str, message: &str) -> TaskStatus {
    let mut status = status_from_journal(records);
    if status.phase.is_terminal() {
        return status;
    }
    let rolling_back = records.iter().any(|e| {
        matches!(
            &e.record,
            RunRecord::StepStarted {
                list: List::Rollback,
                ..
            }
        )
    });
    if rolling_back && status.rollback.is_none() {
        status.rollback = Some(RollbackOutcome::Failed);
    }
    status.phase = TaskPhase::Failed;
    status.reason = reason.to_owned();
    status.message = message.to_owned();
    for step in status.steps.iter_mut().filter(|s| s.phase == StepPhase::Running) {
        step.phase = StepPhase::Failed;
        step.reason = reason.to_owned();
    }
    status
}

/// Takes one more record into account.
pub(super) fn apply(status: &mut TaskStatus, record: &RunRecord, at: &MicroTime) {
    match record {
        RunRecord::StepStarted {
            list, name, attempt, ..
        } => {
            running(status);
            status.started_steps |= *list == List::Steps;
            status.started_at.get_or_insert_with(|| at.clone());
            let step = step(status, name);
            step.phase = StepPhase::Running;
            step.attempts = *attempt;
            step.reason.clear();
            step.exit_code = None;
            step.started_at.get_or_insert_with(|| at.clone());
        }
        RunRecord::StepRetried {
            name,
            reason,
            exit_code,
            ..
        } => {
            let step = step(status, name);
            step.reason = reason.clone();
            step.exit_code = exit_code.map(i64::from);
        }
        RunRecord::StepEnded { result, .. } => {
            running(status);
            *step(status, &result.status.name) = result.status.clone();
        }
        RunRecord::RebootRequested(restart) => {
            status.phase = TaskPhase::Rebooting;
            status.reboots += 1;
            status.message = match restart.under_way {
                true => format!("step \"{}\" restarts the host", restart.step),
                false => format!("step \"{}\" asked for a restart of the host", restart.step),
            };
        }
        RunRecord::Resumed { .. } => {
            status.message = "the host is back from its restart; waiting until it is ready".into();
        }
        RunRecord::HostReady => {
            status.phase = TaskPhase::Running;
            status.message.clear();
        }
        RunRecord::RollbackEnded { outcome } => status.rollback = Some(*outcome),
        RunRecord::Recovering { reason, message } => {
            status.reason = reason.clone();
            status.message = message.clone();
            for step in status.steps.iter_mut().filter(|s| s.phase == StepPhase::Running) {
                step.phase = StepPhase::Failed;
                step.reason = reason.clone();
                step.finished_at = Some(at.clone());
            }
        }
        RunRecord::Finished {
            phase,
            reason,
            message,
            fatal,
            retry_code,
            outputs,
        } => {
            status.phase = *phase;
            status.reason = reason.clone();
            status.message = message.clone();
            status.fatal = *fatal;
            status.retry_code = *retry_code;
            status.outputs = outputs.clone();
            status.finished_at = Some(at.clone());
        }
        RunRecord::RunnerStarted { .. } | RunRecord::StopSeen { .. } | RunRecord::Other => {}
    }
}

fn running(status: &mut TaskStatus) {
    if status.phase == TaskPhase::Claimed {
        status.phase = TaskPhase::Running;
    }
}

fn step<'a>(status: &'a mut TaskStatus, name: &str) -> &'a mut StepStatus {
    let at = status
        .steps
        .iter()
        .position(|s| s.name == name)
        .unwrap_or_else(|| {
            status.steps.push(StepStatus {
                name: name.to_owned(),
                ..StepStatus::default()
            });
            status.steps.len() - 1
        });
    &mut status.steps[at]
}
