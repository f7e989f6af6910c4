//! What helps somebody else to understand an agent, gathered from its folder, its host and its server: for `prow-agent diagnose`.
//!
//! Left out on purpose: keys and tokens, manifests (their authors may have put a password into them), what steps printed, and the values
//! of outputs. It changes nothing and works while the agent runs.

use super::{
    connection::{PROTOCOLS, Server},
    facts,
    settings::{Settings, Written},
    state,
};
use crate::{
    journal::{self, AgentRecord, RunRecord},
    layout::{DataDir, TaskDir},
    platform,
};
use api::{Node, clock::Clock};
use kube::Api;
use pki::Credentials;
use serde::Serialize;
use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
    time::Duration,
};

/// The most that is taken of a log: its end.
const LOG_TAIL: u64 = 2 << 20;
/// Of a runner's own log.
const RUNNER_LOG_TAIL: u64 = 64 << 10;
/// How long the server may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// A file of the bundle: its name and what is in it.
pub struct Part {
    /// Path in the bundle, with slashes.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Gathers everything; `server` is asked in the place of the one that agent.yaml names. What cannot be had is told in its place; only a folder that is none is an error.
pub async fn gather(
    root: &Path,
    server: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Vec<Part>, state::Error> {
    let told = state::read(root)?;
    let data = DataDir::open(root)?;
    let mut parts = Parts::default();
    parts.text("state.txt", &told.to_string());
    let mut written = match Written::load(root) {
        Ok(written) => written,
        Err(error) => {
            // the error itself may quote the file
            parts.text(
                "settings-error.txt",
                "agent.yaml cannot be used; `prow-agent run` says why\n",
            );
            tracing::warn!(%error, "agent.yaml is left out");
            Written::default()
        }
    };
    written.server = server.or(written.server.as_deref()).map(without_password);
    parts.json("settings.json", &written);
    let server = ask_server(root, told.node.as_deref(), written.server.as_deref(), clock).await;
    host(&mut parts, &data, written);
    parts.text("server.txt", &server.text);
    if let Some(node) = server.node {
        parts.json("node.json", &node);
    }
    for name in ["agent.log.1", "agent.log"] {
        parts.tail(name, &data.path().join(name), LOG_TAIL);
    }
    for dir in data.tasks()? {
        task(&mut parts, &dir);
    }
    Ok(parts.0)
}

/// The URL without what may stand before its host.
fn without_password(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// What the host is, and what it says of itself now.
fn host(parts: &mut Parts, data: &DataDir, written: Written) {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16}{value}"); // a String takes everything
    };
    line("agent", env!("CARGO_PKG_VERSION").to_owned());
    match platform::disk(data.path()) {
        Ok((size, free)) => line("disk", format!("{free} of {size} bytes free")),
        Err(error) => line("disk", error.to_string()),
    }
    match platform::memory_left() {
        Some(share) => line("memory", format!("{share} % left")),
        None => line("memory", "unknown".to_owned()),
    }
    for mark in platform::pending_reboot() {
        let counts = if mark.counts { "" } else { ", not counted" };
        line("restart due", format!("{}{counts}", mark.source));
    }
    line(
        "runners",
        format!("outlive the agent: {}", platform::runners_survive()),
    );
    parts.text("host.txt", &text);
    let boot = platform::boot_id().unwrap_or_default();
    let settings = written.settle(data.path().to_owned(), Default::default(), None, Duration::ZERO);
    if let Ok(settings) = settings {
        parts.json("facts.json", &all_facts(&settings, data.path(), &boot));
    }
}

fn all_facts(settings: &Settings, data: &Path, boot: &str) -> api::NodeStatus {
    let mut facts = facts::collect(settings, data, boot);
    facts.versions.extend(platform::versions());
    facts
}

/// What the server says.
struct Answer {
    text: String,
    node: Option<Node>,
}

async fn ask_server(root: &Path, node: Option<&str>, url: Option<&str>, clock: Arc<dyn Clock>) -> Answer {
    match ask(root, node, url, clock).await {
        Ok(answer) => answer,
        Err(why) => Answer {
            text: format!("not asked: {why}\n"),
            node: None,
        },
    }
}

async fn ask(
    root: &Path,
    node: Option<&str>,
    url: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Answer, String> {
    let url = url.ok_or("agent.yaml names no server; name it with --server")?;
    let node = node.ok_or("this host is not enrolled")?;
    let pki = root.join("pki");
    let fail = |e: pki::Error| e.to_string();
    let credentials = Credentials::load(&pki.join("client.pem")).map_err(fail)?;
    let authority = std::fs::read_to_string(pki.join("ca.crt")).map_err(|e| e.to_string())?;
    let authority = pki::tls::certificate_from_pem(&authority).map_err(fail)?;
    let tls = pki::tls::client(&authority, credentials.as_ref(), &PROTOCOLS).map_err(fail)?;
    let server = Server::new(url, tls, None, clock).map_err(|e| e.to_string())?;
    let nodes: Api<Node> = Api::all(server.client());
    let answer = tokio::time::timeout(ANSWER, nodes.get(node)).await;
    let (said, node) = match answer {
        Ok(Ok(node)) => ("answers".to_owned(), Some(node)),
        Ok(Err(error)) => (super::enrol::chain(&error), None),
        Err(_) => (format!("no answer in {} s", ANSWER.as_secs()), None),
    };
    Ok(Answer {
        text: format!(
            "{url}: {said}\nclock ahead of the host's: {} ms\n",
            server.skew().as_millis()
        ),
        node,
    })
}

/// The journals of a task, its runner's own words, and how large its files are.
fn task(parts: &mut Parts, dir: &TaskDir) {
    let at = format!("tasks/{}", dir.uid());
    parts.journal::<AgentRecord>(&format!("{at}/agent.jsonl"), &dir.agent_journal(), |record| {
        record
    });
    parts.journal::<RunRecord>(&format!("{at}/run.jsonl"), &dir.run_journal(), without_outputs);
    parts.tail(&format!("{at}/runner.log"), &dir.runner_log(), RUNNER_LOG_TAIL);
    let mut sizes = String::new();
    for (step, log) in dir.step_logs().unwrap_or_default() {
        let size = log.metadata().map_or(0, |meta| meta.len());
        let _ = writeln!(sizes, "{size:>12}  log of {step}"); // a String takes everything
    }
    parts.text(&format!("{at}/sizes.txt"), &sizes);
}

/// Outputs keep their names only.
fn without_outputs(mut record: RunRecord) -> RunRecord {
    match &mut record {
        RunRecord::Finished { outputs, .. } => outputs.values_mut().for_each(|v| *v = LEFT_OUT.to_owned()),
        RunRecord::StepEnded { result, .. } => {
            result
                .status
                .outputs
                .values_mut()
                .for_each(|v| *v = LEFT_OUT.to_owned());
        }
        _ => {}
    }
    record
}

const LEFT_OUT: &str = "(left out)";

#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn add(&mut self, name: &str, bytes: Vec<u8>) {
        self.0.push(Part {
            name: name.to_owned(),
            bytes,
        });
    }

    fn text(&mut self, name: &str, text: &str) {
        self.add(name, text.as_bytes().to_vec());
    }

    fn json(&mut self, name: &str, value: &impl Serialize) {
        match serde_json::to_vec_pretty(value) {
            Ok(bytes) => self.add(name, bytes),
            Err(error) => self.text(name, &error.to_string()),
        }
    }

    /// The end of a file, from a whole line on; one that is not there is left out.
    fn tail(&mut self, name: &str, path: &Path, limit: u64) {
        match tail(path, limit) {
            Ok(bytes) => self.add(name, bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.text(name, &format!("not readable: {error}\n")),
        }
    }

    /// A journal as lines of JSON.
    fn journal<R: Serialize + serde::de::DeserializeOwned>(
        &mut self,
        name: &str,
        path: &Path,
        change: fn(R) -> R,
    ) {
        let entries = match journal::read::<R>(path) {
            Ok(entries) => entries,
            Err(error) => return self.text(name, &format!("not readable: {error}\n")),
        };
        let mut lines = Vec::new();
        for mut entry in entries {
            entry.record = change(entry.record);
            match serde_json::to_vec(&entry) {
                Ok(line) => lines.extend(line),
                Err(error) => lines.extend(error.to_string().into_bytes()),
            }
            lines.push(b'\n');
        }
        self.add(name, lines);
    }
}

fn tail(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let from = len.saturating_sub(limit);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    if from > 0 {
        let line = bytes
            .iter()
            .position(|b| *b == b'\n')
            .map_or(bytes.len(), |at| at + 1);
        bytes.drain(..line);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_left_out() {
        for (url, without) in [
            ("https://u:p@host:1/x@y", "https://host:1/x@y"),
            ("https://host", "https://host"),
            ("host", "host"),
        ] {
            assert_eq!(without_password(url), without);
        }
    }

    #[test]
    fn outputs_keep_their_names_only() {
        let outputs = [("version".to_owned(), "canary".to_owned())];
        let record = RunRecord::Finished {
            phase: api::task::TaskPhase::Succeeded,
            reason: String::new(),
            message: String::new(),
            fatal: false,
            retry_code: false,
            outputs: outputs.clone().into(),
        };
        let mut result = crate::journal::StepResult {
            status: Default::default(),
            class: None,
        };
        result.status.outputs = outputs.into();
        let ended = RunRecord::StepEnded {
            list: crate::journal::List::Steps,
            place: 0,
            result: Box::new(result),
        };
        for record in [record, ended] {
            let text = serde_json::to_string(&without_outputs(record)).unwrap();
            assert!(text.contains("version") && !text.contains("canary"), "{text}");
        }
    }

    #[test]
    fn the_end_of_a_log_begins_with_a_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "first\nsecond\nthird\n").unwrap();
        assert_eq!(tail(&path, 100).unwrap(), b"first\nsecond\nthird\n");
        assert_eq!(tail(&path, 9).unwrap(), b"third\n");
        assert_eq!(tail(&path, 2).unwrap(), b"");
    }
}
