//! What steps leave behind.

use crate::rig::{PROBE, living, pids, probe, steps};
use agent::platform;
use serde_json::json;

/// IO-01.
#[tokio::test]
async fn a_process_that_holds_the_pipe_does_not_hold_the_step() {
    let rig = steps(json!([]), json!({}));
    let file = rig.path("pids");
    let done = probe(&["leave", &file, "7"]).run().await;
    assert_eq!(done.step("main").exit_code, Some(7));
    let left = pids(&file);
    assert_eq!(left.len(), 1);
    assert!(living(&file).is_empty());
    assert!(
        done.log("main").contains(&format!(
            "left 1 process behind, ended now: {} (prow-probe)",
            left[0]
        )),
        "{}",
        done.log("main")
    );
}

/// PT-05.
#[tokio::test]
async fn what_set_itself_apart_may_outlive_the_step_but_not_the_task() {
    let rig = steps(json!([]), json!({}));
    let file = rig.path("pids");
    let main = json!([
        {"name": "main", "command": [PROBE, "leave", file, "0", "--apart"], "allowDetached": true},
        {"name": "look", "script": format!("kill -0 $(cat {file}) && echo alive")},
    ]);
    let done = steps(main, json!({})).run().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""));
    assert_eq!(done.log("look"), "alive\n");
    assert_eq!(
        done.step("main").detached,
        [format!("{} prow-probe", pids(&file)[0])]
    );
    assert!(living(&file).is_empty());
}

/// PT-05.
#[tokio::test]
async fn nothing_outlives_a_step_that_does_not_allow_it() {
    let rig = steps(json!([]), json!({}));
    let file = rig.path("pids");
    let main = json!([
        {"name": "main", "command": [PROBE, "leave", file, "0", "--apart"]},
        {"name": "look", "script": format!("kill -0 $(cat {file}) 2>/dev/null || echo gone")},
    ]);
    assert_eq!(steps(main, json!({})).run().await.log("look"), "gone\n");
}

/// PT-04.
#[tokio::test]
async fn a_chain_of_short_lived_processes_does_not_run_away() {
    for round in 0..5 {
        let rig = steps(json!([]), json!({}));
        let file = rig.path("pids");
        let script = format!("env -i {PROBE} relay 100000 {file}; echo begun; sleep 900");
        let mut running = steps(json!([{"name": "main", "script": script}]), json!({})).start();
        running.connect().await;
        running
            .until("it has begun", |r| r.log("main").contains("begun"))
            .await;
        running.stop("Cancelled", 0, false).await;
        let done = running.finished().await;
        assert_eq!(done.end(), ("Cancelled".into(), "Cancelled"));
        let before = pids(&file).len();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await; // ten generations
        assert_eq!(pids(&file).len(), before, "round {round}: it goes on");
    }
}

/// PT-02.
#[tokio::test]
async fn steps_die_with_their_runner_and_the_agent_ends_the_rest() {
    let rig = steps(json!([]), json!({}));
    let file = rig.path("pids");
    let mut running = steps(
        json!([{"name": "main", "script": format!("{PROBE} tree 3 {file}; true")}]),
        json!({}),
    )
    .start();
    running.connect().await;
    while pids(&file).len() < 3 {
        tokio::task::yield_now().await;
    }
    running.kill().await;
    let uid = running.rig.dir.uid();
    let containment = running.containment();
    let left = platform::end_survivors(uid, containment.as_deref(), std::time::Duration::from_secs(10)).await;
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
