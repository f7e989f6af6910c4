//! Deaths of runner and agent, and what is never done twice.

use crate::rig::{AGENT, PROBE, Rig, script, steps};
use agent::{
    journal::{self, AgentRecord, RunRecord},
    local::{self, FromRunner},
    runner::{self, Recover},
};
use serde_json::json;
use std::{process::Command, time::Duration};

fn run_again(rig: &Rig) -> (bool, String) {
    let output = Command::new(AGENT)
        .arg("run-task")
        .arg(rig.dir.path())
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[tokio::test]
async fn a_second_runner_is_refused_while_the_first_lives_and_after_it() {
    let rig = Rig::new(json!({}));
    let file = rig.path("ran");
    let mut running = script(&format!(
        "echo x >>{file}; echo on; while [ ! -e go ]; do sleep 0.01 || :; done"
    ))
    .start();
    running.connect().await;
    running.until("it runs", |r| r.log("main").contains("on")).await;
    let (ok, why) = run_again(&running.rig);
    assert!(!ok && why.contains("another runner holds this task"), "{why}");
    std::fs::write(running.rig.dir.workspace().join("go"), "").unwrap();
    let done = running.finished().await;
    let (ok, why) = run_again(&done.rig);
    assert!(!ok && why.contains("run before"), "{why}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "x\n");
}

#[tokio::test]
async fn a_killed_runner_is_not_started_again_but_may_roll_back_once() {
    let rig = Rig::new(json!({}));
    let file = rig.path("ran");
    let say = |what: &str| format!("echo {what} >>{file}");
    let rig = steps(
        json!([{"name": "main", "script": format!("{}; echo begun; sleep 900", say("main"))}]),
        json!({"rollback": [{"name": "undo", "script": say("undo")}], "finally": [{"name": "last", "script": say("last")}]}),
    );
    let mut running = rig.start();
    running.connect().await;
    running
        .until("it runs", |r| r.log("main").contains("begun"))
        .await;
    running.kill().await;
    let (ok, why) = run_again(&running.rig);
    assert!(!ok && why.contains("run before"), "{why}");

    let recover = Recover {
        phase: api::task::TaskPhase::Failed,
        reason: "RunnerLost".into(),
        message: "the runner was killed".into(),
    };
    let mut rig = running.rig;
    rig.options.recover = Some(recover);
    let done = rig.run().await;
    assert_eq!(done.end(), ("Failed".into(), "RunnerLost"));
    assert_eq!(
        done.steps(),
        ["main Failed/RunnerLost", "undo Succeeded", "last Succeeded"]
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "main\nundo\nlast\n");
    let (ok, why) = run_again(&done.rig);
    assert!(!ok && why.contains("nothing to recover"), "{why}");
}

#[tokio::test]
async fn a_journal_torn_before_its_first_record_means_that_nothing_started() {
    let rig = script("echo ran");
    std::fs::write(rig.dir.run_journal(), "0000004f 1234").unwrap();
    assert!(!runner::has_begun(
        &journal::read(&rig.dir.run_journal()).unwrap()
    ));
    assert_eq!(rig.run().await.log("main"), "ran\n");
}

#[tokio::test]
async fn a_torn_tail_of_a_finished_journal_still_refuses_a_second_run() {
    let done = script("true").run().await;
    let path = done.rig.dir.run_journal();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    let (ok, why) = run_again(&done.rig);
    assert!(!ok && why.contains("run before"), "{why}");
    let status = runner::status_when_lost(&journal::read(&path).unwrap(), "RunnerLost", "");
    assert_eq!(status.reason, "RunnerLost");
}

/// AL-03.
#[tokio::test]
async fn steps_go_on_while_no_agent_is_there() {
    let done = script("echo alone").start().finished().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""));
    assert_eq!(done.log("main"), "alone\n");
}

/// AL-03.
#[tokio::test]
async fn a_new_agent_takes_over_in_the_middle_of_a_step() {
    let rig = steps(
        json!([
            {"name": "main", "script": "echo one; while [ ! -e go ]; do sleep 0.01 || :; done; echo two; exit 5"},
        ]),
        json!({}),
    );
    let mut running = rig.start();
    running.connect().await;
    running.until("it runs", |r| r.log("main").contains("one")).await;
    running.disconnect();
    running.connect().await;
    std::fs::write(running.rig.dir.workspace().join("go"), "").unwrap();
    let done = running.finished().await;
    assert_eq!(
        (done.step("main").exit_code, done.log("main").as_str()),
        (Some(5), "one\ntwo\n")
    );
}

#[tokio::test]
async fn a_step_waits_for_an_agent_that_has_its_secrets() {
    let env = json!([{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "p"}}}]);
    let mut rig = steps(
        json!([{"name": "main", "script": "test \"$P\" = hunter2", "env": env}]),
        json!({}),
    );
    rig.secrets = json!({"db": {"p": "hunter2"}});
    let mut running = rig.start();
    // the first agent hears the question and dies without an answer
    let (_sender, mut receiver) = loop {
        match local::connect(&running.rig.dir).await {
            Ok(agent) => break agent,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    while !matches!(
        receiver.recv().await.unwrap(),
        Some(FromRunner::NeedValues { .. })
    ) {}
    drop((_sender, receiver));
    assert!(
        !running.status().started_steps,
        "nothing starts without its values"
    );
    running.connect().await;
    assert_eq!(running.finished().await.end(), ("Succeeded".into(), ""));
}

#[tokio::test]
async fn half_a_frame_of_values_starts_nothing() {
    use tokio::io::AsyncWriteExt;
    let env = json!([{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "p"}}}]);
    let mut rig = steps(json!([{"name": "main", "script": "true", "env": env}]), json!({}));
    rig.secrets = json!({"db": {"p": "x"}});
    let mut running = rig.start();
    let mut stream = loop {
        match agent::platform::endpoint_connect(&running.rig.dir.path()).await {
            Ok(stream) => break stream,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    stream.write_all(&[200, 0, 0, 0, b'{', b'"']).await.unwrap();
    stream.shutdown().await.unwrap();
    drop(stream);
    running.connect().await;
    assert!(!running.status().started_steps);
    assert_eq!(running.finished().await.end(), ("Succeeded".into(), ""));
}

#[tokio::test]
async fn the_agent_recognises_a_living_runner_and_its_death() {
    let mut running = script("echo here; sleep 900").start();
    running.connect().await;
    running.until("it runs", |r| r.log("main").contains("here")).await;
    let recorded = running.records().into_iter().find_map(|e| match e.record {
        RunRecord::RunnerStarted { runner, .. } => Some(runner),
        _ => None,
    });
    assert_eq!(recorded.as_ref(), Some(&running.spawned.identity));
    assert!(running.spawned.identity.is_alive());
    running.kill().await;
    assert!(!running.spawned.identity.is_alive());
    agent::platform::end_survivors(
        running.rig.dir.uid(),
        running.containment().as_deref(),
        Duration::from_secs(10),
    )
    .await;
}

/// SE-05: what the folder keeps is private, and an unknown record of a newer agent does no harm.
#[tokio::test]
async fn the_folder_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let done = script("echo x").run().await;
    for path in [
        done.rig.dir.path(),
        done.rig.dir.path().join("steps"),
        done.rig.dir.data().path().to_owned(),
    ] {
        assert_eq!(
            path.metadata().unwrap().permissions().mode() & 0o077,
            0,
            "{}",
            path.display()
        );
    }
    for file in ["task.json", "job.json", "run.jsonl", "runner.log", "runner.json"] {
        let mode = done
            .rig
            .dir
            .path()
            .join(file)
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
    assert!(
        journal::read::<AgentRecord>(&done.rig.dir.agent_journal())
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn a_folder_with_a_very_long_path_works() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("x".repeat(200)).join("data");
    let data = agent::layout::DataDir::open(&long).unwrap();
    let mut rig = script("echo fine");
    let dir = data.task(rig.dir.uid()).unwrap();
    dir.create().unwrap();
    let job = std::fs::read(rig.dir.job_json()).unwrap();
    dir.write("job.json", &job).unwrap();
    rig.dir = dir;
    let mut running = rig.start();
    running.connect().await;
    let done = running.finished().await;
    assert_eq!(done.log("main"), "fine\n");
}

#[tokio::test]
async fn a_checkpoint_outlives_the_attempt() {
    let rig = steps(
        json!([{"name": "main", "command": [PROBE, "append", "$(PROW_CHECKPOINT)/mark", "1"]}]),
        json!({}),
    );
    let done = rig.run().await;
    let checkpoint = done.rig.dir.data().checkpoint(&done.rig.task.spec.job_ref.uid, 0);
    assert_eq!(std::fs::read_to_string(checkpoint.join("mark")).unwrap(), "1\n");
}

/// AL-09. Needs the right to mount a small file system; else it is not run, and says so.
#[tokio::test]
async fn a_full_disk_loses_log_lines_but_neither_the_step_nor_its_result() {
    let rig = script("head -c 30000000 /dev/zero | tr '\\0' 'x' | fold -w 1000; exit 4");
    let small = std::path::PathBuf::from(rig.path("small"));
    std::fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
        .arg(&small)
        .output();
    if !mounted.is_ok_and(|o| o.status.success()) {
        eprintln!("not run: this account may not mount a file system");
        return;
    }
    let done = {
        let data = agent::layout::DataDir::open(&small.join("data")).unwrap();
        let dir = data.task(rig.dir.uid()).unwrap();
        dir.create().unwrap();
        dir.write("job.json", &std::fs::read(rig.dir.job_json()).unwrap())
            .unwrap();
        let mut rig = rig;
        rig.dir = dir;
        rig.run().await
    };
    let end = (done.status.phase, done.step("main").exit_code);
    let log = done.raw_log("main");
    let kept = done.step("main").log_bytes;
    Command::new("umount").arg("-l").arg(&small).status().unwrap();
    assert_eq!(
        end,
        (api::task::TaskPhase::Failed, Some(4)),
        "the step came to its own end"
    );
    assert!(log.len() > 1 << 20);
    assert_eq!(kept, Some(log.len() as i64));
    assert_eq!(log.last(), Some(&b'\n'), "no half line");
}

/// Whatever instant a runner dies at: no step runs twice, the journal can be read, and it never claims less than what happened.
#[tokio::test]
async fn a_runner_killed_at_any_instant_leaves_no_double_start_and_an_honest_journal() {
    let rounds: u64 = std::env::var("ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(10);
    for round in 0..rounds {
        let say = |what: &str| json!({"name": what, "script": format!("echo {what} >>$PROW_CHECKPOINT/ran")});
        let rig = steps(
            json!([say("a"), say("b"), say("c")]),
            json!({"rollback": [say("undo")], "finally": [say("last")]}),
        );
        let checkpoint = rig.dir.data().checkpoint(&rig.task.spec.job_ref.uid, 0);
        let mut running = rig.start();
        tokio::time::sleep(Duration::from_micros(300 * (round * 7919 % 200))).await; // the instant is the point here
        running.kill().await;
        let records = running.records();
        let status = runner::status_when_lost(&records, "RunnerLost", "");
        let containment = running.containment();
        let mut rig = running.rig;
        if !runner::has_begun(&records) {
            assert!(
                !checkpoint.join("ran").exists(),
                "round {round}: a step ran without a journal"
            );
        } else if status.phase == api::task::TaskPhase::Failed {
            agent::platform::end_survivors(rig.dir.uid(), containment.as_deref(), Duration::from_secs(10))
                .await;
            assert!(!run_again(&rig).0, "round {round}: it ran again");
            rig.options.recover = Some(Recover {
                phase: api::task::TaskPhase::Failed,
                reason: "RunnerLost".into(),
                message: "killed".into(),
            });
            let done = rig.run().await;
            assert_eq!(done.status.reason, "RunnerLost", "round {round}");
            assert_eq!(
                done.status.rollback.is_some(),
                done.status.started_steps,
                "round {round}"
            );
            rig = done.rig;
        }
        let ran = std::fs::read_to_string(checkpoint.join("ran")).unwrap_or_default();
        let mut once: Vec<&str> = ran.lines().collect();
        once.sort_unstable();
        let count = once.len();
        once.dedup();
        assert_eq!(once.len(), count, "round {round}: {ran}");
        let known = runner::status_from_journal(&journal::read(&rig.dir.run_journal()).unwrap());
        let unknown: Vec<&str> = once
            .into_iter()
            .filter(|n| !known.steps.iter().any(|s| s.name == *n))
            .collect();
        assert!(
            unknown.is_empty(),
            "round {round}: {unknown:?} ran and the journal does not know"
        );
    }
}
