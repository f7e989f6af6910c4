//! What a step says of its shell, and shells that do not begin. A small program stands in for PowerShell where it is not installed: it gets
//! the command line and variables that PowerShell would get, and leaves the marks that its wrapper would.

use crate::rig::{Finished, Rig, steps};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use tempfile::TempDir;

/// A pwsh that runs `script` of sh instead; `$command` is what follows -Command.
fn with_pwsh(mut step: Value, script: &str) -> (TempDir, Rig) {
    step["name"] = json!("main");
    step["shell"] = json!("pwsh");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("pwsh");
    let text = format!("#!/bin/sh\nfor command; do :; done\n{script}\n");
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:$(PATH)", folder.path().display());
    step["env"] = json!([{"name": "PATH", "value": path}]);
    (folder, steps(json!([step]), json!({})))
}

async fn run((_folder, rig): (TempDir, Rig)) -> Finished {
    rig.run().await
}

/// What a PowerShell does whose wrapper runs.
const BEGINS: &str = "echo FullLanguage >\"$PROW_MODE\"; echo $$ >\"$PROW_BEGAN\"";

fn failed(done: &Finished, reason: &str) {
    assert_eq!(done.end(), ("Failed".into(), reason), "{}", done.status.message);
}

/// EC-01, IO-10, SE-06: no -File, nothing encoded, the script's text on no command line.
#[tokio::test]
async fn powershell_is_started_with_a_wrapper_and_the_untouched_file() {
    let script = "Write-Output 'prüfung'\n";
    let says = format!(
        "{BEGINS}; echo \"$*\"; cat \"$PROW_SCRIPT\"; echo \"$PROW_NATIVE_ERRORS $PROW_NATIVE_OK $PROW_ERROR_ACTION\"; exit 42"
    );
    let step = json!({"script": script, "nativeErrors": "Last", "args": ["-Name", "it's"], "exitCodes": {"warning": ["1-7"]}});
    let done = run(with_pwsh(step, &says)).await;
    failed(&done, "ExitCode");
    assert_eq!(done.step("main").exit_code, Some(42));
    let log = done.log("main");
    let mut lines = log.lines();
    let command = lines.next().unwrap();
    assert!(
        command.starts_with("-NoLogo -NoProfile -NonInteractive -OutputFormat Text -Command Set-Content -LiteralPath $env:PROW_MODE")
            && command.ends_with("prow-step.ps1' -Name 'it''s'; exit $LASTEXITCODE"),
        "{command}"
    );
    assert!(!command.contains("prüfung") && !command.contains("-EncodedCommand"));
    assert_eq!(lines.next().unwrap(), "Write-Output 'prüfung'");
    assert_eq!(lines.next().unwrap(), "Last 0..0,1..7 Stop");
}

#[tokio::test]
async fn a_shell_that_does_not_begin_the_script_is_no_success_whatever_its_code() {
    for code in [0, 1, 12] {
        let says = format!("echo ConstrainedLanguage >\"$PROW_MODE\"; echo refused >&2; exit {code}");
        let step = json!({"script": "x", "exitCodes": {"success": [0, 1]}});
        let done = run(with_pwsh(step, &says)).await;
        failed(&done, "ScriptBlocked");
        let message = &done.step("main").message;
        for part in [
            &format!("exit code {code}"),
            "RemoteSigned",
            "ConstrainedLanguage",
            "refused",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(done.step("main").exit_code, None, "it is not the script's");
    }
}

#[tokio::test]
async fn a_check_that_does_not_begin_is_blocked_too() {
    let done = run(with_pwsh(json!({"check": "$true", "script": "x"}), "exit 0")).await;
    failed(&done, "ScriptBlocked");
    assert!(done.step("main").message.contains("language mode: not known"));
}

/// The first start hangs, the second does not.
#[tokio::test]
async fn a_shell_that_hangs_before_it_begins_is_tried_once_more() {
    let hangs_once = format!("[ -e ../hung ] || {{ touch ../hung; sleep 900; }}; {BEGINS}; echo ran");
    let (_folder, mut rig) = with_pwsh(json!({"script": "x"}), &hangs_once);
    rig.options.shell_start_seconds = 1;
    let done = rig.run().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""), "{}", done.status.message);
    assert_eq!(done.step("main").attempts, 2);
    assert!(
        done.log("main")
            .contains("did not begin the script; ended by force")
    );
    assert!(done.log("main").ends_with("ran\n"));
}

#[tokio::test]
async fn a_shell_that_always_hangs_fails_after_two_tries() {
    let (_folder, mut rig) = with_pwsh(json!({"script": "x"}), "sleep 900");
    rig.options.shell_start_seconds = 1;
    let done = rig.run().await;
    failed(&done, "ShellStuck");
    assert_eq!(done.step("main").attempts, 2);
}

#[tokio::test]
async fn a_script_that_a_programs_code_cut_short_is_no_success() {
    let stopped = format!("{BEGINS}; echo stopped >>\"$PROW_BEGAN\"; exit 3");
    let step = json!({"script": "x", "exitCodes": {"success": [0], "warning": [3]}});
    let done = run(with_pwsh(step, &stopped)).await;
    failed(&done, "NativeError");
    assert_eq!(done.step("main").exit_code, Some(3));
    assert!(
        done.status.message.contains("Invoke-Native"),
        "{}",
        done.status.message
    );
}

#[tokio::test]
async fn a_script_file_of_a_config_map_is_run_byte_for_byte() {
    let (_folder, mut rig) = with_pwsh(
        json!({"scriptFile": {"configMap": "scripts", "path": "deploy.ps1"}}),
        &format!("{BEGINS}; cat \"$PROW_SCRIPT\""),
    );
    rig.config_maps = json!({"scripts": {"deploy.ps1": "exit 0\r\n# SIG # Begin\r\n"}});
    let done = rig.run().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""), "{}", done.status.message);
    let raw = done.raw_log("main");
    let has = |bytes: &[u8]| raw.windows(bytes.len()).any(|w| w == bytes);
    assert!(has(b"exit 0\r\n") && has(b"# SIG # Begin\r\n"));
}

#[tokio::test]
async fn a_script_file_of_the_host_is_run_where_it_lies() {
    let rig = Rig::new(json!({}));
    let file = rig.path("my script.sh");
    std::fs::write(&file, "echo \"$0 got $1\"; exit 3\n").unwrap();
    let step = json!([{"name": "main", "scriptFile": {"hostPath": file}, "args": ["one"]}]);
    let done = steps(step, json!({})).run().await;
    assert_eq!(done.log("main"), format!("{file} got one\n"));
    assert_eq!(done.step("main").exit_code, Some(3));
    for path in ["scripts/x.sh", "/nowhere/x.sh"] {
        let step = json!([{"name": "main", "scriptFile": {"hostPath": path}}]);
        let done = steps(step, json!({})).run().await;
        failed(&done, "StartFailed");
        assert!(done.status.message.contains(path), "{}", done.status.message);
    }
}

#[tokio::test]
async fn what_the_hosts_shell_does_not_have_is_refused() {
    for (field, value, says) in [
        ("nativeErrors", "Stop", "only powershell and pwsh"),
        ("executionPolicy", "Bypass", "only powershell and pwsh"),
    ] {
        let mut step = json!({"name": "main", "script": "echo ran"});
        step[field] = json!(value);
        let done = steps(json!([step]), json!({})).run().await;
        failed(&done, "StartFailed");
        assert!(done.status.message.contains(says), "{}", done.status.message);
        assert_eq!(done.log("main"), "");
    }
    let done = run(with_pwsh(
        json!({"script": "x", "executionPolicy": "AllSigned"}),
        BEGINS,
    ))
    .await;
    failed(&done, "StartFailed");
}
