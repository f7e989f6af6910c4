//! One thing breaks, and the work goes on: agents killed, frozen, copied; servers killed; Jobs deleted and made again under one name.

use anyhow::{Context, Result, ensure};
use api::{Job, Task, job::JobPhase, task::TaskPhase};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};
use testkit::{Options, Process, System, program, wait};

const NAMESPACE: &str = "default";

/// A Job whose only step notes that it runs, then waits for the test.
struct Held {
    started: PathBuf,
    go: PathBuf,
}

impl Held {
    fn new(system: &System, name: &str) -> Self {
        let file = |what: &str| system.folder().join(format!("{name}.{what}"));
        Self {
            started: file("started"),
            go: file("go"),
        }
    }

    fn step(&self) -> Value {
        let (started, go) = (self.started.display(), self.go.display());
        let script = format!(
            "echo \"$PROW_TASK $PROW_NODE\" >> '{started}'; while [ ! -e '{go}' ]; do sleep 0.05 || :; done; echo done"
        );
        json!({"name": "hold", "script": script})
    }

    fn let_go(&self) -> Result<()> {
        Ok(fs::write(&self.go, "")?)
    }

    fn starts(&self) -> usize {
        fs::read_to_string(&self.started).map_or(0, |text| text.lines().count())
    }
}

async fn create(client: &Client, name: &str, spec: Value) -> Result<Job> {
    let job =
        json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec});
    let api: Api<Job> = Api::namespaced(client.clone(), NAMESPACE);
    Ok(api
        .create(&PostParams::default(), &serde_json::from_value(job)?)
        .await?)
}

async fn tasks_of(client: &Client, job: &Job) -> Result<Vec<Task>> {
    let api: Api<Task> = Api::namespaced(client.clone(), NAMESPACE);
    let mut tasks = api.list(&ListParams::default()).await?.items;
    tasks.retain(|task| task.spec.job_ref.uid == job.uid());
    tasks.sort_by_key(|task| task.spec.attempt);
    Ok(tasks)
}

/// The Job's first Task, once its step runs.
async fn running_task(client: &Client, job: &Job) -> Result<Task> {
    wait::until(
        &Api::<Job>::namespaced(client.clone(), NAMESPACE),
        job.name(),
        |job| job.status.as_ref().is_some_and(|status| status.active == 1),
    )
    .await?;
    let name = tasks_of(client, job)
        .await?
        .remove(0)
        .metadata
        .name
        .context("a Task without a name")?;
    wait::until(
        &Api::<Task>::namespaced(client.clone(), NAMESPACE),
        &name,
        |task| phase(task) == TaskPhase::Running,
    )
    .await
}

fn phase(task: &Task) -> TaskPhase {
    task.status
        .as_ref()
        .map(|status| status.phase)
        .unwrap_or_default()
}

fn is_lost(task: &Task) -> bool {
    let conditions = task.status.iter().flat_map(|status| &status.conditions);
    conditions
        .filter(|c| c.type_ == "NodeLost")
        .any(|c| c.status == "True")
}

async fn system(agents: u32) -> Result<(System, Client)> {
    let system = System::start(
        Options::agents(agents)
            .flag("--renew-seconds", 1)
            .flag("--node-lost-seconds", 4),
    )
    .await?;
    let client = system.client().await?;
    wait::nodes_ready(&client, agents).await?;
    Ok((system, client))
}

#[tokio::test]
async fn a_killed_server_is_followed_by_one_that_takes_over_agents_and_runners() -> Result<()> {
    let (mut system, client) = system(1).await?;
    let held = Held::new(&system, "held");
    let job = create(&client, "held", json!({"steps": [held.step()]})).await?;
    running_task(&client, &job).await?;
    let (agent, runners) = (system.agent(1)?, system.runners());
    system.kill_server().await?;
    ensure!(system.runners() == runners, "the runner outlives the server");
    system.start_server().await?;
    let client = system.client().await?;
    held.let_go()?;
    let job = wait::finished(&client, NAMESPACE, "held").await?;
    ensure!(job.phase() == JobPhase::Succeeded, "{:#?}", job.status);
    ensure!(
        system.agent(1)? == agent,
        "no second agent was started beside the one that lived"
    );
    ensure!(held.starts() == 1, "the step ran once");
    system.stop().await
}

#[tokio::test]
async fn a_killed_agent_is_started_again_and_finds_its_runner() -> Result<()> {
    let (mut system, client) = system(1).await?;
    let held = Held::new(&system, "held");
    let job = create(&client, "held", json!({"steps": [held.step()]})).await?;
    running_task(&client, &job).await?;
    ensure!(system.agent(1)?.kill(), "the agent lived");
    held.let_go()?;
    let job = wait::finished(&client, NAMESPACE, "held").await?;
    ensure!(
        job.phase() == JobPhase::Succeeded && held.starts() == 1,
        "{:#?}",
        job.status
    );
    system.stop().await
}

#[tokio::test]
async fn a_frozen_agent_keeps_its_running_task_and_reports_it_when_it_thaws() -> Result<()> {
    let (mut system, client) = system(1).await?;
    let held = Held::new(&system, "held");
    let job = create(&client, "held", json!({"steps": [held.step()]})).await?;
    let task = running_task(&client, &job).await?;
    let agent = system.agent(1)?;
    agent.freeze();
    let tasks: Api<Task> = Api::namespaced(client.clone(), NAMESPACE);
    let name = task.metadata.name.as_deref().unwrap_or_default();
    let lost = wait::until(&tasks, name, is_lost).await?;
    ensure!(
        phase(&lost) == TaskPhase::Running,
        "a Hold task is neither ended nor repeated while its node is lost"
    );
    held.let_go()?; // the runner goes on without its agent
    agent.thaw();
    let job = wait::finished(&client, NAMESPACE, "held").await?;
    ensure!(job.phase() == JobPhase::Succeeded, "{:#?}", job.status);
    ensure!(
        tasks_of(&client, &job).await?.len() == 1 && held.starts() == 1,
        "the step ran once"
    );
    system.stop().await
}

#[tokio::test]
async fn a_task_bound_to_a_frozen_agent_is_replaced_and_never_started_there() -> Result<()> {
    let (mut system, client) = system(2).await?;
    let held = Held::new(&system, "moved");
    held.let_go()?;
    let agent = system.agent(1)?;
    agent.freeze();
    let spec = json!({"steps": [held.step()], "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["agent-1"]}]}}]}}});
    create(&client, "moved", spec).await?;
    let job = wait::finished(&client, NAMESPACE, "moved").await?;
    ensure!(job.phase() == JobPhase::Succeeded, "{:#?}", job.status);
    let tasks = tasks_of(&client, &job).await?;
    agent.thaw();
    // once the thawed agent has run another Task it has seen everything it was late for
    let after = Held::new(&system, "after");
    after.let_go()?;
    create(&client, "after", json!({"steps": [after.step()], "nodeSelector": {"kubernetes.io/hostname": "agent-1"}, "completionMode": "PerNode"})).await?;
    let job = wait::finished(&client, NAMESPACE, "after").await?;
    ensure!(job.phase() == JobPhase::Succeeded, "{:#?}", job.status);
    ensure!(held.starts() == 1, "the step ran once: {tasks:#?}");
    for task in &tasks {
        let wanted = if task.spec.node_name == "agent-1" {
            TaskPhase::Rejected
        } else {
            TaskPhase::Succeeded
        };
        ensure!(phase(task) == wanted, "{task:#?}");
    }
    system.stop().await
}

#[tokio::test]
async fn of_two_agents_on_a_copied_folder_one_works_and_the_other_ends() -> Result<()> {
    let (mut system, client) = system(1).await?;
    let copy = system.folder().join("copy");
    copy_folder(&system.agent_folder(1), &copy)?;
    let log = fs::File::create(system.folder().join("copy.log"))?;
    let mut second = tokio::process::Command::new(program("prow-agent")?)
        .arg("run")
        .arg("--data-dir")
        .arg(&copy)
        .args(["--server", system.url(), "--renew-seconds", "1"])
        .stdout(Stdio::null())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()?;
    let held = Held::new(&system, "once");
    held.let_go()?;
    create(
        &client,
        "once",
        json!({"steps": [held.step()], "completions": 10, "parallelism": 10}),
    )
    .await?;
    let job = wait::finished(&client, NAMESPACE, "once").await?;
    ensure!(job.phase() == JobPhase::Succeeded, "{:#?}", job.status);
    ensure!(held.starts() == 10, "every index ran once");
    let first = system.agent(1)?;
    let status = second.wait().await?;
    ensure!(!status.success(), "the second agent ends with an error");
    let said = fs::read_to_string(system.folder().join("copy.log"))?;
    ensure!(
        said.contains("agent"),
        "the second agent says why it ends: {said}"
    );
    ensure!(system.agent(1)? == first, "the first agent goes on");
    system.stop().await
}

#[tokio::test]
async fn a_job_deleted_and_made_again_while_it_runs_does_not_mix_with_the_old_one() -> Result<()> {
    let (mut system, client) = system(1).await?;
    let jobs: Api<Job> = Api::namespaced(client.clone(), NAMESPACE);
    let old = Held::new(&system, "old");
    let first = create(&client, "again", json!({"steps": [old.step()]})).await?;
    let old_task = running_task(&client, &first).await?;
    jobs.delete("again", &DeleteParams::default()).await?;
    let refused = create(
        &client,
        "again",
        json!({"steps": [{"name": "new", "script": "true"}]}),
    )
    .await;
    ensure!(
        refused.is_err(),
        "the old Job is there until its processes are gone"
    );
    wait::until_gone(&jobs, "again", first.uid()).await?;
    ensure!(
        process_of(&system, &old_task).is_empty(),
        "what the old Job ran is gone with it"
    );
    let new = Held::new(&system, "new");
    new.let_go()?;
    let second = create(&client, "again", json!({"steps": [new.step()]})).await?;
    let job = wait::finished(&client, NAMESPACE, "again").await?;
    ensure!(
        job.uid() == second.uid() && job.phase() == JobPhase::Succeeded,
        "{:#?}",
        job.status
    );
    ensure!((old.starts(), new.starts()) == (1, 1), "each ran its own step");
    system.stop().await
}

/// Living processes of a Task.
fn process_of(system: &System, task: &Task) -> Vec<Process> {
    let uid = task.metadata.uid.clone().unwrap_or_default();
    Process::of_folder(Path::new(&uid))
        .into_iter()
        .filter(|process| Some(*process) != system.server())
        .collect()
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if entry.file_type()?.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

/// A process that schedules and controls apart from the server. Its folder makes it one of the system's, to be killed with it.
struct Control(tokio::process::Child);

impl Control {
    async fn start(system: &System, name: &str) -> Result<Self> {
        let log = fs::File::create(system.folder().join(name))?;
        let mut command = tokio::process::Command::new(program("prow")?);
        command
            .arg("controllers")
            .arg("--kubeconfig")
            .arg(system.kubeconfig());
        command.args(["--leader-lease-seconds", "3", "--node-lost-seconds", "4"]);
        let child = command.stderr(log).kill_on_drop(true).spawn();
        Ok(Self(child.context("prow controllers cannot be started")?))
    }

    fn process(&self) -> Result<Process> {
        Ok(Process(self.0.id().context("it has ended")?))
    }
}

async fn leads(client: &Client, is_met: impl Fn(&str, i32) -> bool) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "prow-system");
    let facts = |lease: &Lease| {
        let spec = lease.spec.clone().unwrap_or_default();
        (
            spec.holder_identity.unwrap_or_default(),
            spec.lease_transitions.unwrap_or_default(),
        )
    };
    let lease = wait::until(&leases, "prow-control", |lease| {
        let (holder, transitions) = facts(lease);
        !holder.is_empty() && is_met(&holder, transitions)
    });
    Ok(facts(&lease.await?).0)
}

/// CP-06.
#[tokio::test]
async fn a_frozen_leader_is_followed_and_does_no_harm_when_it_thaws() -> Result<()> {
    let options = Options::agents(1)
        .flag("--renew-seconds", 1)
        .switch("--no-controllers");
    let mut system = System::start(options).await?;
    let client = system.client().await?;
    let mut first = Control::start(&system, "first.log").await?;
    let leader = leads(&client, |_, _| true).await?;
    let mut second = Control::start(&system, "second.log").await?;
    wait::nodes_ready(&client, 1).await?;
    let held = Held::new(&system, "held");
    let spec =
        json!({"completionMode": "Indexed", "completions": 6, "parallelism": 2, "steps": [held.step()]});
    let job = create(&client, "held", spec).await?;
    wait::until(
        &Api::<Job>::namespaced(client.clone(), NAMESPACE),
        job.name(),
        |job| job.status.as_ref().is_some_and(|status| status.active == 2),
    )
    .await?;
    first.process()?.freeze();
    let next = leads(&client, |holder, _| holder != leader).await?;
    held.let_go()?;
    wait::until(
        &Api::<Job>::namespaced(client.clone(), NAMESPACE),
        job.name(),
        |job| job.status.as_ref().is_some_and(|status| status.succeeded >= 3),
    )
    .await?;
    first.process()?.thaw();
    let job = wait::finished(&client, NAMESPACE, "held").await?;
    let status = job.status.clone().unwrap_or_default();
    ensure!((status.succeeded, status.retries) == (6, 0), "{status:#?}");
    ensure!(tasks_of(&client, &job).await?.len() == 6, "one Task an index");
    ensure!(held.starts() == 6, "each ran once");
    // the thawed one stands by, and leads again when the second is gone
    second.0.kill().await?;
    leads(&client, |holder, transitions| {
        holder == leader && transitions >= 2
    })
    .await?;
    ensure!(next != leader);
    create(
        &client,
        "after",
        json!({"steps": [{"name": "run", "script": "true"}]}),
    )
    .await?;
    wait::finished(&client, NAMESPACE, "after").await?;
    first.process()?.terminate();
    ensure!(first.0.wait().await?.success(), "it ends in order");
    system.stop().await
}
