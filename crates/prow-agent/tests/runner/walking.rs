//! Which lists run after which end.

use crate::rig::{Finished, PROBE, steps};
use serde_json::{Value as Json, json};

async fn run(main: Json, job: Json) -> Finished {
    let mut job = job;
    for (list, default) in [
        ("preflight", json!([])),
        ("rollback", json!([{"name": "undo", "script": "true"}])),
        ("finally", json!([{"name": "last", "script": "true"}])),
    ] {
        if job.get(list).is_none() {
            job[list] = default;
        }
    }
    steps(main, job).run().await
}

fn failing(name: &str) -> Json {
    json!({"name": name, "script": "exit 1"})
}

fn fine(name: &str) -> Json {
    json!({"name": name, "script": "true"})
}

#[tokio::test]
async fn a_refused_host_is_left_untouched() {
    let done = run(
        json!([fine("main")]),
        json!({"preflight": [failing("pre"), fine("pre2")]}),
    )
    .await;
    assert_eq!(done.end(), ("Failed".into(), "ExitCode"));
    assert_eq!(
        done.steps(),
        ["pre Failed/ExitCode", "last Succeeded"],
        "no step, no rollback"
    );
    assert!(!done.status.started_steps);
}

#[tokio::test]
async fn a_failure_rolls_back_and_then_cleans_up() {
    let done = run(json!([fine("a"), failing("b"), fine("c")]), json!({})).await;
    assert_eq!(
        done.steps(),
        [
            "a Succeeded",
            "b Failed/ExitCode",
            "undo Succeeded",
            "last Succeeded"
        ]
    );
    assert_eq!(done.end(), ("Failed".into(), "ExitCode"));
    assert_eq!(format!("{:?}", done.status.rollback), "Some(Succeeded)");
}

#[tokio::test]
async fn success_rolls_nothing_back() {
    let done = run(json!([fine("a")]), json!({})).await;
    assert_eq!(done.steps(), ["a Succeeded", "last Succeeded"]);
    assert_eq!(done.status.rollback, None);
}

#[tokio::test]
async fn a_failed_rollback_is_told_and_the_first_failure_stays() {
    let done = run(
        json!([failing("a")]),
        json!({"rollback": [failing("undo"), fine("undo2")]}),
    )
    .await;
    assert_eq!(
        done.steps(),
        ["a Failed/ExitCode", "undo Failed/ExitCode", "last Succeeded"]
    );
    assert_eq!(format!("{:?}", done.status.rollback), "Some(Failed)");
    assert!(done.status.message.contains("\"a\""));
}

#[tokio::test]
async fn a_failed_finally_fails_the_task_and_the_rest_of_it_still_runs() {
    let done = run(
        json!([fine("a")]),
        json!({"finally": [failing("last"), fine("last2")]}),
    )
    .await;
    assert_eq!(done.end(), ("Failed".into(), "FinallyFailed"));
    assert_eq!(
        done.steps(),
        ["a Succeeded", "last Failed/ExitCode", "last2 Succeeded"]
    );
}

#[tokio::test]
async fn a_step_may_fail_without_failing_the_task() {
    let main = json!([{"name": "a", "script": "exit 1", "onError": "Continue"}, fine("b")]);
    let done = run(main, json!({})).await;
    assert_eq!(done.end(), ("Succeeded".into(), ""));
    assert_eq!(
        done.steps(),
        ["a Failed/ExitCode", "b Succeeded", "last Succeeded"]
    );
}

#[tokio::test]
async fn a_rollback_sees_how_the_steps_ended() {
    let undo = json!([
        {"name": "undo-a", "when": "steps.a.phase == 'Succeeded'", "script": "true"},
        {"name": "undo-c", "when": "steps.c.phase == 'Succeeded'", "script": "true"},
    ]);
    let done = run(
        json!([fine("a"), failing("b"), fine("c")]),
        json!({"rollback": undo}),
    )
    .await;
    assert_eq!(done.step("undo-a").phase, api::task::StepPhase::Succeeded);
    assert_eq!(done.step("undo-c").phase, api::task::StepPhase::Skipped);
}

#[tokio::test]
async fn what_this_agent_cannot_do_is_refused_before_anything_starts() {
    let main = json!([fine("a"), {"name": "b", "image": "x", "command": [PROBE, "exit", "0"]}]);
    let done = run(main, json!({})).await;
    assert_eq!(done.end(), ("Failed".into(), "Unsupported"));
    assert!(
        done.status.message.contains("spec.steps[1].image"),
        "{}",
        done.status.message
    );
    assert!(done.status.steps.is_empty());
}

#[tokio::test]
async fn work_with_another_hash_is_not_run() {
    let mut rig = steps(json!([fine("a")]), json!({}));
    rig.task.spec.job_ref.work_hash = "0".repeat(64);
    let done = rig.run().await;
    assert_eq!(done.end(), ("Failed".into(), "WorkUnreadable"));
}
