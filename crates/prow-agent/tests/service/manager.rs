//! The whole life of the service, against the service manager of this host.
//!
//! Wine's manager neither starts a service again that failed nor sends PRESHUTDOWN: the first is done by the upgrade itself here, the second
//! driven by a control of debug builds. Both must be run on Windows.

use crate::server::{Server, guarded};
use api::{Task, task::TaskPhase};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};
use tempfile::TempDir;
use tokio::{
    process::Command,
    sync::{Mutex, MutexGuard},
};
use win32::service::{Service, State, Status};

const NAME: &str = "prow-agent";
const NODE: &str = "service-test";
/// As if the host went down; see `service::process`.
const HOST_DOWN: u8 = 200;
/// How long the service manager may take; reached only when something hangs.
const HANG: Duration = Duration::from_secs(120);

/// There is one service of the name on a host, so one test at a time.
static ONE: Mutex<()> = Mutex::const_new(());

/// The host with the agent on it; removes what is left of the service when the test is over.
struct Host {
    folder: TempDir,
    _one: MutexGuard<'static, ()>,
}

impl Host {
    async fn new() -> Self {
        let host = Self {
            folder: tempfile::tempdir().unwrap(),
            _one: ONE.lock().await,
        };
        host.clear(); // of a test that was killed
        host
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data with spaces")
    }

    /// The program under test: a Windows build is not where it was built when Wine runs it.
    fn program(name: &str) -> PathBuf {
        let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let folder = if folder.ends_with("deps") {
            folder.parent().unwrap().to_owned()
        } else {
            folder
        };
        let program = folder.join(format!("{name}.exe"));
        assert!(
            program.exists(),
            "{} is missing: build it first",
            program.display()
        );
        program
    }

    async fn run(&self, program: &Path, command: &str, args: &[&str]) -> Output {
        let mut run = Command::new(program);
        run.arg(command).arg("--data-dir").arg(self.data()).args(args);
        let done = run.kill_on_drop(true).output();
        guarded(&format!("{command} does not end"), done).await.unwrap()
    }

    async fn agent(&self, command: &str, args: &[&str]) -> Output {
        self.run(&Self::program("prow-agent"), command, args).await
    }

    async fn works(&self, command: &str, args: &[&str]) -> String {
        let output = self.agent(command, args).await;
        assert!(output.status.success(), "{command}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    async fn fails(&self, command: &str, args: &[&str]) -> String {
        let output = self.agent(command, args).await;
        assert!(!output.status.success(), "{command}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    async fn install(&self, server: &Server) {
        let token = server.token().await;
        let url = server.url();
        let args = [
            "--server",
            &url,
            "--token",
            &token,
            "--name",
            NODE,
            "--run-as-default",
            "agent",
        ];
        self.works("install", &args).await;
        server.ready(NODE).await;
    }

    fn clear(&self) {
        let Some(service) = Service::open_to_manage(NAME).unwrap() else {
            return;
        };
        let _ = service.wait_for_start(HANG);
        let _ = service.stop();
        let _ = service.wait_for(State::Stopped, HANG);
        let _ = service.delete(); // it may be on its way already
        drop(service);
        let hung = std::time::Instant::now() + HANG;
        while Service::open(NAME).unwrap().is_some() {
            // the manager lets go of it when it is done with its process
            if std::time::Instant::now() > hung {
                eprintln!("the service manager does not let go of {NAME}");
                return;
            }
            #[allow(clippy::disallowed_methods)]
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.data().join("agent.log")).unwrap_or_default();
            eprintln!("--- agent.log\n{log}");
        }
        self.clear();
    }
}

fn service() -> Service {
    Service::open_to_manage(NAME).unwrap().unwrap()
}

async fn becomes(state: State) -> Status {
    let status = tokio::task::spawn_blocking(move || service().wait_for(state, HANG).unwrap())
        .await
        .unwrap();
    assert_eq!(status.state, state, "{status:?}");
    status
}

fn probe(args: &[&str]) -> Value {
    let program = Host::program("prow-probe");
    json!({"name": "main", "command": [program.to_str().unwrap()], "args": args})
}

fn is_running(task: &Task) -> bool {
    task.phase() == TaskPhase::Running
}

fn has_ended(task: &Task) -> bool {
    task.phase().is_terminal()
}

/// Waits until a file is there; steps make them to tell how far they are.
async fn appears(path: &Path) {
    guarded("the file never appears", async {
        while !path.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_lives_as_its_manager_says() {
    let server = Server::start().await;
    let host = Host::new().await;

    // Installed, it enrols and works; again changes nothing.
    host.install(&server).await;
    let first = becomes(State::Running).await.pid.unwrap();
    let program = service().command_line().unwrap().into_string().unwrap();
    assert!(
        program.starts_with(r#""C:\Program Files\Prow\"#),
        "in quotes: {program}"
    );
    assert!(
        !host.data().join("pki").join("join-token").exists(),
        "the token is used up"
    );
    host.works("install", &[]).await;
    assert_eq!(becomes(State::Running).await.pid, Some(first));
    let status = host.works("status", &[]).await;
    assert!(
        status.contains("running, pid") && status.contains(NODE),
        "{status}"
    );
    assert_eq!(service().preshutdown().unwrap(), Duration::from_secs(120));

    // It runs a job, and its stop leaves one that runs alone.
    let task = server.task("done", NODE, probe(&["exit", "3010"])).await;
    let ended = server.until(&task, has_ended).await;
    assert_eq!(ended.status.unwrap().steps[0].exit_code, Some(3010));
    let go = host.folder.path().join("go");
    let task = server
        .task("goes-on", NODE, probe(&["await", go.to_str().unwrap()]))
        .await;
    server.until(&task, is_running).await;
    let said = host.fails("uninstall", &[]).await;
    assert!(said.contains("one task") && said.contains("--drain"), "{said}");
    service().stop().unwrap();
    assert_eq!(becomes(State::Stopped).await.exit_code, 0);
    std::fs::write(&go, "").unwrap();
    service().start().unwrap();
    becomes(State::Running).await;
    let ended = server.until(&task, has_ended).await;
    assert_eq!(ended.phase(), TaskPhase::Succeeded, "{:?}", ended.status);

    // Removed, nothing is left but who the host is.
    host.works("uninstall", &["--drain"]).await;
    assert!(Service::open(NAME).unwrap().is_none());
    assert!(host.data().join("pki").join("client.pem").exists());
    let status = host.works("status", &[]).await;
    assert!(status.contains("not installed"), "{status}");
}

/// AL-05, with a control of debug builds in the place of PRESHUTDOWN.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_goes_down_ends_what_runs_and_the_result_is_on_disk_first() {
    let server = Server::start().await;
    let host = Host::new().await;
    host.install(&server).await;
    let never = host.folder.path().join("never");
    let task = server
        .task("cut", NODE, probe(&["await", never.to_str().unwrap()]))
        .await;
    server.until(&task, is_running).await;
    service().control(HOST_DOWN).unwrap();
    assert_eq!(becomes(State::Stopped).await.exit_code, 0);
    let folder = host.data().join("tasks").join(task.uid());
    let run = agent::journal::read::<agent::journal::RunRecord>(&folder.join("run.jsonl")).unwrap();
    let status = agent::runner::status_from_journal(&run);
    assert_eq!(
        (status.phase, status.reason.as_str()),
        (TaskPhase::Failed, "Interrupted")
    );
    let seen = agent::journal::read::<agent::journal::AgentRecord>(&folder.join("agent.jsonl")).unwrap();
    assert!(
        seen.iter()
            .any(|entry| entry.record == agent::journal::AgentRecord::ShutdownSeen)
    );
    service().start().unwrap();
    becomes(State::Running).await;
    let ended = server.until(&task, has_ended).await;
    assert_eq!(ended.status.unwrap().reason, "Interrupted");
}

/// AL-01: a step has its current folder among the old program's; the new version lies beside it.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_takes_over_from_a_running_job_and_a_bad_one_is_taken_back() {
    let server = Server::start().await;
    let host = Host::new().await;
    host.install(&server).await;
    let old = service().command_line().unwrap();
    let go = host.folder.path().join("go");
    let task = server
        .task("through", NODE, probe(&["await", go.to_str().unwrap()]))
        .await;
    server.until(&task, is_running).await;

    // Another build: the same with some bytes behind its end, which Windows does not look at.
    let new = host.folder.path().join("new.exe");
    let mut bytes = std::fs::read(Host::program("prow-agent")).unwrap();
    bytes.extend_from_slice(b"another build");
    std::fs::write(&new, &bytes).unwrap();
    let said = host
        .fails(
            "upgrade",
            &["--to", Host::program("prow-probe").to_str().unwrap()],
        )
        .await;
    assert!(said.contains("is no prow-agent"), "{said}");
    host.works("upgrade", &["--to", new.to_str().unwrap()]).await;
    let upgraded = service().command_line().unwrap();
    assert_ne!(upgraded, old);
    assert!(host.works("status", &[]).await.contains("upgrade      done"));
    std::fs::write(&go, "").unwrap();
    let ended = server.until(&task, has_ended).await;
    assert_eq!(ended.phase(), TaskPhase::Succeeded, "{:?}", ended.status);

    // One that cannot reach the server is no improvement.
    bytes.extend_from_slice(b", a bad one");
    std::fs::write(&new, &bytes).unwrap();
    server.door.shut();
    let said = host
        .fails(
            "upgrade",
            &["--patience-seconds", "3", "--to", new.to_str().unwrap()],
        )
        .await;
    assert!(said.contains("taken back"), "{said}");
    assert_eq!(service().command_line().unwrap(), upgraded);
    server.door.open();
    let go = host.folder.path().join("after");
    let task = server
        .task("after", NODE, probe(&["append", go.to_str().unwrap(), "here"]))
        .await;
    appears(&go).await;
    server.until(&task, has_ended).await;
}
