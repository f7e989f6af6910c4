//! `install --root` and `uninstall --root`.

use std::{
    path::Path,
    process::{Command, Output},
};

const TOKEN: &str = "prow1.aaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn prow_agent(command: &str, root: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prow-agent"))
        .arg(command)
        .args(args)
        .arg("--root")
        .arg(root)
        .output()
        .unwrap()
}

fn error(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn token() -> String {
    pki::JoinToken::generate(&"0".repeat(64)).unwrap().to_string()
}

#[test]
fn an_image_gets_all_that_the_service_needs_and_again_is_fine() {
    let root = tempfile::tempdir().unwrap();
    let token = token();
    let args = [
        "--server",
        "https://prow:7443",
        "--token",
        &token,
        "--run-as-default",
        "agent",
    ];
    for _ in 0..2 {
        let output = prow_agent("install", root.path(), &args);
        assert!(output.status.success(), "{output:?}");
    }
    let at = |path: &str| root.path().join(path);
    let unit = std::fs::read_to_string(at("etc/systemd/system/prow-agent.service")).unwrap();
    let program = format!("opt/prow/{}/prow-agent", env!("CARGO_PKG_VERSION"));
    let start = format!(r#"ExecStart="/{program}" run --service --data-dir "/var/lib/prow""#);
    assert!(unit.contains(&start), "{unit}");
    let version = Command::new(at(&program)).arg("version").output().unwrap();
    assert!(version.status.success());
    let settings = std::fs::read_to_string(at("var/lib/prow/agent.yaml")).unwrap();
    assert!(
        settings.contains("https://prow:7443") && settings.contains("default: agent"),
        "{settings}"
    );
    assert!(
        !settings.contains(&token) && !unit.contains(&token),
        "the token is in the folder of keys alone"
    );
    assert_eq!(
        std::fs::read_to_string(at("var/lib/prow/pki/join-token")).unwrap(),
        token
    );

    // Later ones need not repeat what is known.
    let output = prow_agent("install", root.path(), &["--name", "web1"]);
    assert!(output.status.success(), "{output:?}");
    let settings = std::fs::read_to_string(at("var/lib/prow/agent.yaml")).unwrap();
    assert!(
        settings.contains("https://prow:7443") && settings.contains("web1"),
        "{settings}"
    );

    let output = prow_agent("uninstall", root.path(), &[]);
    assert!(output.status.success(), "{output:?}");
    assert!(!at("etc/systemd/system/prow-agent.service").exists() && !at("opt/prow").exists());
    assert!(at("var/lib/prow/agent.yaml").exists(), "who the host is stays");
}

#[test]
fn what_is_missing_or_wrong_is_named_and_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let token = token();
    let cases: [(&[&str], &str); 5] = [
        (&["--server", "https://a", "--token", &token], "--run-as-default"),
        (&["--token", &token, "--run-as-default", "agent"], "no server"),
        (&["--server", "https://a", "--run-as-default", "agent"], "--token"),
        (
            &[
                "--server",
                "https://a",
                "--token",
                &token,
                "--run-as-default",
                "CORP\\jobs",
            ],
            "not supported yet",
        ),
        (
            &[
                "--server",
                "https://a",
                "--token",
                &token,
                "--run-as-default",
                "agent",
                "--service-account",
                "x",
            ],
            "--service-account",
        ),
    ];
    for (args, named) in cases {
        let said = error(&prow_agent("install", root.path(), args));
        assert!(said.contains(named), "{said}");
        assert_eq!(root.path().read_dir().unwrap().count(), 0, "{args:?}");
    }
    let args = [
        "--server",
        "https://a",
        "--run-as-default",
        "agent",
        "--token",
        &TOKEN.replace("prow1", "prow9"),
    ];
    let said = error(&prow_agent("install", root.path(), &args));
    assert!(said.contains("--token"), "{said}");
    assert!(!root.path().join("etc").exists());
}
