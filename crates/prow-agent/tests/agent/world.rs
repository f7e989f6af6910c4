//! A server with its doors, agents as processes, and Tasks made as the scheduler makes them.

use crate::{door::Door, programs::program};
use agent::{platform, runner::Identity as Process};
use api::{
    Job, Task, TaskSpec,
    identity::Identity,
    names::{self, Key},
    task::{JobRef, TaskPhase},
    work::Work,
};
use informer::{Informer, Options};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use logs::Logs;
use pki::{Authority, Credentials, JoinToken};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// No test waits longer for one thing; reached only when something hangs.
const HANG: Duration = Duration::from_secs(120);

/// A server, and what the test knows of it.
pub struct World {
    pub client: kube::Client,
    pub door: Door,
    pub tasks: Informer<Task>,
    pub logs: Arc<dyn Logs>,
    authority: Arc<Authority>,
    server: std::net::SocketAddr,
    pub folder: TempDir,
}

impl World {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(api::clock::SystemClock);
        let pki_folder = folder.path().join("pki");
        let authority = Arc::new(Authority::open(&pki_folder, clock).unwrap());
        let certificate = authority.server(&pki_folder, &["127.0.0.1".into()]).unwrap();
        let tls = pki::tls::server(&certificate, authority.certificate(), &["h2", "http/1.1"]).unwrap();
        let mut kinds = machinery::core_kinds::all();
        kinds.extend([
            machinery::typed::kind::<Job>(),
            machinery::typed::kind::<Task>(),
            machinery::typed::kind::<api::Node>(),
        ]);
        let options = apiserver::Options {
            authority: Some(authority.clone()),
            ..Default::default()
        };
        let server = apiserver::Server::start(Arc::new(store::Memory::new()), kinds, options)
            .await
            .unwrap();
        let client = server.client(Identity::part("test"));
        let logs: Arc<dyn Logs> =
            Arc::new(logs::Sqlite::open(folder.path(), logs::Options::default()).unwrap());
        let tasks = Informer::<Task>::start(client.clone(), Options::all());
        let gateway = gateway::Gateway::new(logs.clone(), tasks.clone(), client.clone());
        server.mount(gateway.router());
        tokio::spawn(async move { gateway.run().await });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { server.serve(listener, Some(tls), std::future::pending()).await });
        Self {
            client,
            door: Door::to(address).await,
            tasks,
            logs,
            authority,
            server: address,
            folder,
        }
    }

    /// A new join token for any name.
    pub async fn token(&self) -> String {
        let token = JoinToken::generate(&self.authority.hash()).unwrap();
        let mut secret = Secret {
            type_: Some("prow.windows/enrolment-token".into()),
            ..Secret::default()
        };
        secret.metadata.name = Some(format!("enrol-{}", token.bearer.id));
        let data = [
            ("secret-hash", token.bearer.secret_hash()),
            ("labels", r#"{"role":"web"}"#.to_owned()),
            ("name-pattern", "*".to_owned()),
        ];
        secret.data = Some(
            data.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes())))
                .into(),
        );
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "prow-system");
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        token.to_string()
    }

    /// A new host with a running agent that has enrolled as `node`.
    pub async fn agent(&self, node: &str) -> Agent {
        let data = self.folder.path().join(node);
        let token = self.token().await;
        let mut agent = Agent::new(data, format!("https://{}", self.door.address));
        agent.arguments = vec!["--token".into(), token, "--name".into(), node.into()];
        agent.start();
        self.ready(node).await;
        agent
    }

    /// Waits until a node has said what it is.
    pub async fn ready(&self, node: &str) {
        let nodes = Informer::<api::Node>::start(self.client.clone(), Options::all());
        let mut changes = nodes.subscribe();
        hang_guard(async {
            while !nodes.all().iter().any(|n| n.name() == node && n.is_ready()) {
                changes.next().await;
            }
        })
        .await;
    }

    /// The authority's certificate.
    pub fn authority(&self) -> pki::CertificateDer<'static> {
        self.authority.certificate().clone()
    }

    /// A certificate for anybody.
    pub fn certificate(&self, name: &str, group: &str) -> Credentials {
        let life = jiff::SignedDuration::from_hours(1);
        self.authority.user(name, &[group.to_owned()], life).unwrap()
    }

    /// The server's own address, past the door.
    pub fn back_door(&self) -> String {
        format!("https://{}", self.server)
    }

    pub async fn job(&self, name: &str, spec: Value) -> Job {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), "default");
        let object =
            json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec});
        let job: Job = serde_json::from_value(object).unwrap();
        jobs.create(&PostParams::default(), &job).await.unwrap()
    }

    /// A Job whose only step is the probe.
    pub async fn probe(&self, name: &str, args: &[&str]) -> Job {
        self.job(name, json!({"steps": [probe("main", args)]})).await
    }

    /// A Job whose only step leaves a line in `runs` of the world's folder, says "before", makes `begun` there, waits for `go`, and says
    /// "after".
    pub async fn slow(&self, name: &str) -> Job {
        self.probe(name, &["slow", self.folder.path().to_str().unwrap()])
            .await
    }

    /// A Job with one shell script as its only step.
    #[cfg(unix)]
    pub async fn script(&self, name: &str, script: &str) -> Job {
        let step = json!({"name": "main", "shell": "sh", "script": script});
        self.job(name, json!({"steps": [step]})).await
    }

    /// A Task of a Job, bound to a node.
    pub async fn bind(&self, job: &Job, node: &str, attempt: u32) -> Task {
        self.bind_with(job, node, attempt, |_| {}).await
    }

    pub async fn bind_with(
        &self,
        job: &Job,
        node: &str,
        attempt: u32,
        change: impl FnOnce(&mut TaskSpec),
    ) -> Task {
        let (name, uid) = (
            job.metadata.name.clone().unwrap(),
            job.metadata.uid.clone().unwrap(),
        );
        let work = Work::of(&job.spec).unwrap();
        let mut spec = TaskSpec {
            node_name: node.into(),
            count: 1,
            attempt: attempt as i32,
            work: work.inline(),
            job_ref: JobRef {
                name: name.clone(),
                uid: uid.clone(),
                work_hash: work.hash,
            },
            ..TaskSpec::default()
        };
        change(&mut spec);
        let task = Task::new(&names::task(&name, &uid, Key::Index(0), attempt), spec);
        self.api().create(&PostParams::default(), &task).await.unwrap()
    }

    pub fn api(&self) -> Api<Task> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// Waits until a Task is as wanted.
    pub async fn until(&self, task: &Task, wanted: impl Fn(&Task) -> bool) -> Task {
        let mut changes = self.tasks.subscribe();
        let found = async {
            loop {
                if let Some(found) = self.tasks.by_uid(task.uid()).filter(|task| wanted(task)) {
                    return (*found).clone();
                }
                changes.next().await;
            }
        };
        match tokio::time::timeout(HANG, found).await {
            Ok(task) => task,
            Err(_) => panic!(
                "never came: {:?}",
                self.tasks.by_uid(task.uid()).map(|t| t.status.clone())
            ),
        }
    }

    /// Waits until a Task has ended.
    pub async fn end(&self, task: &Task) -> Task {
        self.until(task, |task| task.phase().is_terminal()).await
    }

    /// Writes a Task's spec as controllers do.
    pub async fn patch(&self, task: &Task, patch: Value) {
        let params = PatchParams::default();
        self.api()
            .patch(task.name(), &params, &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Ends a Task as controllers do.
    pub async fn end_from_above(&self, task: &Task, phase: TaskPhase, reason: &str) {
        self.write_status(task, json!({"phase": phase, "reason": reason}))
            .await;
    }

    /// Writes fields of a Task's status.
    pub async fn write_status(&self, task: &Task, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        let params = PatchParams::default();
        self.api()
            .patch_status(task.name(), &params, &patch)
            .await
            .unwrap();
    }

    /// The payloads of a step's log as the server has it.
    pub async fn log(&self, task: &Task, step: &str) -> String {
        let log = logs::Log::new(task.uid(), step);
        let (mut bytes, mut at) = (Vec::new(), 0);
        loop {
            let more = self.logs.read(&log, at, 1 << 20).await.unwrap();
            if more.is_empty() {
                break;
            }
            at += more.len() as u64;
            bytes.extend_from_slice(&more);
        }
        let text = String::from_utf8(bytes).unwrap();
        text.lines()
            .map(|line| line.splitn(4, ' ').nth(3).unwrap_or_default().to_owned() + "\n")
            .collect()
    }
}

/// A step that runs the probe.
pub fn probe(name: &str, args: &[&str]) -> Value {
    json!({"name": name, "command": [program("prow-probe")], "args": args})
}

/// Runs to its end, or fails the test that would hang.
pub async fn hang_guard<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, what).await.expect("hangs")
}

/// An agent as a process.
pub struct Agent {
    pub data: PathBuf,
    pub arguments: Vec<String>,
    pub variables: Vec<(String, PathBuf)>,
    server: String,
    child: Option<Child>,
}

impl Agent {
    pub fn new(data: PathBuf, server: String) -> Self {
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join("agent.yaml"), "minFreeDisk: 1Mi\n").unwrap();
        Self {
            data,
            server,
            arguments: Vec::new(),
            variables: Vec::new(),
            child: None,
        }
    }

    pub fn start(&mut self) {
        let log = std::fs::File::options()
            .append(true)
            .create(true)
            .open(self.data.with_extension("log"))
            .unwrap();
        let child = Command::new(program("prow-agent"))
            .args(["run", "--renew-seconds", "1"])
            .args(["--server", &self.server])
            .arg("--data-dir")
            .arg(&self.data)
            .args(&self.arguments)
            .env("PROW_LOG", "agent=debug")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    #[cfg(unix)]
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    #[cfg(unix)]
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid() as i32).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }

    /// Waits for its own end.
    pub async fn ended(&mut self) -> std::process::ExitStatus {
        let mut child = self.child.take().unwrap();
        hang_guard(tokio::task::spawn_blocking(move || child.wait().unwrap()))
            .await
            .unwrap()
    }

    /// What it said so far.
    pub fn words(&self) -> String {
        std::fs::read_to_string(self.data.with_extension("log")).unwrap()
    }

    pub fn task(&self, task: &Task) -> PathBuf {
        self.data.join("tasks").join(task.uid())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("--- {}:\n{}", self.data.display(), self.words());
        }
    }
}

/// Waits until a file is there; steps make them to tell how far they are.
pub async fn appears(path: &Path) {
    hang_guard(async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await; // another program's file: nobody tells of it
        }
    })
    .await;
}

/// Waits until a process is gone.
pub async fn gone(pid: u32) {
    hang_guard(async {
        while platform::created(pid).is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await; // no child of ours: nobody tells of its end
        }
    })
    .await;
}

/// The pid of the runner of a task, as its journal tells.
pub fn runner(agent: &Agent, task: &Task) -> u32 {
    let journal =
        agent::journal::read::<agent::journal::RunRecord>(&agent.task(task).join("run.jsonl")).unwrap();
    journal
        .iter()
        .rev()
        .find_map(|entry| match &entry.record {
            agent::journal::RunRecord::RunnerStarted { runner, .. } => Some(runner.pid),
            _ => None,
        })
        .unwrap()
}

/// Kills a process of somebody else's.
pub fn kill(pid: u32) {
    platform::end_process(&Process::of(pid).unwrap());
}
