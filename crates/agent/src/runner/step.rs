//! One step: `when`, then tries until one counts, then its end in the journal.

use super::{
    attempt::{self, Attempt, Outcome},
    backoff,
    control::{Cause, Halt},
    reboot,
    run::{Error, Run},
    scope,
};
use crate::{
    crilog::Log,
    journal::{List, RunRecord, StepResult},
    platform::Usage,
};
use api::{
    exit_code, expr,
    retry::RetryOn,
    step::{ExitClass, Step},
    task::{StepPhase, StepStatus},
};

/// Longest message of a status, in characters.
const MESSAGE: usize = 4000;

/// What a step's end means for the task.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// The next step may run.
    Passed,
    /// The host is to be restarted before the work goes on.
    Restart {
        /// Whether that is under way already.
        under_way: bool,
    },
    /// The task does not apply here.
    NotApplicable,
    Failed(Failure),
    /// The task is to stop.
    Halted(Halt),
}

/// How a step failed.
#[derive(Clone, Debug, Default)]
pub(super) struct Failure {
    pub reason: String,
    pub message: String,
    pub fatal: bool,
    pub retry_code: bool,
    /// The shell never began: this may be tried once more, whatever the step says of retries.
    pub never_began: bool,
    pub abandoned: bool,
}

/// Runs a step to its end.
pub(super) async fn run(run: &mut Run, list: List, place: usize, step: &Step) -> Result<End, Error> {
    let begun = run.now();
    let mut log = None;
    let mut spent = Usage::default();
    let mut tried = 0;
    let outcome = match kept_back(run, step) {
        None => tries(run, list, place, step, &mut log, &mut spent, &mut tried).await?,
        Some(outcome) => outcome,
    };
    let outcome = reboot::after(run, list, step, outcome);
    let shown = if matches!(
        outcome.end,
        End::Passed | End::NotApplicable | End::Restart { .. }
    ) {
        None
    } else {
        log.as_ref()
    };
    let message = run.masks.text(&with_last_lines(&outcome.message, shown));
    let log_bytes = log
        .as_mut()
        .map(|log| i64::try_from(log.finish()).unwrap_or(i64::MAX));
    let before = run.step(&step.name).cloned();
    let ran = before.is_some();
    let before = before.unwrap_or_default();
    let result = StepResult {
        status: StepStatus {
            name: step.name.clone(),
            phase: outcome.phase,
            reason: outcome.reason.clone(),
            message,
            attempts: if log.is_some() { tried } else { 0 },
            exit_code: outcome.exit.as_ref().map(|e| i64::from(e.code)),
            exit_name: outcome.exit.as_ref().map(exit_name).unwrap_or_default(),
            started_at: before.started_at.or_else(|| log_bytes.map(|_| begun)),
            finished_at: Some(run.now()),
            outputs: outcome.outputs,
            log_bytes,
            peak_memory_bytes: (ran && spent.peak_memory > 0)
                .then(|| i64::try_from(spent.peak_memory).unwrap_or(i64::MAX)),
            cpu_seconds: ran.then_some(spent.cpu.as_secs_f64()),
            detached: outcome.detached,
        },
        class: outcome.class,
    };
    run.record(&RunRecord::StepEnded {
        list,
        place,
        result: Box::new(result),
    })?;
    Ok(outcome.end)
}

/// The end of a step that `when` does not let run.
fn kept_back(run: &Run, step: &Step) -> Option<Outcome> {
    let when = step.when.as_ref()?;
    match expr::evaluate_bool(when, &scope::of(run)) {
        Ok(true) => None,
        Ok(false) => {
            let message = format!("when: {when} is false");
            Some(Outcome::passed(StepPhase::Skipped, "When", message))
        }
        Err(error) => Some(Outcome::failed("WhenError", format!("when: {error}"))),
    }
}

async fn tries(
    run: &mut Run,
    list: List,
    place: usize,
    step: &Step,
    log: &mut Option<Log>,
    spent: &mut Usage,
    number: &mut i32,
) -> Result<Outcome, Error> {
    let strategy = step.retry_strategy.clone().unwrap_or_default();
    let mut one_more = true;
    loop {
        *number += 1;
        let number = *number;
        let attempt = Attempt::new(run, list, place, step, number);
        let outcome = attempt::run(attempt, log, spent).await?;
        let again = match &outcome.end {
            End::Failed(f) if f.fatal || f.abandoned => false,
            End::Failed(f) if f.never_began && std::mem::take(&mut one_more) => true,
            End::Failed(f) => {
                (strategy.retry_on == RetryOn::AnyFailure || f.retry_code) && number <= strategy.limit
            }
            _ => false,
        };
        if !again {
            return Ok(outcome);
        }
        let wait = backoff::wait(&strategy.backoff, number, backoff::random());
        if let Some(log) = log {
            let text = format!(
                "try {number} failed ({}); the next in {:.1} s",
                outcome.reason,
                wait.as_secs_f64()
            );
            log.note(&run.masks.text(&text));
        }
        run.record(&RunRecord::StepRetried {
            name: step.name.clone(),
            attempt: number,
            reason: outcome.reason.clone(),
            exit_code: outcome.exit.as_ref().map(|e| e.code),
            wait_millis: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        })?;
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            halt = run.control.halted(None) => return Ok(Outcome::halted(halt)),
        }
    }
}

/// A field of a step this agent cannot honour.
pub(super) fn unsupported(step: &Step) -> Option<&'static str> {
    let store = |v: &api::data::EnvVar| v.value_from.as_ref().is_some_and(|f| f.store_ref.is_some());
    [
        (
            step.script_file.as_ref().is_some_and(|f| f.artifact.is_some()),
            "scriptFile.artifact",
        ),
        (step.image.is_some(), "image"),
        (step.security_context.is_some(), "securityContext"),
        (!step.artifacts.is_empty(), "artifacts"),
        (
            step.mounts
                .iter()
                .any(|m| m.artifact.is_some() || m.store_ref.is_some()),
            "mounts",
        ),
        (step.env.iter().any(store), "env.valueFrom.storeRef"),
    ]
    .into_iter()
    .find_map(|(set, field)| set.then_some(field))
}

fn exit_name(exit: &crate::platform::Exit) -> String {
    if exit.name.is_empty() {
        exit_code::ntstatus(exit.code).unwrap_or_default().to_owned()
    } else {
        exit.name.clone()
    }
}

fn with_last_lines(message: &str, log: Option<&Log>) -> String {
    let lines: Vec<&str> = log.into_iter().flat_map(Log::last_lines).collect();
    let text = if lines.is_empty() {
        message.to_owned()
    } else {
        format!("{message}; last lines:\n{}", lines.join("\n"))
    };
    cut(text)
}

/// A message as long as a status may hold.
pub(super) fn cut(text: String) -> String {
    match text.char_indices().nth(MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Outcome {
    pub fn passed(phase: StepPhase, reason: &str, message: String) -> Self {
        Self {
            phase,
            reason: reason.to_owned(),
            message,
            ..Self::new(End::Passed)
        }
    }

    pub fn failed(reason: &str, message: String) -> Self {
        let failure = Failure {
            reason: reason.to_owned(),
            message: message.clone(),
            ..Failure::default()
        };
        Self {
            phase: StepPhase::Failed,
            reason: reason.to_owned(),
            message,
            ..Self::new(End::Failed(failure))
        }
    }

    pub fn halted(halt: Halt) -> Self {
        if halt.cause == Cause::StepTimeout {
            return Self::failed(&halt.reason, halt.message);
        }
        let cancelled = halt.phase() == api::task::TaskPhase::Cancelled;
        Self {
            phase: if cancelled {
                StepPhase::Cancelled
            } else {
                StepPhase::Failed
            },
            reason: halt.reason.clone(),
            message: halt.message.clone(),
            ..Self::new(End::Halted(halt))
        }
    }

    /// By the exit code of a step that ended by itself.
    pub fn of_exit(exit: crate::platform::Exit, class: ExitClass) -> Self {
        let mut code = format!("exit code {}", exit_code::describe(exit.code));
        if !exit.name.is_empty() {
            code = format!("{code} ({})", exit.name);
        }
        let outcome = match class {
            ExitClass::Success => Self::passed(StepPhase::Succeeded, "", String::new()),
            ExitClass::Warning => Self::passed(StepPhase::Succeeded, "Warning", code),
            ExitClass::Reboot => {
                let message = format!("{code}: the host wants a restart");
                Self::passed(StepPhase::Succeeded, "PendingReboot", message)
            }
            ExitClass::Skip => Self {
                end: End::NotApplicable,
                ..Self::passed(StepPhase::Skipped, "SkipCode", code)
            },
            ExitClass::Retry | ExitClass::Fatal | ExitClass::Failure => {
                let mut outcome = Self::failed("ExitCode", code);
                if let End::Failed(failure) = &mut outcome.end {
                    failure.fatal = class == ExitClass::Fatal;
                    failure.retry_code = class == ExitClass::Retry;
                }
                outcome
            }
        };
        Self {
            exit: Some(exit),
            class: Some(class),
            ..outcome
        }
    }
}
