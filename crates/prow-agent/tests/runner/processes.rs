//! What steps leave behind. Each test runs twice: with a control group, where the host lets us make one, and without.

use crate::rig::{PROBE, Rig, have, living, pids, steps};
use agent::platform;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// A Job of these steps, with and without control groups, and the file of pids that they know as `$PROW_CHECKPOINT/pids`.
fn both_ways(main: Json) -> [(Rig, String); 2] {
    [true, false].map(|groups| {
        let mut rig = steps(main.clone(), json!({}));
        rig.options.control_groups = groups;
        let checkpoint = rig.dir.data().checkpoint(&rig.task.spec.job_ref.uid, 0);
        let file = checkpoint.join("pids").display().to_string();
        (rig, file)
    })
}

/// IO-01.
#[tokio::test]
async fn a_process_that_holds_the_pipe_does_not_hold_the_step() {
    for (rig, file) in
        both_ways(json!([{"name": "main", "command": [PROBE, "leave", "$(PROW_CHECKPOINT)/pids", "7"]}]))
    {
        let done = rig.run().await;
        assert_eq!(done.step("main").exit_code, Some(7));
        let left = pids(&file);
        assert_eq!(left.len(), 1);
        assert!(living(&file).is_empty());
        let note = format!("left 1 process behind, ended now: {} (prow-probe)", left[0]);
        assert!(done.log("main").contains(&note), "{}", done.log("main"));
    }
}

/// PT-05.
#[tokio::test]
async fn what_set_itself_apart_may_outlive_the_step_but_not_the_task() {
    let main = json!([
        {"name": "main", "command": [PROBE, "leave", "$(PROW_CHECKPOINT)/pids", "0", "--apart"], "allowDetached": true},
        {"name": "look", "script": "kill -0 $(cat $PROW_CHECKPOINT/pids) && echo alive"},
    ]);
    for (rig, file) in both_ways(main) {
        let done = rig.run().await;
        assert_eq!(done.end(), ("Succeeded".into(), ""));
        assert_eq!(done.log("look"), "alive\n");
        assert_eq!(
            done.step("main").detached,
            [format!("{} prow-probe", pids(&file)[0])]
        );
        assert!(living(&file).is_empty());
    }
}

/// PT-05.
#[tokio::test]
async fn nothing_outlives_a_step_that_does_not_allow_it() {
    let main = json!([
        {"name": "main", "command": [PROBE, "leave", "$(PROW_CHECKPOINT)/pids", "0", "--apart"]},
        {"name": "look", "script": "kill -0 $(cat $PROW_CHECKPOINT/pids) 2>/dev/null || echo gone"},
    ]);
    for (rig, _) in both_ways(main) {
        assert_eq!(rig.run().await.log("look"), "gone\n");
    }
}

/// PT-01.
#[tokio::test]
async fn a_cancelled_tree_of_three_levels_has_no_survivor() {
    for (rig, file) in
        both_ways(json!([{"name": "main", "script": format!("{PROBE} tree 3 $PROW_CHECKPOINT/pids; true")}]))
    {
        let mut running = rig.attended().await;
        have(&file, 3).await;
        running.stop("Cancelled", 5, false).await;
        let done = running.finished().await;
        assert_eq!(done.steps(), ["main Cancelled/Cancelled"]);
        assert!(living(&file).is_empty());
    }
}

/// PT-04.
#[tokio::test]
async fn a_chain_of_short_lived_processes_does_not_run_away() {
    let rounds = std::env::var("ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(3);
    for round in 0..rounds {
        let script = format!("env -i {PROBE} relay 100000 $PROW_CHECKPOINT/pids; echo begun; sleep 900");
        for (rig, file) in both_ways(json!([{"name": "main", "script": script}])) {
            let mut running = rig.attended().await;
            running
                .until("it has begun", |r| r.log("main").contains("begun"))
                .await;
            running.stop("Cancelled", 0, false).await;
            let done = running.finished().await;
            assert_eq!(done.end(), ("Cancelled".into(), "Cancelled"));
            let before = pids(&file).len();
            tokio::time::sleep(Duration::from_millis(50)).await; // ten generations
            assert_eq!(pids(&file).len(), before, "round {round}: it goes on");
        }
    }
}

/// PT-02.
#[tokio::test]
async fn steps_die_with_their_runner_and_the_agent_ends_the_rest() {
    for (rig, file) in
        both_ways(json!([{"name": "main", "script": format!("{PROBE} tree 3 $PROW_CHECKPOINT/pids; true")}]))
    {
        let mut running = rig.attended().await;
        have(&file, 3).await;
        running.kill().await;
        let (uid, containment) = (running.rig.dir.uid(), running.containment());
        assert!(containment.is_none() || running.rig.options.control_groups);
        let left = platform::end_survivors(uid, containment.as_deref(), Duration::from_secs(10)).await;
        assert!(left.is_empty(), "{left:?}");
        assert!(living(&file).is_empty());
        assert!(platform::tree_gone(uid, containment.as_deref()));
        let status = agent::runner::status_when_lost(&running.records(), "RunnerLost", "killed");
        assert!(status.started_steps);
        assert_eq!(
            (status.reason.as_str(), status.steps[0].reason.as_str()),
            ("RunnerLost", "RunnerLost")
        );
    }
}

/// A step gets limits or does not start.
#[tokio::test]
async fn limits_that_cannot_be_set_keep_the_step_from_starting() {
    let main = json!([{"name": "main", "script": "touch $PROW_CHECKPOINT/pids", "resources": {"limits": {"memory": "64Mi"}}}]);
    let [_, (rig, file)] = both_ways(main);
    let done = rig.run().await;
    assert_eq!(done.end(), ("Failed".into(), "StartFailed"));
    assert!(
        done.status.message.contains("resources.limits"),
        "{}",
        done.status.message
    );
    assert!(!std::path::Path::new(&file).exists());
}
