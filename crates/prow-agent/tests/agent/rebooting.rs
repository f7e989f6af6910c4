//! Steps that have their host restarted. The host is simulated: a restart is another boot id, and the death of all that ran.

use crate::world::{Agent, World, appears, hang_guard, kill, runner};
use agent::journal::{self, AgentRecord, RunRecord};
use api::{
    Job, Task,
    task::{StepPhase, TaskPhase},
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// An agent on a host that can be restarted.
struct Host {
    agent: Agent,
    folder: PathBuf,
    boots: u32,
}

impl Host {
    async fn start(world: &World, node: &str) -> Self {
        Self::with(world, node, "allowReboot: true\n").await
    }

    async fn with(world: &World, node: &str, settings: &str) -> Self {
        let folder = world.folder.path().join(format!("{node}-host"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("boot"), "boot-0").unwrap();
        let token = world.token().await;
        let data = world.folder.path().join(node);
        let mut agent = Agent::new(data.clone(), format!("https://{}", world.door.address));
        std::fs::write(data.join("agent.yaml"), format!("minFreeDisk: 1Mi\n{settings}")).unwrap();
        agent.arguments = vec!["--token".into(), token, "--name".into(), node.into()];
        agent.variables = vec![("PROW_SIMULATED_HOST".into(), folder.clone())];
        agent.start();
        world.ready(node).await;
        Self {
            agent,
            folder,
            boots: 0,
        }
    }

    /// Waits until the agent has ordered so many restarts in all.
    async fn ordered(&self, times: usize) {
        let path = self.folder.join("ordered");
        hang_guard(async {
            while std::fs::read_to_string(&path).unwrap_or_default().lines().count() < times {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await; // a file: nobody tells of it
            }
        })
        .await;
    }

    fn orders(&self) -> usize {
        std::fs::read_to_string(self.folder.join("ordered"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// The host goes down and tells before.
    async fn shut_down(&mut self) {
        std::fs::write(self.folder.join("stopping"), "").unwrap();
        self.agent.signal(rustix::process::Signal::TERM);
        self.agent.ended().await;
        std::fs::remove_file(self.folder.join("stopping")).unwrap();
    }

    /// The host loses power: agent and runner die as they are.
    fn crash(&mut self, running: Option<&Task>) {
        self.agent.kill();
        if let Some(task) = running {
            kill(runner(&self.agent, task));
        }
    }

    /// Another boot.
    fn boot(&mut self) {
        self.boots += 1;
        std::fs::write(self.folder.join("boot"), format!("boot-{}", self.boots)).unwrap();
        self.agent.start();
    }

    async fn restart(&mut self) {
        self.shut_down().await;
        self.boot();
    }

    fn records(&self, task: &Task) -> Vec<RunRecord> {
        let entries = journal::read::<RunRecord>(&self.agent.task(task).join("run.jsonl")).unwrap();
        entries.into_iter().map(|e| e.record).collect()
    }

    fn agent_records(&self, task: &Task) -> Vec<AgentRecord> {
        let entries = journal::read::<AgentRecord>(&self.agent.task(task).join("agent.jsonl")).unwrap();
        entries.into_iter().map(|e| e.record).collect()
    }
}

fn step(name: &str, script: &str, reboot: Value) -> Value {
    let mut step = json!({"name": name, "shell": "sh", "script": script});
    if !reboot.is_null() {
        step["reboot"] = reboot;
    }
    step
}

/// A line in a file for each run of a step.
fn leaves_mark(at: &Path, name: &str, then: &str) -> String {
    format!("echo {name} >> {}; {then}", at.join("runs").display())
}

fn runs(at: &Path) -> String {
    std::fs::read_to_string(at.join("runs"))
        .unwrap_or_default()
        .replace('\n', " ")
}

async fn disruptive(world: &World, name: &str, steps: Value) -> Job {
    world
        .job(name, json!({"impact": "Disruptive", "steps": steps}))
        .await
}

async fn allow(world: &World, task: &Task) {
    world.patch(task, json!({"spec": {"rebootAllowed": true}})).await;
}

fn is_rebooting(task: &Task) -> bool {
    task.phase() == TaskPhase::Rebooting
}

/// EC-06: 3010 is a success, and the host is restarted before the next step.
#[tokio::test]
async fn a_code_that_asks_for_a_restart_gets_one_and_the_next_step_follows() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let first = leaves_mark(&at, "install", "exit 42");
    let steps = json!([
        {"name": "install", "shell": "sh", "script": first, "exitCodes": {"reboot": [42]}, "reboot": {"policy": "IfRequested"}},
        step("configure", &leaves_mark(&at, "configure", "echo $PROW_STEP"), Value::Null),
    ]);
    let job = disruptive(&world, "patch", steps).await;
    let task = world.bind(&job, "web1", 0).await;

    let waiting = world
        .until(&task, |task| {
            is_rebooting(task) && task.status.as_ref().unwrap().message.contains("permission")
        })
        .await;
    assert_eq!(waiting.status.unwrap().reboots, 1);
    assert_eq!(host.orders(), 0, "restarted without a permission");
    allow(&world, &task).await;
    host.ordered(1).await;
    let asked = |record: &AgentRecord| matches!(record, AgentRecord::RebootAsked { .. });
    assert!(
        host.agent_records(&task).iter().any(asked),
        "ordered before it was written down"
    );
    host.restart().await;

    let status = world.end(&task).await.status.unwrap();
    assert_eq!((status.phase, status.reason.as_str()), (TaskPhase::Succeeded, ""));
    assert_eq!(runs(&at), "install configure ");
    assert_eq!(status.steps[0].exit_code, Some(42));
    assert_eq!(
        (status.steps[0].phase, status.steps[0].reason.as_str()),
        (StepPhase::Succeeded, "Reboot")
    );
    assert_eq!(world.log(&task, "configure").await, "configure\n");
    assert_eq!(host.orders(), 1);
}
