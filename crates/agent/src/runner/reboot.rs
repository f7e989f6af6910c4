//! A restart of the host as the outcome of a step, and going on after it.
//!
//! The runner never waits for a restart: it leaves word in the journal ([`RunRecord::RebootRequested`]) and ends. Once the host is back
//! the agent starts another, which goes on from what the journal says ([`going_on`], [`resume`]).

use super::{
    attempt::{Attempt, Outcome},
    run::{Error, Run},
    status::{awaited_restart, restarting_step, status_from_journal},
    step::End,
    walk::Finish,
};
use crate::{
    journal::{self, Entry, List, Restart, RunRecord, StepResult, Writer},
    platform,
};
use api::{
    JobSpec,
    step::{ExitClass, OnError, Reboot, RebootPolicy, Resume, Step},
    task::StepPhase,
};
use std::time::Duration;
use tokio::time::Instant;

/// The code of an installer that has begun to restart the host (Windows: ERROR_SUCCESS_REBOOT_INITIATED).
const INITIATED: u32 = 1641;
/// Why work is stopped when the host goes down.
const INTERRUPTED: &str = "Interrupted";
/// Between two questions whether the host is ready.
const EVERY: Duration = Duration::from_secs(5);

/// When a step restarts the host; only one of `steps` does.
pub(super) fn policy(list: List, step: &Step) -> RebootPolicy {
    match &step.reboot {
        Some(reboot) if list == List::Steps => reboot.policy,
        _ => RebootPolicy::Never,
    }
}

/// Whether the end of a step means a restart of the host.
pub(super) fn is_wanted(list: List, step: &Step, outcome: &Outcome) -> bool {
    let asked = outcome.class == Some(ExitClass::Reboot);
    let passed = matches!(outcome.end, End::Passed) && outcome.exit.is_some();
    match policy(list, step) {
        RebootPolicy::Never => false,
        RebootPolicy::IfRequested => passed && asked,
        RebootPolicy::Always => passed,
        RebootPolicy::SelfInitiated => {
            passed || matches!(&outcome.end, End::Halted(halt) if halt.reason == INTERRUPTED)
        }
    }
}

/// Whether the restart that a step wants has begun already.
fn is_under_way(policy: RebootPolicy, outcome: &Outcome) -> bool {
    let initiated = outcome.exit.as_ref().is_some_and(|exit| exit.code == INITIATED);
    initiated || policy == RebootPolicy::SelfInitiated
}

/// The outcome of a step with what it means for the host.
pub(super) fn after(run: &Run, list: List, step: &Step, outcome: Outcome) -> Outcome {
    if !is_wanted(list, step, &outcome) {
        return outcome;
    }
    let most = step.reboot.as_ref().map_or(0, |reboot| reboot.max_resumes);
    if run.status.reboots >= most {
        let mut message = format!(
            "the step wants another restart of the host after {}, and reboot.maxResumes is {most}",
            run.status.reboots
        );
        let marks: Vec<_> = platform::pending_reboot()
            .iter()
            .map(|mark| mark.source)
            .collect();
        if !marks.is_empty() {
            message += &format!("; marks for a restart that stay set: {}", marks.join(", "));
        }
        return Outcome {
            exit: outcome.exit,
            class: outcome.class,
            outputs: outcome.outputs,
            ..Outcome::failed("RebootLoop", message)
        };
    }
    let under_way = is_under_way(policy(list, step), &outcome);
    let code = match &outcome.exit {
        Some(exit) => format!("exit code {}: ", api::exit_code::describe(exit.code)),
        None => String::new(),
    };
    let what = if under_way {
        "is restarting"
    } else {
        "is to be restarted"
    };
    Outcome {
        phase: StepPhase::Succeeded,
        reason: "Reboot".into(),
        message: format!("{code}the host {what}"),
        class: Some(ExitClass::Reboot),
        end: End::Restart { under_way },
        ..outcome
    }
}

/// What an earlier boot left to be gone on with.
pub(super) struct GoingOn {
    pub restart: Restart,
    /// The end of a step that was cut off by the restart it had begun.
    ended: Option<RunRecord>,
}

/// Whether work may go on in this boot: it asked for a restart in another, or restarted the host itself.
pub(super) fn going_on(records: &[Entry<RunRecord>], boot_id: &str) -> Option<GoingOn> {
    if let Some(restart) = awaited_restart(records) {
        return (restart.boot_id != boot_id).then(|| GoingOn {
            restart: restart.clone(),
            ended: None,
        });
    }
    let entry = restarting_step(records)?;
    let RunRecord::StepStarted {
        list, place, name, ..
    } = &entry.record
    else {
        return None;
    };
    let (began, earlier) = records.iter().rev().find_map(|e| match &e.record {
        RunRecord::RunnerStarted { runner, .. } => Some((e.at.0, &runner.boot_id)),
        _ => None,
    })?;
    let mut status = status_from_journal(records)
        .steps
        .into_iter()
        .find(|s| s.name == *name)?;
    status.phase = StepPhase::Succeeded;
    status.reason = "Reboot".into();
    status.message = "the step restarted the host".into();
    let before = records.iter().rev().find_map(|e| match &e.record {
        RunRecord::RebootRequested(restart) => Some(restart.worked_millis),
        _ => None,
    });
    let worked = entry.at.0.duration_since(began).as_millis();
    (*earlier != boot_id).then(|| GoingOn {
        restart: Restart {
            step: name.clone(),
            boot_id: earlier.clone(),
            under_way: true,
            worked_millis: before.unwrap_or(0) + u64::try_from(worked).unwrap_or(0),
        },
        ended: Some(RunRecord::StepEnded {
            list: *list,
            place: *place,
            result: Box::new(StepResult {
                status,
                class: Some(ExitClass::Reboot),
            }),
        }),
    })
}

impl GoingOn {
    /// Writes down that this runner goes on.
    pub fn note(&self, journal: &mut Writer<RunRecord>, boot_id: &str) -> Result<(), journal::Error> {
        if let Some(ended) = &self.ended {
            journal.append(ended)?;
            journal.append(&RunRecord::RebootRequested(self.restart.clone()))?;
        }
        journal.append(&RunRecord::Resumed {
            boot_id: boot_id.to_owned(),
        })?;
        journal.sync()
    }
}

/// A run that goes on after a restart.
#[derive(Clone, Debug)]
pub(super) struct Resumed {
    /// The step that wanted it.
    step: String,
    /// How long the host may take to be ready, and to what a step needs.
    limit: Duration,
    /// When that time is over.
    pub until: Instant,
}

impl Resumed {
    /// From now on.
    pub fn after(restart: &Restart, spec: &JobSpec) -> Self {
        let limit = reboot_of(spec, &restart.step).timeout_seconds;
        let limit = Duration::from_secs(limit.unsigned_abs());
        Self {
            step: restart.step.clone(),
            limit,
            until: Instant::now() + limit,
        }
    }
}

fn reboot_of(spec: &JobSpec, step: &str) -> Reboot {
    let found = spec.all_steps().find(|(_, _, s)| s.name == step);
    found.and_then(|(_, _, s)| s.reboot.clone()).unwrap_or_default()
}

/// After a restart, waits until the host is ready; answers the place of the step to go on with, or how the work ends instead.
pub(super) async fn resume(run: &mut Run) -> Result<Result<usize, Finish>, Error> {
    let Some(resumed) = run.resumed.clone() else {
        return Ok(Ok(0));
    };
    let mut all = run.spec.all_steps().map(|(_, _, step)| step.clone()).enumerate();
    let found = all.find(|(_, step)| step.name == resumed.step);
    drop(all);
    let Some((place, step)) = found else {
        let message = format!("there is no step \"{}\" to go on after", resumed.step);
        return Ok(Err(Finish::failed("WorkUnreadable", message)));
    };
    run.control.go_on(resumed.limit + run.time_left());
    let reboot = step.reboot.clone().unwrap_or_default();
    if let Some(check) = &reboot.ready_check
        && let Err(finish) = ready(run, place, &step, check, &resumed).await?
    {
        return Ok(Err(finish));
    }
    run.go_on();
    run.record(&RunRecord::HostReady)?;
    if reboot.resume == Resume::Same {
        return Ok(Ok(place));
    }
    if let Some(check) = &step.check
        && step.on_error != OnError::Continue
        && let Err(said) = Attempt::new(run, List::Steps, place, &step, 1)
            .ask(check, None)
            .await?
    {
        let message = format!("step \"{}\": the host was restarted, and {said}", step.name);
        return Ok(Err(Finish::failed("NotConverged", message)));
    }
    Ok(Ok(place + 1))
}

async fn ready(
    run: &mut Run,
    place: usize,
    step: &Step,
    check: &str,
    resumed: &Resumed,
) -> Result<Result<(), Finish>, Error> {
    loop {
        let attempt = Attempt::new(run, List::Steps, place, step, 1);
        let Err(said) = attempt.ask(check, Some(resumed.until)).await? else {
            return Ok(Ok(()));
        };
        if let Some(halt) = run.control.halt(None) {
            return Ok(Err(Finish::halted(&halt)));
        }
        if Instant::now() + EVERY > resumed.until {
            let message = format!(
                "step \"{}\": the host is back from its restart, but not ready within {} s (reboot.timeoutSeconds): {said}",
                step.name,
                resumed.limit.as_secs()
            );
            return Ok(Err(Finish::failed("NotReady", message)));
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            halt = run.control.halted(None) => return Ok(Err(Finish::halted(&halt))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{journal::VERSION, platform::Exit, runner::Identity};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    fn step(policy: RebootPolicy) -> Step {
        Step {
            reboot: Some(Reboot {
                policy,
                ..Reboot::default()
            }),
            ..Step::default()
        }
    }

    fn ended(code: u32) -> Outcome {
        let exit = Exit {
            code,
            name: String::new(),
        };
        Outcome::of_exit(exit, api::step::ExitCodes::default().classify(code))
    }

    /// EC-06: 3010 asks for a restart, 1641 has begun one.
    #[test]
    fn codes_and_policies_say_whether_the_host_is_restarted() {
        use RebootPolicy::*;
        for (policy, code, wanted, under_way) in [
            (Never, 3010, false, false),
            (IfRequested, 0, false, false),
            (IfRequested, 3010, true, false),
            (IfRequested, 1641, true, true),
            (IfRequested, 1603, false, false),
            (Always, 0, true, false),
            (Always, 1641, true, true),
            (Always, 5, false, false),
            (SelfInitiated, 0, true, true),
            (SelfInitiated, 3010, true, true),
            (SelfInitiated, 5, false, true),
        ] {
            let (step, outcome) = (step(policy), ended(code));
            assert_eq!(
                is_wanted(List::Steps, &step, &outcome),
                wanted,
                "{policy:?} {code}"
            );
            assert_eq!(is_under_way(policy, &outcome), under_way, "{policy:?} {code}");
            assert!(!is_wanted(List::Finally, &step, &outcome));
        }
    }

    #[test]
    fn a_step_that_did_not_run_restarts_nothing() {
        let skipped = Outcome::passed(StepPhase::Skipped, "Compliant", String::new());
        assert!(!is_wanted(List::Steps, &step(RebootPolicy::Always), &skipped));
    }

    fn entry(record: RunRecord) -> Entry<RunRecord> {
        Entry {
            v: VERSION,
            at: MicroTime("2026-01-01T00:00:00Z".parse().unwrap()),
            record,
        }
    }

    fn requested(boot_id: &str) -> RunRecord {
        RunRecord::RebootRequested(Restart {
            step: "a".into(),
            boot_id: boot_id.into(),
            under_way: false,
            worked_millis: 5,
        })
    }

    fn begun(restarts_host: bool) -> Vec<Entry<RunRecord>> {
        let runner = Identity {
            pid: 1,
            created: 1,
            boot_id: "first".into(),
            image: String::new(),
        };
        vec![
            entry(RunRecord::RunnerStarted {
                runner,
                containment: None,
            }),
            entry(RunRecord::StepStarted {
                list: List::Steps,
                place: 0,
                name: "a".into(),
                attempt: 1,
                restarts_host,
            }),
        ]
    }

    /// Whatever a runner is told, it goes on only in another boot, once a restart, and only where one was asked for.
    #[test]
    fn work_goes_on_in_another_boot_only() {
        let with = |records: Vec<RunRecord>| {
            let mut all = begun(false);
            all.extend(records.into_iter().map(entry));
            all
        };
        let resumed = || RunRecord::Resumed {
            boot_id: "second".into(),
        };
        let recovering = || RunRecord::Recovering {
            reason: "RunnerLost".into(),
            message: String::new(),
        };
        for (records, boot, goes_on) in [
            (with(vec![]), "second", false),
            (begun(true), "second", true),
            (begun(true), "first", false),
            (with(vec![requested("first")]), "first", false),
            (with(vec![requested("first")]), "second", true),
            (with(vec![requested("first"), resumed()]), "third", false),
            (
                with(vec![requested("first"), resumed(), requested("second")]),
                "third",
                true,
            ),
            (with(vec![requested("first"), recovering()]), "second", false),
        ] {
            assert_eq!(going_on(&records, boot).is_some(), goes_on, "{boot}: {records:?}");
        }
    }
}
