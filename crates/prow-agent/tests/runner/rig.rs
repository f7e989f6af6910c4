//! A task in a folder of its own, a real runner for it, and the agent's side of the endpoint.

use crate::programs::program;
use agent::{
    journal::{self, Entry, RunRecord},
    layout::{DataDir, TaskDir},
    local::{self, FromAgent, FromRunner, Receiver, Sender, Stop, Value, Values},
    platform,
    runner::{self, Options, Spawned},
};
use api::{
    JobSpec, Task, TaskSpec, TaskStatus,
    task::{JobRef, StepStatus},
    work::Work,
};
use serde_json::{Value as Json, json};
use std::{
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};
use tempfile::TempDir;

#[cfg(unix)]
pub const AGENT: &str = env!("CARGO_BIN_EXE_prow-agent");
#[cfg(unix)]
pub const PROBE: &str = env!("CARGO_BIN_EXE_prow-probe");

/// A task that has not run yet.
pub struct Rig {
    /// Removed with the rig.
    #[cfg_attr(windows, allow(dead_code))] // the stories of Unix alone look into it
    folder: TempDir,
    pub dir: TaskDir,
    pub task: Task,
    pub options: Options,
    pub secrets: Json,
    pub config_maps: Json,
}

/// A Job of these steps, with the other fields of `job`.
pub fn steps(steps: Json, job: Json) -> Rig {
    let mut spec = job;
    spec["steps"] = steps;
    Rig::new(spec)
}

/// A Job of one script.
#[cfg(unix)]
pub fn script(text: &str) -> Rig {
    steps(json!([{"name": "main", "script": text}]), json!({}))
}

/// A Job of one step that runs the probe.
pub fn probe(args: &[&str]) -> Rig {
    steps(json!([probe_step("main", args)]), json!({}))
}

/// A step that runs the probe.
pub fn probe_step(name: &str, args: &[&str]) -> Json {
    json!({"name": name, "command": [program("prow-probe")], "args": args})
}

impl Rig {
    pub fn new(spec: Json) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(&folder.path().join("data")).unwrap();
        let uid = unique();
        let dir = data.task(&uid).unwrap();
        dir.create().unwrap();
        let spec: JobSpec = serde_json::from_value(spec).unwrap();
        let work = Work::of(&spec).unwrap();
        let mut task = Task::new(
            "patch-1a2b3-0-0",
            TaskSpec {
                job_ref: JobRef {
                    name: "patch".into(),
                    uid: "11111111-2222-3333-4444-555555555555".into(),
                    work_hash: work.hash.clone(),
                },
                count: 1,
                node_name: "web01".into(),
                ..TaskSpec::default()
            },
        );
        task.metadata.namespace = Some("ops".into());
        task.metadata.uid = Some(uid);
        dir.write("job.json", work.json.as_bytes()).unwrap();
        Self {
            folder,
            dir,
            task,
            options: Options::default(),
            secrets: json!({}),
            config_maps: json!({}),
        }
    }

    /// A path outside the workspace.
    #[cfg(unix)]
    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Starts the runner; no agent is there yet.
    pub fn start(self) -> Running {
        self.dir
            .write("task.json", &serde_json::to_vec(&self.task).unwrap())
            .unwrap();
        let spawned = runner::spawn(Path::new(&program("prow-agent")), &self.dir, &self.options).unwrap();
        Running {
            spawned,
            agent: None,
            rig: self,
        }
    }

    /// Starts the runner with an agent.
    pub async fn attended(self) -> Running {
        let mut running = self.start();
        running.connect().await;
        running
    }

    /// Runs to the end with an agent.
    pub async fn run(self) -> Finished {
        self.attended().await.finished().await
    }
}

/// A task whose runner was started.
pub struct Running {
    pub rig: Rig,
    pub spawned: Spawned,
    agent: Option<(Sender<FromAgent>, Receiver<FromRunner>)>,
}

impl Running {
    /// The agent connects as soon as the runner listens.
    pub async fn connect(&mut self) {
        self.agent = None;
        while !self.spawned.ended.is_finished() {
            if let Ok(agent) = local::connect(&self.rig.dir).await {
                self.agent = Some(agent);
                return;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// The agent goes away.
    pub fn disconnect(&mut self) {
        self.agent = None;
    }

    pub async fn send(&mut self, message: FromAgent) {
        let (sender, _) = self.agent.as_mut().expect("no agent is connected");
        sender.send(&message).await.unwrap();
    }

    pub async fn stop(&mut self, reason: &str, grace_seconds: i64, force: bool) {
        self.send(FromAgent::Stop(Stop {
            reason: reason.into(),
            message: String::new(),
            grace_seconds,
            force,
        }))
        .await;
    }

    pub fn records(&self) -> Vec<Entry<RunRecord>> {
        journal::read(&self.rig.dir.run_journal()).unwrap()
    }

    pub fn status(&self) -> TaskStatus {
        runner::status_from_journal(&self.records())
    }

    pub fn log(&self, step: &str) -> String {
        log(&self.rig.dir, step)
    }

    /// Answers the runner until `condition` holds; the runner tells whenever its journal or a log has grown.
    pub async fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let mut ended = false;
        while !condition(self) {
            assert!(
                !ended,
                "the runner ended before {what}:\n{:#?}\n{}",
                self.status(),
                self.runner_log()
            );
            ended = !self.answer().await;
        }
    }

    /// Takes one message of the runner; false when it is gone.
    async fn answer(&mut self) -> bool {
        let Some((sender, receiver)) = &mut self.agent else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            return !self.spawned.ended.is_finished();
        };
        match receiver.recv().await {
            Ok(Some(FromRunner::NeedValues { id, wanted, .. })) => {
                let missing = wanted.iter().find(|w| {
                    let of = match w.kind {
                        local::WantedKind::Secret => &self.rig.secrets,
                        local::WantedKind::ConfigMap => &self.rig.config_maps,
                    };
                    !w.optional && w.keys.iter().any(|k| of[&w.name].get(k).is_none())
                });
                let answer = match missing {
                    Some(wanted) => FromAgent::Missing {
                        id,
                        reason: "SecretUnavailable".into(),
                        message: format!("\"{}\" is not there", wanted.name),
                    },
                    None => FromAgent::Values {
                        id,
                        secrets: values(&self.rig.secrets),
                        config_maps: values(&self.rig.config_maps),
                    },
                };
                let _ = sender.send(&answer).await;
                true
            }
            Ok(Some(_)) => true,
            Ok(None) | Err(_) => {
                self.agent = None;
                true
            }
        }
    }

    /// What the agent would end a dead runner's processes by.
    pub fn containment(&self) -> Option<String> {
        self.records().into_iter().find_map(|e| match e.record {
            RunRecord::RunnerStarted { containment, .. } => containment,
            _ => None,
        })
    }

    pub fn runner_log(&self) -> String {
        std::fs::read_to_string(self.rig.dir.runner_log()).unwrap_or_default()
    }

    /// Waits for the end of the runner.
    pub async fn finished(mut self) -> Finished {
        while !self.spawned.ended.is_finished() {
            self.answer().await;
        }
        let status = self.status();
        assert!(
            status.phase.is_terminal(),
            "no end in the journal: {status:#?}\n{}",
            self.runner_log()
        );
        Finished {
            status,
            rig: self.rig,
        }
    }

    /// SIGKILL to the runner, and its end.
    pub async fn kill(&mut self) {
        platform::end_process(&self.spawned.identity);
        (&mut self.spawned.ended).await.unwrap().unwrap();
    }
}

/// A task that has run.
pub struct Finished {
    pub status: TaskStatus,
    pub rig: Rig,
}

impl Finished {
    pub fn step(&self, name: &str) -> &StepStatus {
        let steps = &self.status.steps;
        steps
            .iter()
            .find(|s| s.name == name)
            .unwrap_or_else(|| panic!("no step {name} in {steps:#?}"))
    }

    /// Phase and reason of the task.
    pub fn end(&self) -> (String, &str) {
        (format!("{:?}", self.status.phase), &self.status.reason)
    }

    /// `name phase/reason` of the steps in order.
    pub fn steps(&self) -> Vec<String> {
        let steps = self.status.steps.iter();
        steps
            .map(|s| {
                let reason = if s.reason.is_empty() {
                    String::new()
                } else {
                    format!("/{}", s.reason)
                };
                format!("{} {:?}{reason}", s.name, s.phase)
            })
            .collect()
    }

    pub fn log(&self, step: &str) -> String {
        log(&self.rig.dir, step)
    }

    #[cfg(unix)]
    pub fn raw_log(&self, step: &str) -> Vec<u8> {
        raw_log(&self.rig.dir, step)
    }
}

/// A uid no other task of this host has: processes are found by it.
fn unique() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "test-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

fn values(data: &Json) -> Values {
    let objects = data.as_object().unwrap().iter();
    objects
        .map(|(name, keys)| {
            let keys = keys.as_object().unwrap().iter();
            let keys = keys.map(|(k, v)| (k.clone(), Value::new(v.as_str().unwrap().into())));
            (name.clone(), keys.collect())
        })
        .collect()
}

fn raw_log(dir: &TaskDir, step: &str) -> Vec<u8> {
    let logs = dir.step_logs().unwrap();
    let log = logs.into_iter().find(|(name, _)| name == step);
    log.and_then(|(_, path)| std::fs::read(path).ok())
        .unwrap_or_default()
}

/// The payloads of a log, pieces joined, without time and stream.
fn log(dir: &TaskDir, step: &str) -> String {
    let bytes = raw_log(dir, step);
    let mut text = Vec::new();
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let mut fields = line.splitn(4, |b| *b == b' ').skip(2);
        let (tag, payload) = (fields.next().unwrap(), fields.next().unwrap_or_default());
        let payload = payload.strip_suffix(b"\n").unwrap_or(payload);
        text.extend_from_slice(payload);
        if tag == b"F" {
            text.push(b'\n');
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Pids a probe wrote into a file.
pub fn pids(path: &str) -> Vec<u32> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|l| l.parse().ok()).collect()
}

/// Those of them that live.
pub fn living(path: &str) -> Vec<u32> {
    pids(path)
        .into_iter()
        .filter(|pid| platform::created(*pid).is_some())
        .collect()
}

/// Waits until a file holds so many pids.
pub async fn have(file: &str, count: usize) -> Vec<u32> {
    while pids(file).len() < count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    pids(file)
}
