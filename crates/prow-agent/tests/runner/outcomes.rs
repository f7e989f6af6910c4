//! What exit codes, checks and values make of a step and its task.

use crate::rig::{PROBE, Rig, script, steps};
use serde_json::json;

#[tokio::test]
async fn a_task_of_several_steps_succeeds_and_hands_values_on() {
    let rig = steps(
        json!([
            {"name": "build", "script": "echo building\necho id=b-7 >>\"$PROW_OUTPUT\"\nprintf 'notes<<EOF\\none\\ntwo\\nEOF\\n' >>\"$PROW_OUTPUT\""},
            {"name": "use-it", "command": [PROBE, "argv"], "args": ["${{ steps.build.outputs.id }}", "$(GREETING) $$x", "${{ params.version }}"],
             "env": [{"name": "GREETING", "value": "hello ${{ node.name }}"}]},
            {"name": "old", "when": "params.version == '1'", "script": "exit 9"},
        ]),
        json!({"params": [{"name": "version", "value": "1.4.2"}], "outputs": [{"name": "build", "value": "${{ steps.build.outputs.id }}!"}]}),
    );
    let done = rig.run().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""));
    assert_eq!(
        done.steps(),
        ["build Succeeded", "use-it Succeeded", "old Skipped/When"]
    );
    assert_eq!(done.log("build"), "building\n");
    assert_eq!(done.log("use-it"), "[b-7]\n[hello web01 $x]\n[1.4.2]\n");
    assert_eq!(done.step("build").outputs["notes"], "one\ntwo");
    assert_eq!(done.status.outputs["build"], "b-7!");
    assert_eq!(done.step("build").exit_code, Some(0));
    assert_eq!(
        done.step("build").log_bytes,
        Some(done.raw_log("build").len() as i64)
    );
    assert!(
        done.status.started_steps && done.status.started_at.is_some() && done.status.finished_at.is_some()
    );
    assert!(!done.rig.dir.workspace().exists(), "the workspace stays");
}

/// EC-05, EC-06.
#[tokio::test]
async fn every_class_of_exit_codes_has_its_end() {
    let classes = json!({"warning": ["1-3"], "skip": [10], "retry": [11], "reboot": [12], "fatal": ["0xD"]});
    for (code, end, step, fatal, retry) in [
        (0, "Succeeded/", "Succeeded/", false, false),
        (2, "Succeeded/", "Succeeded/Warning", false, false),
        (4, "Failed/ExitCode", "Failed/ExitCode", false, false),
        (10, "Skipped/SkipCode", "Skipped/SkipCode", false, false),
        (11, "Failed/ExitCode", "Failed/ExitCode", false, true),
        (12, "Succeeded/", "Succeeded/PendingReboot", false, false),
        (13, "Failed/ExitCode", "Failed/ExitCode", true, false),
    ] {
        let command = [PROBE, "exit", &code.to_string()].map(str::to_owned);
        let rig = steps(
            json!([{"name": "main", "command": command, "exitCodes": classes}, {"name": "next", "script": "true"}]),
            json!({"rollback": [{"name": "undo", "script": "true"}], "finally": [{"name": "last", "script": "true"}]}),
        );
        let done = rig.run().await;
        let main = done.step("main");
        assert_eq!(
            format!("{:?}/{}", done.status.phase, done.status.reason),
            end,
            "{code}"
        );
        assert_eq!(format!("{:?}/{}", main.phase, main.reason), step, "{code}");
        assert_eq!(main.exit_code, Some(i64::from(code)));
        assert_eq!(
            (done.status.fatal, done.status.retry_code),
            (fatal, retry),
            "{code}"
        );
        let ran = |name: &str| done.status.steps.iter().any(|s| s.name == name);
        assert_eq!(ran("next"), end.starts_with("Succeeded"), "{code}");
        assert_eq!(ran("undo"), end.starts_with("Failed"), "{code}");
        assert!(ran("last"), "{code}");
    }
}

#[tokio::test]
async fn a_failed_step_tells_its_code_and_its_last_lines() {
    let done = script("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done; echo boom >&2; exit 3")
        .run()
        .await;
    assert_eq!(done.end(), ("Failed".into(), "ExitCode"));
    let message = &done.step("main").message;
    assert!(message.starts_with("exit code 3; last lines:\n"), "{message}");
    assert!(
        message.contains("line 12") && message.contains("boom") && !message.contains("line 2\n"),
        "{message}"
    );
    assert_eq!(done.status.message, "step \"main\": exit code 3");
}

#[tokio::test]
async fn a_program_ended_by_a_signal_names_it() {
    let done = script("kill -9 $$").run().await;
    let step = done.step("main");
    assert_eq!((step.exit_code, step.exit_name.as_str()), (Some(137), "SIGKILL"));
}

#[tokio::test]
async fn a_retry_succeeds_on_its_second_try() {
    let rig = Rig::new(json!({}));
    let marker = rig.path("tried");
    let rig = steps(
        json!([{
            "name": "main",
            "script": format!("if [ -e {marker} ]; then echo second; else touch {marker}; echo first; exit 7; fi"),
            "retryStrategy": {"limit": 3, "backoff": {"duration": "10ms"}},
        }]),
        json!({}),
    );
    let done = rig.run().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""));
    assert_eq!(done.step("main").attempts, 2);
    let log = done.log("main");
    assert!(
        log.starts_with("first\nprow: try 1 failed (ExitCode)") && log.ends_with("second\n"),
        "{log}"
    );
}

#[tokio::test]
async fn only_codes_worth_a_retry_are_retried_where_the_step_says_so() {
    for (code, attempts) in [(11, 3), (4, 1), (13, 1)] {
        let rig = steps(
            json!([{
                "name": "main",
                "command": [PROBE, "exit", code.to_string()],
                "exitCodes": {"retry": [11], "fatal": [13]},
                "retryStrategy": {"limit": 2, "retryOn": "RetryCodes", "backoff": {"duration": "1ms"}},
            }]),
            json!({}),
        );
        assert_eq!(rig.run().await.step("main").attempts, attempts, "{code}");
    }
}

#[tokio::test]
async fn a_check_decides_whether_a_step_runs_and_whether_it_worked() {
    for (check, script, end) in [
        ("exit 0", "exit 9", "Skipped/Compliant"),
        ("test -e done", "touch done", "Succeeded/"),
        ("exit 1", "true", "Failed/NotConverged"),
        ("exit 2", "true", "Failed/CheckFailed"),
        ("exit 1", "exit 5", "Failed/ExitCode"),
    ] {
        let done = steps(
            json!([{"name": "main", "check": check, "script": script}]),
            json!({}),
        )
        .run()
        .await;
        let step = done.step("main");
        assert_eq!(
            format!("{:?}/{}", step.phase, step.reason),
            end,
            "{check} {script}"
        );
    }
}

#[tokio::test]
async fn a_check_alone_is_an_assertion() {
    for (check, end) in [("true", "Succeeded/Compliant"), ("false", "Failed/NotConverged")] {
        let done = steps(json!([{"name": "main", "check": check}]), json!({}))
            .run()
            .await;
        let step = done.step("main");
        assert_eq!(format!("{:?}/{}", step.phase, step.reason), end, "{check}");
    }
}

#[tokio::test]
async fn an_audit_changes_nothing() {
    let rig = Rig::new(json!({}));
    let touched = rig.path("touched");
    let act = format!("touch {touched}");
    let rig = steps(
        json!([
            {"name": "good", "check": "true", "script": act},
            {"name": "bad", "check": "false", "script": act},
            {"name": "blind", "script": act},
        ]),
        json!({"mode": "Audit", "finally": [{"name": "last", "script": act}]}),
    );
    let done = rig.run().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""));
    assert_eq!(
        done.steps(),
        [
            "good Skipped/Compliant",
            "bad Succeeded/Drifted",
            "blind Skipped/NotAudited",
            "last Skipped/NotAudited"
        ]
    );
    assert!(!std::path::Path::new(&touched).exists());
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let rig = Rig::new(json!({}));
    let plain = rig.path("plain");
    std::fs::write(&plain, "no program").unwrap();
    for (step, hint) in [
        (
            json!({"command": ["no-such-program-here"]}),
            "no program \"no-such-program-here\" in PATH",
        ),
        (json!({"script": "true", "shell": "powershell"}), "Windows only"),
        (json!({"script": "true", "workingDir": "nowhere"}), "no folder"),
        (json!({"command": [plain]}), "not executable"),
        (
            json!({"script": "true", "env": [{"name": "A", "value": "${{ steps.main.outputs.nope }}"}]}),
            "env A",
        ),
    ] {
        let mut step = step;
        step["name"] = "main".into();
        let done = steps(json!([step]), json!({})).run().await;
        let main = done.step("main");
        assert_eq!(main.reason, "StartFailed", "{step}");
        assert!(main.message.contains(hint), "{}", main.message);
    }
}

#[tokio::test]
async fn a_condition_that_cannot_be_evaluated_fails_the_step() {
    let done = steps(
        json!([{"name": "main", "when": "params.nope == 'x'", "script": "true"}]),
        json!({}),
    )
    .run()
    .await;
    assert_eq!(done.end(), ("Failed".into(), "WhenError"));
}

#[tokio::test]
async fn bad_outputs_fail_the_step_and_name_the_line() {
    for (text, hint) in [
        ("echo a=1 >>$PROW_OUTPUT; echo nonsense >>$PROW_OUTPUT", "line 2"),
        (
            "head -c 40000 /dev/zero | tr '\\0' x | sed 's/^/big=/' >$PROW_OUTPUT",
            "the limit is 32768",
        ),
    ] {
        let done = script(text).run().await;
        assert_eq!(done.end(), ("Failed".into(), "OutputInvalid"));
        assert!(
            done.step("main").message.contains(hint),
            "{}",
            done.step("main").message
        );
    }
}

#[tokio::test]
async fn steps_see_the_variables_they_are_promised() {
    let rig = steps(
        json!([{"name": "main", "script": "env | grep -E '^(PROW_|CI=|A=|B=)' | sort; pwd; test -s \"$PROW_OUTPUT\" || echo empty; cat"}]),
        json!({
            "params": [{"name": "my-version", "value": "1"}],
            "env": [{"name": "A", "value": "job"}, {"name": "B", "value": "$(A)/$(PROW_JOB)"}],
        }),
    );
    let workspace = rig.dir.workspace().display().to_string();
    let done = rig.run().await;
    let log = done.log("main");
    for line in [
        "A=job",
        "B=job/patch",
        "CI=true",
        "PROW_JOB=patch",
        "PROW_TASK=patch-1a2b3-0-0",
        "PROW_STEP=main",
        "PROW_NODE=web01",
        "PROW_NAMESPACE=ops",
        "PROW_TASK_INDEX=0",
        "PROW_TASK_COUNT=1",
        "PROW_ATTEMPT=0",
        "PROW_PARAM_MY_VERSION=1",
        &format!("PROW_WORKSPACE={workspace}"),
        &workspace,
        "empty",
    ] {
        assert!(log.lines().any(|l| l == line), "{line} is missing in\n{log}");
    }
}

#[tokio::test]
async fn all_shells_of_this_host_run_scripts() {
    for (shell, text) in [
        ("sh", "echo hi"),
        ("bash", "a=(hi); echo ${a[0]}"),
        ("bash", "false | true; echo never"),
        ("sh -x {0}", "echo hi"),
    ] {
        let done = steps(
            json!([{"name": "main", "shell": shell, "script": text}]),
            json!({}),
        )
        .run()
        .await;
        if text.contains("never") {
            assert_eq!(done.end(), ("Failed".into(), "ExitCode"), "pipefail");
            assert!(!done.log("main").contains("never"));
        } else {
            assert!(
                done.log("main").lines().any(|l| l == "hi"),
                "{shell}: {}",
                done.log("main")
            );
        }
    }
}

#[tokio::test]
async fn memory_and_time_are_measured() {
    let done = crate::rig::probe(&["use", "64"]).run().await;
    let step = done.step("main");
    assert!(step.peak_memory_bytes.unwrap() > 60 << 20, "{step:?}");
    assert!(step.cpu_seconds.unwrap() > 0.0);
}
