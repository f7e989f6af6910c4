//! What a runner promises on Windows, with programs as steps: trees, exit codes, stops, output, arguments.

use crate::rig::{Rig, have, living, pids, probe, probe_step, steps};
use agent::platform;
use serde_json::{Value as Json, json};
use std::time::Duration;

/// How often what only goes wrong now and then is tried.
fn rounds(default: usize) -> usize {
    std::env::var("ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

/// A Job of these steps, and the file of pids that they know as `$(PROW_CHECKPOINT)\pids`.
fn with_pids(main: Json) -> (Rig, String) {
    let rig = steps(main, json!({}));
    let checkpoint = rig.dir.data().checkpoint(&rig.task.spec.job_ref.uid, 0);
    let file = checkpoint.join("pids").display().to_string();
    (rig, file)
}

const PIDS: &str = r"$(PROW_CHECKPOINT)\pids";

/// EC-05.
#[tokio::test]
async fn exit_codes_keep_all_their_bits() {
    for (code, name) in [
        (0xC000_0005_u32, "STATUS_ACCESS_VIOLATION"),
        (3010, ""),
        (259, ""),
        (65_536, ""),
        (u32::MAX, ""),
    ] {
        let done = probe(&["exit", "--", &code.cast_signed().to_string()])
            .run()
            .await;
        let step = done.step("main");
        assert_eq!(step.exit_code, Some(i64::from(code)));
        assert_eq!(step.exit_name, name, "{code:#x}");
    }
}

/// AP-02.
#[tokio::test]
async fn arguments_arrive_exactly() {
    let args = [
        r"C:\dir\",
        "",
        r#"say "hi""#,
        r#"a\\"b"#,
        "N=x y",
        r"x y\",
        "%PATH%",
        "^&|<>",
        "ü☃",
        "two\nlines",
    ];
    let all: Vec<&str> = ["argv", "--"].into_iter().chain(args).collect();
    let done = probe(&all).run().await;
    let expected: String = args.iter().map(|arg| format!("[{arg}]\n")).collect();
    assert_eq!(done.log("main"), expected);
}

/// PT-01.
#[tokio::test]
async fn a_cancelled_tree_of_three_levels_has_no_survivor() {
    for round in 0..rounds(3) {
        let (rig, file) = with_pids(json!([probe_step("main", &["tree", "3", PIDS])]));
        let mut running = rig.attended().await;
        have(&file, 3).await;
        running.stop("Cancelled", 0, false).await;
        let done = running.finished().await;
        assert_eq!(done.steps(), ["main Cancelled/Cancelled"]);
        assert!(living(&file).is_empty(), "round {round}");
    }
}

/// PT-02.
#[tokio::test]
async fn steps_die_with_their_runner() {
    let (rig, file) = with_pids(json!([probe_step("main", &["tree", "3", PIDS])]));
    let mut running = rig.attended().await;
    have(&file, 3).await;
    running.kill().await;
    let (uid, containment) = (running.rig.dir.uid(), running.containment());
    let left = platform::end_survivors(uid, containment.as_deref(), Duration::from_secs(10)).await;
    assert!(left.is_empty(), "{left:?}");
    assert!(living(&file).is_empty());
}

/// PT-04.
#[tokio::test]
async fn a_chain_of_short_lived_processes_does_not_run_away() {
    for round in 0..rounds(3) {
        let (rig, file) = with_pids(json!([probe_step("main", &["relay", "100000", PIDS])]));
        let done = rig.run().await;
        assert_eq!(done.end(), ("Succeeded".into(), ""));
        let before = pids(&file).len();
        tokio::time::sleep(Duration::from_millis(100)).await; // several generations
        assert_eq!(pids(&file).len(), before, "round {round}: it goes on");
    }
}

/// PT-05.
#[tokio::test]
async fn what_broke_away_outlives_the_step_only_where_it_may() {
    for allowed in [true, false] {
        let mut main = probe_step("main", &["leave", PIDS, "0", "--apart"]);
        main["allowDetached"] = json!(allowed);
        let (rig, file) = with_pids(json!([main, probe_step("look", &["sleep", "900"])]));
        let mut running = rig.attended().await;
        running
            .until("the second step runs", |r| r.status().steps.len() > 1)
            .await;
        assert_eq!(living(&file).len(), usize::from(allowed));
        running.stop("Cancelled", 0, false).await;
        let done = running.finished().await;
        assert!(living(&file).is_empty(), "nothing outlives the task");
        let said = done.log("main");
        assert_eq!(said.contains("left 1 process behind"), !allowed, "{said}");
        let detached = format!("{} prow-probe.exe", pids(&file)[0]);
        assert_eq!(done.step("main").detached.contains(&detached), allowed);
    }
}

/// IO-01.
#[tokio::test]
async fn a_process_that_holds_the_pipe_does_not_hold_the_step() {
    let (rig, file) = with_pids(json!([probe_step("main", &["leave", PIDS, "7"])]));
    let done = rig.run().await;
    assert_eq!(done.step("main").exit_code, Some(7));
    assert!(living(&file).is_empty());
    let note = format!(
        "left 1 process behind, ended now: {} (prow-probe.exe)",
        pids(&file)[0]
    );
    assert!(done.log("main").contains(&note), "{}", done.log("main"));
}

/// CT-01: Ctrl-C is heard, and a step that cleans up gets the time to.
#[tokio::test]
async fn a_step_that_cleans_up_at_ctrl_c_gets_the_time_to() {
    let folder = tempfile::tempdir().unwrap();
    let cleaned = folder.path().join("cleaned");
    let mut main = probe_step("main", &["on-end", "300", cleaned.to_str().unwrap()]);
    main["stopSignal"] = json!("CtrlC");
    let mut running = steps(json!([main]), json!({})).attended().await;
    running
        .until("it is ready", |r| r.log("main").contains("ready"))
        .await;
    running.stop("Cancelled", 60, false).await;
    let done = running.finished().await;
    assert_eq!(done.end(), ("Cancelled".into(), "Cancelled"));
    assert_eq!(
        std::fs::read_to_string(cleaned).unwrap(),
        "cleaned\n",
        "{}",
        done.log("main")
    );
    assert!(done.log("main").contains("asked to end (Ctrl-C)"));
}

/// CT-01: one that ignores it is ended after the grace, and so is one that cannot be asked.
#[tokio::test]
async fn a_step_that_ignores_the_signal_is_ended() {
    for signal in ["CtrlC", "CtrlBreak", "Close", "Kill"] {
        let mut main = probe_step("main", &["ignore", PIDS]);
        main["stopSignal"] = json!(signal);
        let (rig, file) = with_pids(json!([main]));
        let mut running = rig.attended().await;
        have(&file, 1).await;
        running.stop("Cancelled", 1, false).await;
        let done = running.finished().await;
        assert_eq!(done.end(), ("Cancelled".into(), "Cancelled"), "{signal}");
        assert!(living(&file).is_empty(), "{signal}");
    }
}

/// CT-08.
#[tokio::test]
async fn the_next_try_starts_when_the_tree_of_the_last_is_gone() {
    let mut main = probe_step("main", &["tree", "3", PIDS]);
    main["timeoutSeconds"] = json!(1);
    main["stopSignal"] = json!("Kill");
    main["retryStrategy"] = json!({"limit": 2, "backoff": {"duration": "1ms"}});
    let (rig, file) = with_pids(json!([main]));
    let done = rig.run().await;
    assert_eq!(done.step("main").attempts, 3);
    assert_eq!(done.step("main").reason, "Timeout");
    assert_eq!(pids(&file).len(), 9);
    assert!(living(&file).is_empty());
}

/// IO-04.
#[tokio::test]
async fn a_huge_line_is_split_and_what_follows_arrives() {
    let mut rig = probe(&["emit", &(50 << 20).to_string(), "AFTER"]);
    rig.options.max_log_bytes = 128 << 20;
    let done = rig.run().await;
    let log = done.log("main");
    assert!(
        log.ends_with("\r\nAFTER\n") || log.ends_with("\nAFTER\n"),
        "{}",
        &log[log.len() - 40..]
    );
    assert_eq!(log.bytes().filter(|b| *b == b'x').count(), 50 << 20);
}

#[tokio::test]
async fn the_last_words_of_a_quick_program_are_not_lost() {
    let done = probe(&["count", "10000", "0"]).run().await;
    let expected: String = (1..=10_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(done.log("main").replace('\r', ""), expected);
}

#[tokio::test]
async fn a_runner_goes_on_while_no_agent_is_there_and_is_known_again() {
    let mut running = probe(&["count", "40", "20"]).start();
    running.connect().await;
    running.until("it counts", |r| r.log("main").contains('5')).await;
    running.disconnect();
    let identity = agent::runner::Identity::of(running.spawned.identity.pid).unwrap();
    assert_eq!(identity, running.spawned.identity, "all four facts");
    running.connect().await;
    let done = running.finished().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""));
    assert_eq!(done.log("main").lines().count(), 40);
    assert!(!identity.is_alive());
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let done = steps(
        json!([{"name": "main", "command": ["no-such-program-here"]}]),
        json!({}),
    )
    .run()
    .await;
    assert_eq!(done.end(), ("Failed".into(), "StartFailed"));
    assert!(
        done.status.message.contains("no-such-program-here"),
        "{}",
        done.status.message
    );
}

/// RA-02, the part that decides: Windows tells of a program that never began by its exit code alone.
#[tokio::test]
async fn a_program_that_never_began_is_a_start_that_failed() {
    for code in [0xC000_0135_u32, 0xC000_0142] {
        let code = code.cast_signed().to_string();
        let done = probe(&["exit", "--", &code]).run().await;
        let step = done.step("main");
        assert_eq!(step.reason, "StartFailed");
        assert!(step.message.contains("DLL"), "{}", step.message);
        assert!(step.exit_code.is_some(), "the code is kept");
    }
}

/// A step gets limits or does not start. Wine refuses a limit of processor time; Windows itself does not, so there this is not run.
#[tokio::test]
async fn limits_that_cannot_be_set_keep_the_step_from_starting() {
    if !win32::system::is_wine() {
        eprintln!("not run: this host can set limits");
        return;
    }
    let mut main = probe_step("main", &["append", PIDS, "ran"]);
    main["resources"] = json!({"limits": {"cpu": "500m"}});
    let (rig, file) = with_pids(json!([main]));
    let done = rig.run().await;
    assert_eq!(done.end(), ("Failed".into(), "StartFailed"));
    let said = &done.status.message;
    assert!(said.contains("resources.limits"), "{said}");
    assert!(!std::path::Path::new(&file).exists());
}

/// PT-04: the chain is cut where it is when the step is cancelled.
#[tokio::test]
async fn a_chain_is_cut_by_a_cancel() {
    for round in 0..rounds(3) {
        let (rig, file) = with_pids(json!([probe_step("main", &["relay", "100000", PIDS, "--stay"])]));
        let mut running = rig.attended().await;
        have(&file, 5).await;
        running.stop("Cancelled", 0, false).await;
        let done = running.finished().await;
        assert_eq!(done.end(), ("Cancelled".into(), "Cancelled"));
        let before = pids(&file).len();
        tokio::time::sleep(Duration::from_millis(100)).await; // several generations
        assert_eq!(pids(&file).len(), before, "round {round}: it goes on");
        assert!(living(&file).is_empty(), "round {round}");
    }
}
