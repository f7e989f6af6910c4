//! The rules one by one; random worlds are in [`random`].

mod random;

use super::*;
use crate::{
    amount::Amount,
    job::{Cancel, CompletionMode, JobPhase, OnUnknown},
    retry::{FailureAction, FailurePolicy, FailureRule, RetryStrategy},
    task::{JobRef, Resolution, ResolvedAs, TaskPhase, TaskStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn job(completions: i32, limit: i32) -> Job {
    let mut job = Job::default();
    job.metadata.uid = Some("3f2a9c11-0000-4000-8000-000000000000".into());
    job.spec.completions = Some(completions);
    job.spec.parallelism = Some(Amount::Count(2));
    job.spec.max_failures = Some(Amount::Count(1000));
    job.spec.retry_strategy = Some(RetryStrategy {
        limit,
        ..Default::default()
    });
    job
}

fn task(index: i32, attempt: i32, phase: TaskPhase, reason: &str) -> Task {
    let mut task = Task::default();
    task.metadata.creation_timestamp = Some(Time(at(0)));
    task.spec.job_ref = JobRef {
        uid: job(1, 0).uid().into(),
        ..Default::default()
    };
    task.spec.index = index;
    task.spec.attempt = attempt;
    task.spec.node_name = format!("web{index}");
    task.status = Some(TaskStatus {
        phase,
        reason: reason.into(),
        finished_at: phase.is_terminal().then(|| MicroTime(at(10))),
        ..Default::default()
    });
    task
}

fn with(mut task: Task, edit: impl FnOnce(&mut TaskStatus)) -> Task {
    edit(task.status.as_mut().unwrap());
    task
}

fn lost(task: Task) -> Task {
    with(task, |s| {
        s.conditions.push(Condition {
            type_: "NodeLost".into(),
            status: "True".into(),
            reason: "NodeLost".into(),
            message: String::new(),
            last_transition_time: Time(at(0)),
            observed_generation: None,
        })
    })
}

fn ask(job: &Job, tasks: &[Task]) -> Wanted {
    wanted(job, None, tasks, at(60))
}

fn standing(job: &Job, tasks: &[Task]) -> Standing {
    let mut ledger = Ledger::new(job);
    tasks.iter().for_each(|t| {
        ledger.apply(t);
    });
    ledger.standing(&Key::Index(0)).unwrap().clone()
}

fn waits(standing: &Standing) -> bool {
    matches!(standing, Standing::Waiting(_))
}

#[test]
fn a_hundred_thousand_waiting_runs_are_one_range() {
    let w = ask(&job(100_000, 0), &[task(7, 0, TaskPhase::Running, "")]);
    assert_eq!(w.fresh.iter().collect::<Vec<_>>(), [0..7, 8..100_000]);
    assert_eq!((w.outlook.counts.pending, w.outlook.counts.active), (99_999, 1));
    assert_eq!(w.outlook.gate, Gate::Open { room: 1 });
}

#[test]
fn a_failure_is_tried_again_until_the_limit_is_used_up() {
    let failed = |n| task(0, n, TaskPhase::Failed, "ExitCode");
    let Standing::Waiting(again) = standing(&job(1, 1), &[failed(0)]) else {
        panic!("must wait")
    };
    assert_eq!(again.attempt, 1);
    assert!(
        at(18) <= again.from.unwrap() && again.from.unwrap() <= at(22),
        "10 s ± 20 %"
    );
    assert_eq!(
        standing(&job(1, 1), &[failed(0), failed(1)]),
        Standing::Done(Final::Failed)
    );
    assert_eq!(standing(&job(1, 0), &[failed(0)]), Standing::Done(Final::Failed));
}

#[test]
fn a_fatal_code_is_never_tried_again() {
    let fatal = with(task(0, 0, TaskPhase::Failed, "ExitCode"), |s| s.fatal = true);
    assert_eq!(standing(&job(1, 9), &[fatal]), Standing::Done(Final::Failed));
}

#[test]
fn retry_codes_only_means_retry_codes_only() {
    let mut job = job(1, 9);
    job.spec.retry_strategy.as_mut().unwrap().retry_on = crate::retry::RetryOn::RetryCodes;
    let plain = task(0, 0, TaskPhase::Failed, "ExitCode");
    assert_eq!(
        standing(&job, std::slice::from_ref(&plain)),
        Standing::Done(Final::Failed)
    );
    assert!(waits(&standing(&job, &[with(plain, |s| s.retry_code = true)])));
}

#[test]
fn a_rejection_is_free_and_keeps_the_node_away_for_longer_each_time() {
    let rejected = |n| task(0, n, TaskPhase::Rejected, "NoRoom");
    let Standing::Waiting(again) = standing(&job(1, 0), &[rejected(0), rejected(1), rejected(2)]) else {
        panic!("must wait")
    };
    assert_eq!(
        (again.attempt, again.from),
        (3, None),
        "other nodes may be tried at once"
    );
    assert_eq!(again.avoid, [(Arc::from("web0"), at(14))]);
    assert_eq!(again.counts_as, Final::Cancelled, "it never started");
    assert_eq!(
        ask(&job(1, 0), &[rejected(0), rejected(1)])
            .outlook
            .counts
            .retries,
        0
    );
}

#[test]
fn a_system_end_before_any_step_is_free_five_times() {
    let lost = |n| task(0, n, TaskPhase::Failed, "RunnerLost");
    let five: Vec<_> = (0..5).map(lost).collect();
    assert!(waits(&standing(&job(1, 0), &five)));
    let six: Vec<_> = (0..6).map(lost).collect();
    assert_eq!(standing(&job(1, 0), &six), Standing::Done(Final::Failed));
    assert!(waits(&standing(&job(1, 1), &six)), "the sixth uses up the limit");
}

#[test]
fn started_hold_work_is_not_repeated_after_a_system_end() {
    let ended = with(task(0, 0, TaskPhase::Failed, "HostRebooted"), |s| {
        s.started_steps = true
    });
    let mut job = job(1, 9);
    assert_eq!(
        standing(&job, std::slice::from_ref(&ended)),
        Standing::Done(Final::Failed)
    );
    job.spec.on_unknown = OnUnknown::Rerun;
    assert!(waits(&standing(&job, &[ended])));
}

#[test]
fn a_rule_that_names_the_reason_repeats_what_hold_would_not() {
    let mut job = job(1, 0);
    let unknown = task(0, 0, TaskPhase::Unknown, "JournalLost");
    assert_eq!(
        standing(&job, std::slice::from_ref(&unknown)),
        Standing::Done(Final::Unknown)
    );
    job.spec.failure_policy = Some(FailurePolicy {
        rules: vec![FailureRule {
            action: FailureAction::Ignore,
            on_exit_codes: None,
            on_reasons: vec!["JournalLost".into()],
        }],
    });
    assert!(waits(&standing(&job, &[unknown])));
}

#[test]
fn a_failure_may_be_accepted_with_a_warning_or_fail_the_job() {
    let mut job = job(3, 0);
    let rule = |action, reason: &str| FailureRule {
        action,
        on_exit_codes: None,
        on_reasons: vec![reason.into()],
    };
    job.spec.failure_policy = Some(FailurePolicy {
        rules: vec![
            rule(FailureAction::Accept, "Timeout"),
            rule(FailureAction::FailJob, "StartFailed"),
        ],
    });
    let accepted = ask(&job, &[task(0, 0, TaskPhase::Failed, "Timeout")]).outlook;
    assert_eq!((accepted.counts.succeeded, accepted.counts.warnings), (1, 1));
    let over = ask(&job, &[task(0, 0, TaskPhase::Failed, "StartFailed")]).outlook;
    assert_eq!(over.gate, Gate::Over(Over::FailJob));
    assert_eq!((over.phase, over.counts.cancelled), (JobPhase::Failed, 2));
}

#[test]
fn exit_codes_of_a_named_step_are_matched() {
    use crate::{
        exit_code::CodePattern,
        retry::{CodeOperator, OnExitCodes},
        task::{StepPhase, StepStatus},
    };
    let mut job = job(1, 9);
    job.spec.failure_policy = Some(FailurePolicy {
        rules: vec![FailureRule {
            action: FailureAction::FailIndex,
            on_exit_codes: Some(OnExitCodes {
                step: Some("install".into()),
                operator: CodeOperator::In,
                values: vec![CodePattern::Number(1603)],
            }),
            on_reasons: vec![],
        }],
    });
    let by = |step: &str, code| {
        with(task(0, 0, TaskPhase::Failed, "ExitCode"), |s| {
            s.steps.push(StepStatus {
                name: step.into(),
                phase: StepPhase::Failed,
                exit_code: Some(code),
                ..Default::default()
            })
        })
    };
    assert_eq!(
        standing(&job, &[by("install", 1603)]),
        Standing::Done(Final::Failed)
    );
    assert!(waits(&standing(&job, &[by("install", 1618)])));
    assert!(waits(&standing(&job, &[by("other", 1603)])));
}

#[test]
fn a_lost_node_holds_the_index_but_no_place() {
    let w = ask(
        &job(3, 0),
        &[
            lost(task(0, 0, TaskPhase::Running, "")),
            task(1, 0, TaskPhase::Running, ""),
        ],
    );
    assert_eq!(w.outlook.counts.active, 2);
    assert_eq!(w.outlook.gate, Gate::Open { room: 1 });
    assert_eq!(w.fresh.iter().flatten().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_user_settles_an_unknown_outcome() {
    let mut unknown = task(0, 0, TaskPhase::Unknown, "NodeLost");
    let resolve = |as_| {
        Some(Resolution {
            as_,
            reason: "looked".into(),
            by: String::new(),
        })
    };
    assert_eq!(
        ask(&job(1, 0), std::slice::from_ref(&unknown)).outlook.phase,
        JobPhase::Unknown
    );
    unknown.spec.resolution = resolve(ResolvedAs::Succeeded);
    assert_eq!(
        ask(&job(1, 0), std::slice::from_ref(&unknown)).outlook.phase,
        JobPhase::Succeeded
    );
    unknown.spec.resolution = resolve(ResolvedAs::Failed);
    assert_eq!(
        ask(&job(1, 9), &[unknown]).outlook.phase,
        JobPhase::Failed,
        "and is not tried again"
    );
}

#[test]
fn too_many_failures_let_running_ones_go_on() {
    let mut job = job(10, 0);
    job.spec.max_failures = Some(Amount::Percent("10%".into()));
    let failed = |i| task(i, 0, TaskPhase::Failed, "ExitCode");
    let one = ask(&job, &[failed(0)]).outlook;
    assert!(matches!(one.gate, Gate::Open { .. }));
    let two = ask(&job, &[failed(0), failed(1), task(2, 0, TaskPhase::Running, "")]).outlook;
    assert_eq!(
        two.gate,
        Gate::Over(Over::TooManyFailures {
            failed: 2,
            allowed: 1
        })
    );
    assert_eq!(
        (two.phase, two.counts.active, two.counts.cancelled),
        (JobPhase::Running, 1, 7)
    );
    assert_eq!(two.stop(), None);
    let end = ask(
        &job,
        &[failed(0), failed(1), task(2, 0, TaskPhase::Succeeded, "")],
    )
    .outlook;
    assert_eq!(end.phase, JobPhase::Failed);
}

#[test]
fn cancel_counts_what_never_started_as_cancelled() {
    let mut job = job(4, 3);
    job.spec.cancel = Some(Cancel {
        reason: "wrong".into(),
        force: false,
    });
    let tasks = [
        task(0, 0, TaskPhase::Succeeded, ""),
        task(1, 0, TaskPhase::Running, ""),
        task(2, 0, TaskPhase::Failed, "ExitCode"),
    ];
    let running = ask(&job, &tasks).outlook;
    assert_eq!(
        (running.phase, running.counts.cancelled, running.counts.failed),
        (JobPhase::Running, 1, 1)
    );
    assert_eq!(running.stop(), Some("Cancelled"));
    let ended = ask(&job, &[task(1, 0, TaskPhase::Cancelled, "Cancelled")]).outlook;
    assert_eq!((ended.phase, ended.counts.cancelled), (JobPhase::Cancelled, 4));
}

#[test]
fn a_deadline_fails_what_has_not_ended_and_nothing_that_has() {
    let mut job = job(2, 0);
    job.spec.active_deadline_seconds = Some(30);
    let late = ask(&job, &[task(0, 0, TaskPhase::Running, "")]).outlook;
    assert_eq!(
        (late.gate, late.stop()),
        (Gate::Over(Over::Deadline), Some("DeadlineExceeded"))
    );
    let done = [
        task(0, 0, TaskPhase::Succeeded, ""),
        task(1, 0, TaskPhase::Succeeded, ""),
    ];
    assert_eq!(ask(&job, &done).outlook.phase, JobPhase::Succeeded);
    assert_eq!(
        ask(&job, &done[..1]).outlook.phase,
        JobPhase::Failed,
        "one never started"
    );
}

#[test]
fn a_deadline_stops_even_what_too_many_failures_let_run() {
    let mut job = job(3, 0);
    job.spec.max_failures = None;
    job.spec.active_deadline_seconds = Some(30);
    let tasks = [
        task(0, 0, TaskPhase::Failed, "ExitCode"),
        task(1, 0, TaskPhase::Running, ""),
    ];
    assert_eq!(ask(&job, &tasks).outlook.stop(), Some("DeadlineExceeded"));
}

#[test]
fn a_suspended_job_is_suspended_once_nothing_runs() {
    let mut job = job(2, 0);
    job.spec.suspend = true;
    assert_eq!(
        ask(&job, &[task(0, 0, TaskPhase::Running, "")]).outlook.phase,
        JobPhase::Running
    );
    assert_eq!(
        ask(&job, &[task(0, 0, TaskPhase::Succeeded, "")]).outlook.phase,
        JobPhase::Suspended
    );
}

#[test]
fn skipped_ones_never_worsen_the_phase() {
    let skipped = ask(&job(1, 0), &[task(0, 0, TaskPhase::Skipped, "NodeUnavailable")]).outlook;
    assert_eq!((skipped.phase, skipped.counts.skipped), (JobPhase::Succeeded, 1));
}

#[test]
fn per_node_work_waits_for_its_nodes_and_keeps_their_order() {
    let mut job = job(1, 0);
    job.spec.completion_mode = Some(CompletionMode::PerNode);
    let before = ask(&job, &[]).outlook;
    assert_eq!(
        (before.gate, before.phase),
        (Gate::Shut(Shut::NotChosen), JobPhase::Pending)
    );
    let members: Vec<Arc<str>> = ["web2", "web1", "web0"].map(Arc::from).into();
    let w = wanted(
        &job,
        Some(&members),
        &[task(1, 0, TaskPhase::Running, "")],
        at(60),
    );
    assert_eq!(w.fresh_nodes, ["web0", "web2"].map(Arc::from));
    assert_eq!((w.outlook.counts.desired, w.outlook.counts.pending), (3, 2));
    let none = wanted(&job, Some(&[]), &[], at(60)).outlook;
    assert_eq!(none.phase, JobPhase::Succeeded, "no node is nothing to do");
}

#[test]
fn a_rejecting_node_is_left_alone_by_per_node_work() {
    let mut job = job(1, 0);
    job.spec.completion_mode = Some(CompletionMode::PerNode);
    let members: Vec<Arc<str>> = vec!["web0".into()];
    let w = wanted(
        &job,
        Some(&members),
        &[task(0, 0, TaskPhase::Rejected, "NoRoom")],
        at(60),
    );
    assert_eq!(w.again[0].1.from, Some(at(11)));
}

#[test]
fn tasks_of_an_earlier_job_of_the_same_name_do_not_count() {
    let mut old = task(0, 0, TaskPhase::Succeeded, "");
    old.spec.job_ref.uid = "another".into();
    assert_eq!(ask(&job(1, 0), &[old]).outlook.counts.succeeded, 0);
}
