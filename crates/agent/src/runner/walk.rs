//! Through the four lists of a task: preflight, steps, then rollback if it is due, finally always.

use super::{
    control::{Halt, Part},
    outputs, reboot,
    run::{Error, Run},
    scope,
    step::{self, End},
};
use crate::{
    journal::{List, RunRecord},
    platform,
};
use api::{
    expr::Template,
    job::Mode,
    step::{OnError, Step},
    task::{RollbackOutcome, TaskPhase},
};
use std::{collections::BTreeMap, time::Duration};

const ROLLBACK: Duration = Duration::from_secs(1800);
const FINALLY: Duration = Duration::from_secs(300);

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finish {
    pub phase: TaskPhase,
    pub reason: String,
    pub message: String,
    pub fatal: bool,
    pub retry_code: bool,
    pub outputs: BTreeMap<String, String>,
    /// Neither rollback nor finally may run.
    ends_all: bool,
}

impl Finish {
    fn new(phase: TaskPhase, reason: &str, message: String) -> Self {
        Self {
            phase,
            reason: reason.to_owned(),
            message,
            fatal: false,
            retry_code: false,
            outputs: BTreeMap::new(),
            ends_all: false,
        }
    }

    pub fn failed(reason: &str, message: String) -> Self {
        Self::new(TaskPhase::Failed, reason, message)
    }

    pub fn halted(halt: &Halt) -> Self {
        Self {
            ends_all: halt.ends_all(),
            ..Self::new(halt.phase(), &halt.reason, halt.message.clone())
        }
    }
}

/// How far a walk came.
pub(super) enum Walked {
    /// To the end.
    Finished(Finish),
    /// To a restart of the host.
    Restart {
        /// The step that wants it.
        step: String,
        /// Whether it is under way already.
        under_way: bool,
    },
}

impl From<Finish> for Walked {
    fn from(finish: Finish) -> Self {
        Self::Finished(finish)
    }
}

/// Runs the task to its end, or to a restart of the host.
pub(super) async fn walk(run: &mut Run) -> Result<Walked, Error> {
    if let Some(message) = unsupported(run) {
        return Ok(Finish::failed("Unsupported", message).into());
    }
    if let Err(message) = make_room(run) {
        return Ok(Finish::failed("StartFailed", message).into());
    }
    let recover = run.options.recover.clone();
    let walked = match recover {
        Some(recover) => Finish::new(recover.phase, &recover.reason, recover.message).into(),
        None => work(run).await?,
    };
    let Walked::Finished(mut finish) = walked else {
        return Ok(walked);
    };
    finish.ends_all |= run.control.halt(None).is_some_and(|halt| halt.ends_all());
    if finish.ends_all {
        return Ok(finish.into());
    }
    if matches!(finish.phase, TaskPhase::Failed | TaskPhase::Cancelled) && run.status.started_steps {
        finish.ends_all |= rollback(run).await?;
    }
    if !finish.ends_all {
        finally(run, &mut finish).await?;
    }
    if finish.phase == TaskPhase::Succeeded {
        job_outputs(run, &mut finish);
    }
    Ok(finish.into())
}

async fn work(run: &mut Run) -> Result<Walked, Error> {
    let first = match reboot::resume(run).await? {
        Ok(first) => first,
        Err(finish) => return Ok(finish.into()),
    };
    for (list, place, step) in lists(run, &[List::Preflight, List::Steps]) {
        if place < first {
            continue; // before the restart of the host
        }
        match next(run, list, place, &step).await? {
            End::Passed => {}
            End::Restart { under_way } => {
                return Ok(Walked::Restart {
                    step: step.name,
                    under_way,
                });
            }
            End::NotApplicable => {
                let message = format!("step \"{}\" says that there is nothing to do here", step.name);
                return Ok(Finish::new(TaskPhase::Skipped, "SkipCode", message).into());
            }
            End::Failed(failure) if step.on_error == OnError::Continue && !failure.abandoned => {}
            End::Failed(failure) => {
                return Ok(Finish {
                    fatal: failure.fatal,
                    retry_code: failure.retry_code,
                    ..Finish::failed(
                        &failure.reason,
                        format!("step \"{}\": {}", step.name, failure.message),
                    )
                }
                .into());
            }
            End::Halted(halt) => {
                note_stop(run, &halt)?;
                return Ok(Finish::halted(&halt).into());
            }
        }
    }
    Ok(Finish::new(TaskPhase::Succeeded, "", String::new()).into())
}

/// Runs a step, unless it is time to stop.
async fn next(run: &mut Run, list: List, place: usize, step: &Step) -> Result<End, Error> {
    match run.control.halt(None) {
        Some(halt) => Ok(End::Halted(halt)),
        None => step::run(run, list, place, step).await,
    }
}

/// Runs the rollback if there is one. Returns whether everything must end now.
async fn rollback(run: &mut Run) -> Result<bool, Error> {
    if run.spec.rollback.is_empty() || run.spec.mode == Mode::Audit || run.status.rollback.is_some() {
        return Ok(false);
    }
    run.control.enter(Part::Rollback, ROLLBACK);
    let mut outcome = RollbackOutcome::Succeeded;
    let mut ends_all = false;
    for (list, place, step) in lists(run, &[List::Rollback]) {
        if run.step(&step.name).is_some() {
            outcome = RollbackOutcome::Failed; // an earlier runner died in it: how far it came is not known
            break;
        }
        match next(run, list, place, &step).await? {
            End::Passed | End::NotApplicable | End::Restart { .. } => {}
            End::Failed(_) if step.on_error == OnError::Continue => {}
            End::Failed(_) => {
                outcome = RollbackOutcome::Failed;
                break;
            }
            End::Halted(halt) => {
                outcome = RollbackOutcome::Failed;
                ends_all = halt.ends_all();
                break;
            }
        }
    }
    run.record(&RunRecord::RollbackEnded { outcome })?;
    Ok(ends_all)
}

/// Runs all of finally, whatever fails in it.
async fn finally(run: &mut Run, finish: &mut Finish) -> Result<(), Error> {
    run.control.enter(Part::Finally, FINALLY);
    for (list, place, step) in lists(run, &[List::Finally]) {
        if run.step(&step.name).is_some() {
            continue; // an earlier runner came to it
        }
        let message = match next(run, list, place, &step).await? {
            End::Passed | End::NotApplicable | End::Restart { .. } => continue,
            End::Failed(_) if step.on_error == OnError::Continue => continue,
            End::Failed(failure) => failure.message,
            End::Halted(halt) => {
                finally_failed(finish, &step.name, &halt.message);
                return Ok(());
            }
        };
        finally_failed(finish, &step.name, &message);
    }
    Ok(())
}

fn finally_failed(finish: &mut Finish, step: &str, message: &str) {
    if finish.phase == TaskPhase::Failed {
        return; // the first failure is the one to tell; the step's own status tells this one
    }
    *finish = Finish::failed("FinallyFailed", format!("step \"{step}\" of finally: {message}"));
}

fn job_outputs(run: &Run, finish: &mut Finish) {
    if run.spec.outputs.is_empty() || run.spec.mode == Mode::Audit {
        return;
    }
    let scope = scope::of(run);
    let mut left = outputs::TASK_LIMIT;
    for output in &run.spec.outputs {
        match Template::parse(&output.value).and_then(|t| t.render(&scope)) {
            Ok(value) if value.len() <= left => {
                left -= value.len();
                finish.outputs.insert(output.name.clone(), run.masks.text(&value));
            }
            Ok(_) => {
                let message = format!("outputs are more than {} bytes", outputs::TASK_LIMIT);
                *finish = Finish::failed("OutputInvalid", message);
                return;
            }
            Err(error) => {
                *finish = Finish::failed("OutputInvalid", format!("output \"{}\": {error}", output.name));
                return;
            }
        }
    }
}

fn note_stop(run: &mut Run, halt: &Halt) -> Result<(), Error> {
    run.record(&RunRecord::StopSeen {
        stop: api::task::Stop {
            reason: halt.reason.clone(),
            message: halt.message.clone(),
            grace_seconds: i64::try_from(halt.grace.as_secs()).unwrap_or(i64::MAX),
            force: halt.ends_all(),
        },
    })
}

/// Makes the workspace and the folder kept across attempts.
fn make_room(run: &Run) -> Result<(), String> {
    let (dir, spec) = (&run.dir, &run.task.spec);
    let checkpoint = dir.data().checkpoint(&spec.job_ref.uid, spec.index);
    platform::create_dir(&dir.workspace()).map_err(|e| format!("{}: {e}", dir.workspace().display()))?;
    if !platform::TEMP_VARIABLES.is_empty() {
        platform::create_private_dir(&dir.temp()).map_err(|e| format!("{}: {e}", dir.temp().display()))?;
    }
    platform::create_private_dir(&checkpoint).map_err(|e| format!("{}: {e}", checkpoint.display()))
}

fn lists(run: &Run, wanted: &[List]) -> Vec<(List, usize, Step)> {
    let all = run.spec.all_steps().enumerate();
    let all = all.filter_map(|(place, (list, _, step))| Some((list_of(list)?, place, step.clone())));
    all.filter(|(list, ..)| wanted.contains(list)).collect()
}

fn list_of(name: &str) -> Option<List> {
    [
        ("preflight", List::Preflight),
        ("steps", List::Steps),
        ("rollback", List::Rollback),
        ("finally", List::Finally),
    ]
    .into_iter()
    .find_map(|(n, list)| (n == name).then_some(list))
}

/// What this agent cannot do, though the server let it pass; nothing is started then.
fn unsupported(run: &Run) -> Option<String> {
    let spec = &run.spec;
    let job = [
        (spec.security_context.is_some(), "securityContext"),
        (!spec.sources.is_empty(), "sources"),
        (!spec.caches.is_empty(), "caches"),
    ];
    let of_job = job
        .iter()
        .find(|(set, _)| *set)
        .map(|(_, field)| (*field).to_owned());
    let of_step = spec.all_steps().find_map(|(list, index, step)| {
        step::unsupported(step).map(|field| format!("{list}[{index}].{field}"))
    });
    let field = of_job.or(of_step)?;
    Some(format!("spec.{field} is not supported by this agent yet"))
}
