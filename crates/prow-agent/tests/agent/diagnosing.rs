//! `prow-agent diagnose`: it helps, and gives nothing away.

use crate::world::{Agent, World};
use api::task::TaskPhase;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::PostParams};
use serde_json::json;
use std::{collections::BTreeMap, io::Read};
use tokio::process::Command;

const CANARY: &str = "canary-7f3a-in-the-mine";

/// The files of the bundle of an agent.
async fn diagnose(agent: &Agent, server: &str) -> BTreeMap<String, String> {
    let path = agent.data.with_extension("zip");
    let output = Command::new(env!("CARGO_BIN_EXE_prow-agent"))
        .args(["diagnose", "--data-dir"])
        .arg(&agent.data)
        .arg("--output")
        .arg(&path)
        .args(["--server", server])
        .output()
        .await
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        path.display().to_string()
    );
    let mut archive = zip::ZipArchive::new(std::fs::File::open(&path).unwrap()).unwrap();
    let mut texts = BTreeMap::new();
    for at in 0..archive.len() {
        let mut file = archive.by_index(at).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        texts.insert(file.name().unwrap().to_string(), text);
    }
    texts
}

/// SE-05.
#[tokio::test]
async fn a_bundle_tells_what_happened_and_no_secret() {
    let world = World::start().await;
    let agent = world.agent("web1").await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "db"}, "stringData": {"password": CANARY}}))
            .unwrap();
    secrets.create(&PostParams::default(), &secret).await.unwrap();
    let env = json!([{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]);
    // shown, given as an output, in the way of a crash, and plain in the manifest, where it should not be
    let script = format!(
        "echo \"$PASSWORD\"; echo \"TOKEN=$PASSWORD\" >> \"$PROW_OUTPUT\"; echo \"PLAIN={CANARY}-plain\" >> \"$PROW_OUTPUT\"; \
         echo {CANARY}-plain; kill -SEGV $$"
    );
    let job = world
        .job(
            "leaks",
            json!({"steps": [{"name": "main", "shell": "sh", "script": script, "env": env}]}),
        )
        .await;
    let task = world.bind(&job, "web1", 0).await;
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Failed);
    let server = format!("https://user:{CANARY}@{}", world.door.address);
    let parts = diagnose(&agent, &server).await;

    for (name, text) in &parts {
        assert!(!text.contains("canary"), "{name}: {text}");
        assert!(!text.contains("PRIVATE KEY"), "{name}");
    }
    let token = agent
        .arguments
        .iter()
        .skip_while(|a| *a != "--token")
        .nth(1)
        .unwrap();
    assert!(parts.values().all(|text| !text.contains(token.as_str())));

    let uid = task.metadata.uid.unwrap();
    let journal = &parts[&format!("tasks/{uid}/run.jsonl")];
    assert!(
        journal.contains("stepEnded") && journal.contains("SIGSEGV"),
        "{journal}"
    );
    assert!(parts[&format!("tasks/{uid}/agent.jsonl")].contains("claimed"));
    assert!(parts["state.txt"].contains("web1"));
    assert!(parts["agent.log"].contains("agent started"));
    assert!(parts["server.txt"].contains("answers"), "{}", parts["server.txt"]);
    assert!(parts["node.json"].contains("DiskPressure"));
    assert!(parts["facts.json"].contains("shell/sh"));
    assert!(parts["host.txt"].contains("disk"));
}

#[tokio::test]
async fn a_bundle_is_made_without_the_server_and_what_is_there_is_kept() {
    let world = World::start().await;
    let mut agent = world.agent("web1").await;
    agent.kill();
    let parts = diagnose(&agent, "https://127.0.0.1:1").await;
    assert!(
        parts["server.txt"].contains("127.0.0.1:1"),
        "{}",
        parts["server.txt"]
    );
    assert!(!parts.contains_key("node.json"));
    let again = Command::new(env!("CARGO_BIN_EXE_prow-agent"))
        .args(["diagnose", "--data-dir"])
        .arg(&agent.data)
        .arg("--output")
        .arg(agent.data.with_extension("zip"))
        .output()
        .await
        .unwrap();
    assert!(!again.status.success(), "no file is written over");
    let none = Command::new(env!("CARGO_BIN_EXE_prow-agent"))
        .args(["diagnose", "--data-dir", "/nonexistent/prow"])
        .output()
        .await
        .unwrap();
    let words = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(
        words.contains("/nonexistent/prow is no agent's data folder"),
        "{words}"
    );
}
