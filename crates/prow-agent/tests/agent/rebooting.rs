//! Steps that have their host restarted. The host is simulated: a restart is another boot id, and the death of all that ran.

use crate::world::{Agent, World, appears, hang_guard, kill, runner};
use agent::journal::{self, AgentRecord};
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

/// Runs a Task up to the order of its first restart.
async fn until_ordered(world: &World, host: &Host, name: &str, spec: Value) -> Task {
    let mut spec = spec;
    spec["impact"] = json!("Disruptive");
    let job = world.job(name, spec).await;
    let task = world.bind(&job, "web1", 0).await;
    allow(world, &task).await;
    host.ordered(1).await;
    task
}

/// A step that asks for a restart whenever it runs.
fn asks(at: &Path, reboot: Value) -> Value {
    let mut step = step("install", &leaves_mark(at, "install", "exit 3010"), reboot);
    // a Unix exit code has 8 bits
    step["script"] = json!(leaves_mark(at, "install", "exit 42"));
    step["exitCodes"] = json!({"reboot": [42]});
    step
}

fn told(status: &api::TaskStatus) -> (TaskPhase, &str) {
    (status.phase, status.reason.as_str())
}

/// Patching: the same step again until it has had enough, and ready before it goes on.
#[tokio::test]
async fn the_same_step_runs_again_once_the_host_is_ready() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let ready = at.join("ready");
    let script = format!(
        "echo patch >> {0}; [ $(wc -l < {0}) -ge 3 ] || exit 42; echo done",
        at.join("runs").display()
    );
    let reboot = json!({
        "policy": "IfRequested", "resume": "Same",
        "readyCheck": format!("echo asked >> {}; [ -e {} ]", at.join("asked").display(), ready.display()),
    });
    let patch = json!({"name": "patch", "shell": "sh", "script": script, "exitCodes": {"reboot": [42]}, "reboot": reboot});
    let task = until_ordered(&world, &host, "patch", json!({"steps": [patch]})).await;
    host.restart().await;
    appears(&at.join("asked")).await;
    let waiting = world
        .until(&task, |task| {
            task.status
                .as_ref()
                .unwrap()
                .message
                .contains("waiting until it is ready")
        })
        .await;
    assert!(is_rebooting(&waiting));
    assert_eq!(runs(&at), "patch ", "ran before the host was ready");
    std::fs::write(&ready, "").unwrap();
    host.ordered(2).await;
    host.restart().await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Succeeded, ""));
    assert_eq!(
        (runs(&at).as_str(), status.reboots, host.orders()),
        ("patch patch patch ", 2, 2)
    );
}

/// AL-08: a step that asks for a restart at each boot.
#[tokio::test]
async fn restarts_without_end_are_ended() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let step = asks(
        &at,
        json!({"policy": "IfRequested", "resume": "Same", "maxResumes": 2}),
    );
    let task = until_ordered(&world, &host, "loop", json!({"steps": [step]})).await;
    host.restart().await;
    host.ordered(2).await;
    host.restart().await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Failed, "RebootLoop"));
    assert!(
        status.message.contains("after 2, and reboot.maxResumes is 2"),
        "{}",
        status.message
    );
    assert_eq!(
        (runs(&at).as_str(), host.orders()),
        ("install install install ", 2)
    );
}

/// AL-07: the limit of the restart itself, on both sides of it.
#[tokio::test]
async fn a_host_that_does_not_go_down_or_comes_back_late_is_told_apart() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let spec = json!({
        "steps": [asks(&at, json!({"policy": "IfRequested", "timeoutSeconds": 1})), step("next", &leaves_mark(&at, "next", ":"), Value::Null)],
        "rollback": [step("undo", &leaves_mark(&at, "undo", ":"), Value::Null)],
    });
    let task = until_ordered(&world, &host, "stuck", spec.clone()).await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Failed, "RebootTimeout"));
    assert!(status.message.contains("did not go down"), "{}", status.message);
    assert_eq!(runs(&at), "install undo ");

    let job = world
        .job("late", json!({"impact": "Disruptive", "steps": spec["steps"]}))
        .await;
    let task = world.bind(&job, "web1", 0).await;
    allow(&world, &task).await;
    host.ordered(2).await;
    host.crash(None);
    // the Lease alone is waited for longer than that
    host.boot();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Failed, "RebootTimeout"));
    assert!(status.message.contains("came back"), "{}", status.message);
    assert_eq!(runs(&at), "install undo install ");
}

/// AL-07: back, but not ready.
#[tokio::test]
async fn a_host_that_is_not_ready_in_time_says_so() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let reboot = json!({"policy": "Always", "timeoutSeconds": 60, "readyCheck": "exit 7"});
    let mut install = step("install", "true", reboot);
    install["reboot"]["timeoutSeconds"] = json!(20);
    let next = step("next", &leaves_mark(&at, "next", ":"), Value::Null);
    let task = until_ordered(&world, &host, "unready", json!({"steps": [install, next]})).await;
    host.restart().await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Failed, "NotReady"));
    assert!(status.message.contains("exit code 7"), "{}", status.message);
    assert_eq!(runs(&at), "");
}

/// AL-07: back with its clock two hours off, either way.
#[tokio::test]
async fn the_clock_of_the_host_says_nothing_about_how_long_it_was_away() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    for (n, wrong) in ["7200", "-7200"].into_iter().enumerate() {
        let steps = json!([
            asks(&at, json!({"policy": "IfRequested", "timeoutSeconds": 600})),
            step("next", &leaves_mark(&at, "next", ":"), Value::Null),
        ]);
        let job = disruptive(&world, &format!("clock-{n}"), steps).await;
        let task = world.bind(&job, "web1", 0).await;
        allow(&world, &task).await;
        host.ordered(n + 1).await;
        host.shut_down().await;
        std::fs::write(host.folder.join("clock"), wrong).unwrap();
        host.boot();
        let status = world.end(&task).await.status.unwrap();
        assert_eq!(
            told(&status),
            (TaskPhase::Succeeded, ""),
            "{wrong} s off: {}",
            status.message
        );
    }
}

/// EC-06: a host that goes down before its restart could be told is no loss, and nobody orders another.
#[tokio::test]
async fn a_step_that_its_own_restart_stopped_did_what_it_should() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let mut install = step(
        "install",
        &leaves_mark(&at, "install", "while :; do sleep 1; done"),
        Value::Null,
    );
    install["reboot"] = json!({"policy": "SelfInitiated"});
    let next = step("next", &leaves_mark(&at, "next", ":"), Value::Null);
    let job = disruptive(&world, "self", json!([install, next])).await;
    let task = world.bind(&job, "web1", 0).await;
    appears(&at.join("runs")).await;
    world
        .until(&task, |task| task.phase() == TaskPhase::Running)
        .await;
    host.restart().await; // the step is in the middle of it
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Succeeded, ""));
    assert_eq!(
        (runs(&at).as_str(), status.reboots, host.orders()),
        ("install next ", 1, 0)
    );
    assert_eq!(status.steps[0].reason, "Reboot");
}

/// A step that restarts the host and ends before it goes down.
#[tokio::test]
async fn a_step_that_ended_before_its_own_restart_is_waited_for() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let steps = json!([
        step(
            "install",
            &leaves_mark(&at, "install", ":"),
            json!({"policy": "SelfInitiated"})
        ),
        step("next", &leaves_mark(&at, "next", ":"), Value::Null),
    ]);
    let job = disruptive(&world, "self", steps).await;
    let task = world.bind(&job, "web1", 0).await;
    world
        .until(&task, |task| {
            is_rebooting(task) && task.status.as_ref().unwrap().message.contains("waiting for that")
        })
        .await;
    host.restart().await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Succeeded, ""));
    assert_eq!((runs(&at).as_str(), host.orders()), ("install next ", 0));
}

/// A runner that the end of the host killed, where the agent saw that end come; and where nobody did.
#[tokio::test]
async fn a_cut_off_step_counts_as_restarted_only_after_a_clean_shutdown() {
    for (clean, phase, reason) in [
        (true, TaskPhase::Succeeded, ""),
        (false, TaskPhase::Failed, "HostCrashed"),
    ] {
        let world = World::start().await;
        let at = world.folder.path().to_owned();
        let mut host = Host::start(&world, "web1").await;
        let mut install = step(
            "install",
            &leaves_mark(&at, "install", "while :; do sleep 1; done"),
            Value::Null,
        );
        install["reboot"] = json!({"policy": "SelfInitiated"});
        let job = disruptive(&world, "self", json!([install])).await;
        let task = world.bind(&job, "web1", 0).await;
        appears(&at.join("runs")).await;
        world
            .until(&task, |task| task.phase() == TaskPhase::Running)
            .await;
        if clean {
            kill_with_agent_alive(&mut host, &task).await;
        } else {
            host.crash(Some(&task));
        }
        host.boot();
        let status = world.end(&task).await.status.unwrap();
        assert_eq!(told(&status), (phase, reason), "{}", status.message);
        assert_eq!(runs(&at), "install ");
    }
}

/// The agent says that it saw the shutdown; then the runner dies without a word.
async fn kill_with_agent_alive(host: &mut Host, task: &Task) {
    let pid = runner(&host.agent, task);
    host.agent.kill();
    kill(pid);
    let clock = std::sync::Arc::new(api::clock::SystemClock);
    let path = host.agent.task(task).join("agent.jsonl");
    let (mut journal, _) = journal::Writer::<AgentRecord>::open(&path, clock).unwrap();
    journal.append(&AgentRecord::ShutdownSeen).unwrap();
}

/// A crash in the middle of an ordinary step is a crash; one after the restart was asked for is the restart.
#[tokio::test]
async fn a_crash_is_no_restart_unless_one_was_asked_for() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let steps = json!([
        asks(&at, json!({"policy": "IfRequested"})),
        step(
            "next",
            &leaves_mark(&at, "next", "while :; do sleep 1; done"),
            Value::Null
        ),
    ]);
    let task = until_ordered(&world, &host, "crash", json!({"steps": steps})).await;
    host.crash(None);
    host.boot();
    hang_guard(async {
        while runs(&at) != "install next " {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await; // a file: nobody tells of it
        }
    })
    .await;
    world
        .until(&task, |task| task.phase() == TaskPhase::Running)
        .await;
    host.crash(Some(&task));
    host.boot();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Failed, "HostCrashed"));
    assert_eq!(runs(&at), "install next ");
}

#[tokio::test]
async fn a_shutdown_of_somebody_else_is_named_and_waited_for() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    std::fs::write(host.folder.join("theirs"), "an update by WSUS").unwrap();
    let steps = json!([
        asks(&at, json!({"policy": "IfRequested"})),
        step("next", &leaves_mark(&at, "next", ":"), Value::Null),
    ]);
    let job = disruptive(&world, "theirs", steps).await;
    let task = world.bind(&job, "web1", 0).await;
    allow(&world, &task).await;
    world
        .until(&task, |task| {
            task.status
                .as_ref()
                .is_some_and(|s| s.message.contains("an update by WSUS"))
        })
        .await;
    host.restart().await;
    assert_eq!(world.end(&task).await.phase(), TaskPhase::Succeeded);
    assert_eq!((runs(&at).as_str(), host.orders()), ("install next ", 0));
}

#[tokio::test]
async fn one_restart_serves_two_tasks() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let mut tasks = Vec::new();
    for name in ["one", "two"] {
        let steps = json!([
            asks(&at, json!({"policy": "IfRequested"})),
            step("next", &leaves_mark(&at, "next", ":"), Value::Null),
        ]);
        let job = disruptive(&world, name, steps).await;
        let task = world.bind(&job, "web1", 0).await;
        world.until(&task, is_rebooting).await;
        tasks.push(task);
    }
    allow(&world, &tasks[0]).await;
    host.ordered(1).await;
    host.restart().await;
    for task in &tasks {
        assert_eq!(world.end(task).await.phase(), TaskPhase::Succeeded);
    }
    assert_eq!(
        (runs(&at).as_str(), host.orders()),
        ("install install next next ", 1)
    );
}

/// EC-06: nobody asked for restarts, so the code is a success with a warning, and the node says what is due.
#[tokio::test]
async fn a_wish_nobody_may_fulfil_is_shown_on_the_node() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let host = Host::start(&world, "web1").await;
    let steps = json!([
        asks(&at, Value::Null),
        step("next", &leaves_mark(&at, "next", ":"), Value::Null)
    ]);
    let job = world.job("never", json!({"steps": steps})).await;
    let task = world.bind(&job, "web1", 0).await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(
        (told(&status), runs(&at).as_str()),
        ((TaskPhase::Succeeded, ""), "install next ")
    );
    assert_eq!(status.steps[0].reason, "PendingReboot");
    let nodes = informer::Informer::<api::Node>::start(world.client.clone(), informer::Options::all());
    let mut changes = nodes.subscribe();
    hang_guard(async {
        let due = |n: &api::Node| {
            n.condition("PendingReboot")
                .is_some_and(|c| c.status == "True" && c.message.contains("step install"))
        };
        while !nodes.all().iter().any(|n| due(n)) {
            changes.next().await;
        }
    })
    .await;
    assert_eq!(host.orders(), 0);
}

#[tokio::test]
async fn an_agent_that_is_no_service_refuses_to_restart_its_host() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let host = Host::with(&world, "web1", "").await;
    let job = disruptive(
        &world,
        "refused",
        json!([asks(&at, json!({"policy": "IfRequested"}))]),
    )
    .await;
    let task = world.bind(&job, "web1", 0).await;
    allow(&world, &task).await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Failed, "RebootRefused"));
    assert!(status.message.contains("allowReboot: true"), "{}", status.message);
    assert_eq!(host.orders(), 0);
}

#[tokio::test]
async fn a_cancel_while_a_restart_is_waited_for_undoes_the_work_instead() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let host = Host::start(&world, "web1").await;
    let mark = |name: &str| step(name, &leaves_mark(&at, name, ":"), Value::Null);
    let spec = json!({
        "impact": "Disruptive",
        "steps": [asks(&at, json!({"policy": "IfRequested"}))],
        "rollback": [mark("undo")],
        "finally": [mark("tidy")],
    });
    let job = world.job("cancelled", spec).await;
    let task = world.bind(&job, "web1", 0).await;
    world.until(&task, is_rebooting).await;
    let stop = json!({"reason": "Cancelled", "message": "not today", "graceSeconds": 5});
    world.patch(&task, json!({"spec": {"stop": stop}})).await;
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Cancelled, "Cancelled"));
    assert_eq!(
        (status.message.as_str(), runs(&at).as_str()),
        ("not today", "install undo tidy ")
    );
    assert_eq!(host.orders(), 0);
}

/// Secrets are fetched anew: one that is gone is waited for as long as the restart may take.
#[tokio::test]
async fn a_secret_that_is_gone_after_the_restart_is_waited_for() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let mut next = step("next", &leaves_mark(&at, "next", "echo $TOKEN"), Value::Null);
    next["env"] = json!([{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "token"}}}]);
    let reboot = json!({"policy": "IfRequested", "timeoutSeconds": 35});
    let task = until_ordered(
        &world,
        &host,
        "secret",
        json!({"steps": [asks(&at, reboot), next]}),
    )
    .await;
    host.restart().await;
    let begun = std::time::Instant::now();
    let status = world.end(&task).await.status.unwrap();
    assert_eq!(told(&status), (TaskPhase::Failed, "SecretUnavailable"));
    // once more than without a restart
    assert!(begun.elapsed().as_secs() >= 35, "{:?}", begun.elapsed());
    assert_eq!(runs(&at), "install ");
}

/// Nothing runs on a guess: not before the server answers, and not if it has ended the Task meanwhile.
#[tokio::test]
async fn without_the_server_nothing_goes_on_after_the_restart() {
    let world = World::start().await;
    let at = world.folder.path().to_owned();
    let mut host = Host::start(&world, "web1").await;
    let steps = json!([
        asks(&at, json!({"policy": "IfRequested"})),
        step("next", &leaves_mark(&at, "next", ":"), Value::Null),
    ]);
    let task = until_ordered(&world, &host, "away", json!({"steps": steps})).await;
    host.shut_down().await;
    world.door.shut();
    host.boot();
    world
        .end_from_above(&task, TaskPhase::Failed, "RebootTimeout")
        .await;
    world.door.open();
    world.ready("web1").await;
    let job = world.script("after", "true").await;
    let after = world.bind(&job, "web1", 0).await;
    assert_eq!(world.end(&after).await.phase(), TaskPhase::Succeeded);
    assert_eq!(runs(&at), "install ");
    let went_on = |record: &AgentRecord| matches!(record, AgentRecord::Returned { .. });
    assert!(!host.agent_records(&task).iter().any(went_on));
}
