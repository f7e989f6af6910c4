//! Cancel, timeouts, force, the fence.

use crate::rig::{PROBE, Running, living, pids, steps};
use agent::{local::FromAgent, platform};
use serde_json::{Value as Json, json};
use std::path::Path;

async fn started(main: Json, job: Json) -> Running {
    let mut running = steps(main, job).start();
    running.connect().await;
    running
}

fn undo_and_last() -> Json {
    json!({"rollback": [{"name": "undo", "script": "true"}], "finally": [{"name": "last", "script": "true"}]})
}

/// CT-01.
#[tokio::test]
async fn a_step_that_cleans_up_gets_the_time_to() {
    let rig = steps(json!([]), json!({}));
    let file = rig.path("cleaned");
    let mut running = started(
        json!([{"name": "main", "command": [PROBE, "on-end", "200", file]}]),
        undo_and_last(),
    )
    .await;
    running
        .until("it is ready", |r| r.log("main").contains("ready"))
        .await;
    running.stop("Cancelled", 60, false).await;
    let done = running.finished().await;
    assert_eq!(
        done.end(),
        ("Cancelled".into(), "Cancelled"),
        "its code 0 does not count"
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), "cleaned\n");
    assert_eq!(
        done.steps(),
        ["main Cancelled/Cancelled", "undo Succeeded", "last Succeeded"]
    );
    assert!(!done.log("main").contains("by force\n"), "{}", done.log("main"));
}

/// CT-01.
#[tokio::test]
async fn a_step_that_ignores_the_signal_is_ended_after_the_grace() {
    let rig = steps(json!([]), json!({}));
    let file = rig.path("pids");
    let mut running = started(
        json!([{"name": "main", "command": [PROBE, "ignore", file]}]),
        json!({}),
    )
    .await;
    running
        .until("it ignores", |r| r.log("main").contains("ignoring"))
        .await;
    running.stop("Cancelled", 1, false).await;
    let done = running.finished().await;
    assert_eq!(done.end(), ("Cancelled".into(), "Cancelled"));
    assert!(living(&file).is_empty());
    assert!(
        done.log("main").contains("the grace is over"),
        "{}",
        done.log("main")
    );
}

#[tokio::test]
async fn pre_stop_runs_before_the_signal() {
    let step = json!([{
        "name": "main",
        "script": "trap 'cat stopping; exit 0' TERM; echo ready; while :; do sleep 0.01 || :; done",
        "preStop": {"script": "echo told > stopping; echo from pre-stop"},
    }]);
    let mut running = started(step, json!({})).await;
    running
        .until("it is ready", |r| r.log("main").contains("ready"))
        .await;
    running.stop("Cancelled", 60, false).await;
    let log = running.finished().await.log("main");
    assert!(log.contains("from pre-stop\n") && log.contains("told\n"), "{log}");
}

#[tokio::test]
async fn a_step_may_choose_its_signal() {
    for (signal, name) in [("CtrlC", "INT"), ("Close", "HUP"), ("CtrlBreak", "TERM")] {
        let script =
            format!("trap 'echo got {name}; exit 0' {name}; echo ready; while :; do sleep 0.01 || :; done");
        let mut running = started(
            json!([{"name": "main", "script": script, "stopSignal": signal}]),
            json!({}),
        )
        .await;
        running
            .until("it is ready", |r| r.log("main").contains("ready"))
            .await;
        running.stop("Cancelled", 60, false).await;
        let log = running.finished().await.log("main");
        assert!(log.contains(&format!("got {name}")), "{signal}: {log}");
    }
}

#[tokio::test]
async fn a_step_over_its_limit_is_a_failure_that_may_be_tried_again() {
    let step = json!([{
        "name": "main",
        "script": "test -e again && exit 0; touch again; sleep 900",
        "timeoutSeconds": 1,
        "retryStrategy": {"limit": 1, "backoff": {"duration": "1ms"}},
    }]);
    let done = started(step, json!({"terminationGracePeriodSeconds": 1}))
        .await
        .finished()
        .await;
    assert_eq!(done.end(), ("Succeeded".into(), ""));
    assert_eq!(done.step("main").attempts, 2);
    assert!(done.log("main").contains("try 1 failed (Timeout)"));
}

/// CT-08.
#[tokio::test]
async fn the_next_try_starts_when_the_tree_of_the_last_is_gone() {
    let rig = steps(json!([]), json!({}));
    let file = rig.path("pids");
    // each try tells how many of the earlier ones live
    let script = format!(
        "for p in $(cat {file} 2>/dev/null); do kill -0 $p 2>/dev/null && echo alive $p; done; {PROBE} ignore {file}"
    );
    let step = json!([{"name": "main", "script": script, "timeoutSeconds": 1, "retryStrategy": {"limit": 2, "backoff": {"duration": "1ms"}}}]);
    let done = started(step, json!({"terminationGracePeriodSeconds": 0}))
        .await
        .finished()
        .await;
    assert_eq!(done.end(), ("Failed".into(), "Timeout"));
    assert_eq!(pids(&file).len(), 3);
    assert!(!done.log("main").contains("alive"), "{}", done.log("main"));
}

#[tokio::test]
async fn a_task_over_its_limit_fails_rolls_back_and_cleans_up() {
    let mut job = undo_and_last();
    job["taskTimeoutSeconds"] = 1.into();
    job["terminationGracePeriodSeconds"] = 1.into();
    let step = json!([{"name": "main", "script": "sleep 900", "retryStrategy": {"limit": 5}}, {"name": "next", "script": "true"}]);
    let done = started(step, job).await.finished().await;
    assert_eq!(done.end(), ("Failed".into(), "Timeout"));
    assert_eq!(
        done.steps(),
        ["main Failed/Timeout", "undo Succeeded", "last Succeeded"]
    );
}

/// CT-04.
#[tokio::test]
async fn finally_goes_on_through_a_cancel_and_ends_with_force() {
    let job = json!({"finally": [{"name": "last", "script": "echo begun; sleep 900"}]});
    let mut running = started(json!([{"name": "main", "script": "true"}]), job).await;
    running
        .until("finally runs", |r| r.log("last").contains("begun"))
        .await;
    running.stop("Cancelled", 1, false).await;
    running.stop("Cancelled", 0, false).await;
    running.send(FromAgent::RebootAllowed).await;
    assert!(!running.status().phase.is_terminal());
    running.stop("Cancelled", 0, true).await;
    let done = running.finished().await;
    assert_eq!(done.end(), ("Failed".into(), "FinallyFailed"));
    assert_eq!(done.steps(), ["main Succeeded", "last Cancelled/Cancelled"]);
}

#[tokio::test]
async fn force_ends_everything_at_once() {
    let mut running = started(
        json!([{"name": "main", "command": [PROBE, "ignore", "pids"]}]),
        undo_and_last(),
    )
    .await;
    running
        .until("it ignores", |r| r.log("main").contains("ignoring"))
        .await;
    running.stop("Cancelled", 3600, false).await;
    running
        .until("the grace began", |r| r.log("main").contains("asked to end"))
        .await;
    running.stop("Cancelled", 3600, true).await;
    let done = running.finished().await;
    assert_eq!(done.end(), ("Cancelled".into(), "Cancelled"));
    assert_eq!(
        done.steps(),
        ["main Cancelled/Cancelled"],
        "neither rollback nor finally"
    );
}

#[tokio::test]
async fn a_cancel_before_the_next_step_starts_none() {
    let mut running = started(
        json!([{"name": "main", "script": "true", "retryStrategy": {"limit": 0}}, {"name": "wait", "script": "exit 1", "retryStrategy": {"limit": 9, "backoff": {"duration": "1h", "cap": "1h"}}}]),
        json!({}),
    )
    .await;
    running
        .until("it waits for the next try", |r| {
            r.log("wait").contains("the next in")
        })
        .await;
    running.stop("Evicted", 5, false).await;
    let done = running.finished().await;
    assert_eq!(done.end(), ("Failed".into(), "Evicted"));
    assert_eq!(done.steps(), ["main Succeeded", "wait Failed/Evicted"]);
}

#[tokio::test]
async fn without_renewals_the_fence_ends_all_work_and_nothing_else_runs() {
    let rig = steps(json!([]), json!({}));
    let file = rig.path("pids");
    let mut job = undo_and_last();
    job["terminationGracePeriodSeconds"] = 1.into();
    let mut rig = steps(json!([{"name": "main", "command": [PROBE, "ignore", file]}]), job);
    rig.task.spec.fence_seconds = Some(4);
    let before = platform::boot_nanos();
    rig.options.renewed_at = before;
    let mut running = rig.start();
    running.connect().await;
    running
        .until("it ignores", |r| r.log("main").contains("ignoring"))
        .await;
    running.disconnect();
    let done = running.finished().await;
    assert_eq!(done.end(), ("Failed".into(), "Fenced"));
    assert_eq!(done.steps(), ["main Failed/Fenced"]);
    assert!(living(&file).is_empty());
    assert!(
        done.log("main").contains("could not renew its lease"),
        "{}",
        done.log("main")
    );
}

#[tokio::test]
async fn renewals_hold_the_fence_off() {
    let mut rig = steps(
        json!([{"name": "main", "script": "sleep 4; echo done"}]),
        json!({"terminationGracePeriodSeconds": 1}),
    );
    rig.task.spec.fence_seconds = Some(3);
    let mut running = rig.start();
    running.connect().await;
    running.until("it runs", |r| r.status().started_steps).await;
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(500));
    while !running.spawned.ended.is_finished() {
        tick.tick().await;
        if !running.status().phase.is_terminal() {
            running
                .send(FromAgent::Renewed {
                    sent_at: platform::boot_nanos(),
                })
                .await;
        }
    }
    assert_eq!(running.finished().await.end(), ("Succeeded".into(), ""));
}

#[tokio::test]
async fn a_runner_asked_to_end_interrupts_its_work_and_says_so() {
    let mut running = started(
        json!([{"name": "main", "script": "echo ready; sleep 900"}]),
        undo_and_last(),
    )
    .await;
    running
        .until("it is ready", |r| r.log("main").contains("ready"))
        .await;
    let pid = running.spawned.identity.pid.to_string();
    std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status()
        .unwrap();
    let done = running.finished().await;
    assert_eq!(done.end(), ("Failed".into(), "Interrupted"));
}

/// CT-06. A frozen process of a version 1 freezer group cannot even be killed; needs the right to make one, else it is not run.
#[tokio::test]
async fn what_cannot_be_ended_is_abandoned_and_not_waited_for() {
    let group = format!("/sys/fs/cgroup/freezer/prow-test-{}", std::process::id());
    if std::fs::create_dir(&group).is_err() || !Path::new(&group).join("freezer.state").exists() {
        eprintln!("not run: there is no freezer of cgroup version 1 for this account");
        return;
    }
    let script = format!("echo $$ >{group}/tasks; echo ready; echo FROZEN >{group}/freezer.state");
    let mut running = started(json!([{"name": "main", "script": script}]), undo_and_last()).await;
    running
        .until("it is frozen", |r| r.log("main").contains("ready"))
        .await;
    while !std::fs::read_to_string(format!("{group}/freezer.state"))
        .unwrap()
        .starts_with("FROZEN")
    {
        tokio::task::yield_now().await;
    }
    running.stop("Cancelled", 0, false).await;
    let done = running.finished().await;
    let frozen = std::fs::read_to_string(format!("{group}/tasks")).unwrap();
    std::fs::write(format!("{group}/freezer.state"), "THAWED").unwrap();
    while std::fs::remove_dir(&group).is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(done.end(), ("Failed".into(), "Abandoned"));
    assert_eq!(
        done.steps(),
        ["main Failed/Abandoned", "undo Succeeded", "last Succeeded"]
    );
    assert!(
        done.status.message.contains(frozen.trim()),
        "{} names not {frozen}",
        done.status.message
    );
}
