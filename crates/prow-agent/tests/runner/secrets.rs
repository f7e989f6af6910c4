//! Secrets: where they get to, and where never.

use crate::rig::{Rig, script, steps};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value as Json, json};
use std::path::Path;

const KEY: &str = "-----BEGIN KEY-----\ncanary-one/+= x\ncanary-two\"\\\n-----END KEY-----\n";

fn with_secret(mut rig: Rig) -> Rig {
    rig.secrets = json!({"tls": {"key": KEY, "user": "canary-user"}});
    rig
}

fn key_in_env() -> Json {
    json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "tls", "key": "key"}}}])
}

/// Every file below a folder that holds `needle`.
fn holding(folder: &Path, needle: &[u8], found: &mut Vec<String>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            holding(&path, needle, found);
        } else if std::fs::read(&path).is_ok_and(|b| b.windows(needle.len()).any(|w| w == needle)) {
            found.push(path.display().to_string());
        }
    }
}

/// SE-01.
#[tokio::test]
async fn a_secret_of_several_lines_is_masked_in_every_form_and_nowhere_on_the_disk() {
    let text = r#"
        printf '%s' "$KEY"; printf '%s' "$KEY" | sed 's/^/out: /'; printf '%s' "$KEY" | sed 's/$/\r/'
        printf '%s' "$KEY" | base64; printf 'user:%s' "$KEY" | base64 -w 0; echo
        printf '%s' "$KEY" | while IFS= read -r line; do printf '%.8s' "$line"; sleep 0.01; printf '%s\n' "${line#????????}"; done
        echo "token=$KEY" >&2
        printf 'a<<END\n%s\nEND\n' "$KEY" >>"$PROW_OUTPUT"
        exit 3
    "#;
    let rig = steps(
        json!([{"name": "main", "script": text, "env": key_in_env()}]),
        json!({}),
    );
    let done = with_secret(rig).run().await;
    assert_eq!(done.end(), ("Failed".into(), "ExitCode"), "{}", done.log("main"));
    let seen = format!("{}{:?}", done.log("main"), done.status);
    for piece in [
        "canary-one",
        "canary-two",
        "Y2FuYXJ5",
        "BEGIN KEY",
        &BASE64_STANDARD.encode("canary-one")[..8],
    ] {
        assert!(!seen.contains(piece), "{piece} in {seen}");
    }
    for needle in ["canary-one", "canary-two"] {
        let mut found = Vec::new();
        holding(&done.rig.dir.path(), needle.as_bytes(), &mut found);
        found.retain(|f| !f.ends_with("output.env")); // the step's own file, on its own wish
        assert!(found.is_empty(), "{found:?}");
    }
}

#[tokio::test]
async fn secrets_come_as_variables_and_as_private_files_that_go_again() {
    let rig = steps(
        json!([
            {"name": "main", "script": "stat -c '%a %n' tls/*; wc -c <tls/key; test \"$P_user\" = canary-user && echo same; cat conf/color",
             "envFrom": [{"prefix": "P_", "secretRef": {"name": "tls"}}],
             "mounts": [{"secret": "tls", "path": "tls"}, {"configMap": "web", "path": "conf"}]},
            {"name": "next", "script": "ls tls; cat conf/color"},
        ]),
        json!({}),
    );
    let mut rig = with_secret(rig);
    rig.config_maps = json!({"web": {"color": "blue\n"}});
    let done = rig.run().await;
    assert_eq!(
        done.log("main"),
        format!("600 tls/key\n600 tls/user\n{}\nsame\nblue\n", KEY.len())
    );
    assert_eq!(done.log("next"), "blue\n", "the secret's files are gone");
}

#[tokio::test]
async fn a_mount_does_not_follow_a_link_out_of_the_workspace() {
    let rig = Rig::new(json!({}));
    let outside = rig.path("outside");
    std::fs::create_dir(&outside).unwrap();
    let rig = steps(
        json!([
            {"name": "plant", "script": format!("ln -s {outside} tls")},
            {"name": "main", "script": "true", "mounts": [{"secret": "tls", "path": "tls"}]},
        ]),
        json!({}),
    );
    let done = with_secret(rig).run().await;
    assert_eq!(done.end(), ("Failed".into(), "StartFailed"));
    assert_eq!(Path::new(&outside).read_dir().unwrap().count(), 0);
}

/// AP-05.
#[tokio::test]
async fn cleaning_up_does_not_walk_through_a_link() {
    let rig = Rig::new(json!({}));
    let precious = rig.path("precious");
    std::fs::create_dir(&precious).unwrap();
    std::fs::write(format!("{precious}/file"), "whole").unwrap();
    let done = script(&format!("ln -s {precious} lib; mkdir -p a/b; chmod 500 a"))
        .run()
        .await;
    assert!(!done.rig.dir.workspace().exists());
    assert_eq!(
        std::fs::read_to_string(format!("{precious}/file")).unwrap(),
        "whole"
    );
}

#[tokio::test]
async fn a_check_gets_no_secrets_and_a_missing_one_fails_the_step() {
    let env = json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "tls", "key": "nope"}}}]);
    let rig = steps(
        json!([
            {"name": "skipped", "check": "test -z \"$KEY\"", "script": "exit 1", "env": env},
            {"name": "main", "script": "true", "env": env},
        ]),
        json!({}),
    );
    let done = with_secret(rig).run().await;
    assert_eq!(
        done.steps(),
        ["skipped Skipped/Compliant", "main Failed/SecretUnavailable"]
    );
    assert!(!done.status.started_steps, "nothing of it had started");
}

/// SE-06.
#[tokio::test]
async fn a_secret_is_refused_on_a_command_line() {
    let rig = steps(
        json!([{"name": "main", "command": ["echo"], "args": ["--token=$(P_user)"], "envFrom": [{"prefix": "P_", "secretRef": {"name": "tls"}}]}]),
        json!({}),
    );
    let done = with_secret(rig).run().await;
    assert_eq!(done.end(), ("Failed".into(), "StartFailed"));
    assert!(
        done.status.message.contains("command line"),
        "{}",
        done.status.message
    );
}

#[tokio::test]
async fn a_step_adds_masks_of_its_own_that_work_at_once_and_later() {
    let rig = steps(
        json!([
            {"name": "main", "script": "token=$(printf 'made-%s' up); echo $token >>\"$PROW_MASK\"; echo \"got $token\""},
            {"name": "next", "script": "printf 'made-%s again\\n' up"},
        ]),
        json!({}),
    );
    let done = rig.run().await;
    assert_eq!(
        (done.log("main").as_str(), done.log("next").as_str()),
        ("got ***\n", "*** again\n")
    );
}

/// SE-05.
#[tokio::test]
async fn a_runner_leaves_no_core_and_its_steps_may() {
    let mut running = script("ulimit -c; while [ ! -e go ]; do sleep 0.01 || :; done").start();
    running.connect().await;
    running.until("it runs", |r| !r.log("main").is_empty()).await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.spawned.identity.pid)).unwrap();
    let core = limits
        .lines()
        .find(|l| l.starts_with("Max core file size"))
        .unwrap();
    assert_eq!(core.split_whitespace().nth(4), Some("0"), "{core}");
    let own = std::process::Command::new("sh")
        .args(["-c", "ulimit -c"])
        .output()
        .unwrap();
    assert_eq!(running.log("main").into_bytes(), own.stdout);
    std::fs::write(running.rig.dir.workspace().join("go"), "").unwrap();
    running.finished().await;
}
