//! An agent that speaks to the API as a real one does and pretends to run the steps.

use crate::world::World;
use api::{
    Node, Task,
    quantity::Quantity,
    task::{Claim, Drain, SYSTEM_ENDS, TaskPhase},
};
use informer::{Change, Informer, Options};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, task::JoinHandle};

/// What an agent does with a Task.
#[derive(Clone, Debug)]
pub enum Plan {
    /// It succeeds after so long.
    Succeed(Duration),
    /// It fails with this reason at once; the flag says whether a step had started.
    Fail(&'static str, bool),
    /// It is not taken.
    Reject,
    /// It runs until it is stopped.
    Run,
    /// It runs for so long, wants its host restarted, and succeeds after that.
    Restart(Restart),
    /// It is claimed and succeeds at once, with outputs.
    Output(&'static str, &'static str),
    /// Nothing is done.
    Ignore,
}

/// A restart of the host.
#[derive(Clone, Copy, Debug)]
pub struct Restart {
    /// How long the Task runs before it wants one.
    pub runs: Duration,
    /// How long nothing is heard of the host.
    pub away: Duration,
    /// How long it is not ready after that.
    pub unready: Duration,
}

pub fn succeed() -> Plan {
    Plan::Succeed(Duration::ZERO)
}

/// How alive an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Alive,
    /// Cut off: it goes on, but nothing comes through.
    Frozen,
}

pub struct Agent {
    pub name: String,
    life: Arc<watch::Sender<Life>>,
    work: JoinHandle<()>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.work.abort();
    }
}

const RENEW: Duration = Duration::from_secs(10);

impl Agent {
    pub async fn join(world: &World, name: &str, plan: Arc<dyn Fn(&Task) -> Plan + Send + Sync>) -> Self {
        let mut node = Node::new(name, Default::default());
        node.metadata.labels = Some([("role".to_owned(), "web".to_owned())].into());
        let nodes: Api<Node> = Api::all(world.client.clone());
        let made = nodes.create(&PostParams::default(), &node).await.unwrap();
        let mut status = node.status.take().unwrap_or_default();
        for (resource, amount) in [("slots", "8"), ("cpu", "4"), ("memory", "8Gi")] {
            status
                .allocatable
                .insert(resource.into(), Quantity(amount.into()));
        }
        status.node_info.operating_system = "linux".into();
        status.conditions.push(Condition {
            type_: "Ready".into(),
            status: "True".into(),
            reason: "AgentRunning".into(),
            message: String::new(),
            last_transition_time: Time(world.now()),
            observed_generation: None,
        });
        let body = json!({"metadata": {"resourceVersion": made.metadata.resource_version}, "status": status});
        nodes
            .patch_status(name, &PatchParams::default(), &Patch::Merge(body))
            .await
            .unwrap();
        let mut lease = Lease::default();
        lease.metadata.name = Some(name.into());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(format!("{name}/nonce")),
            ..Default::default()
        });
        let leases: Api<Lease> = Api::namespaced(world.client.clone(), informer::NODE_LEASES);
        leases.create(&PostParams::default(), &lease).await.unwrap();
        let life = Arc::new(watch::Sender::new(Life::Alive));
        let worker = Worker {
            client: world.client.clone(),
            clock: world.clock.clone(),
            name: name.into(),
            plan,
            life: life.subscribe(),
            host: life.clone(),
        };
        Self {
            name: name.into(),
            life,
            work: tokio::spawn(worker.work()),
        }
    }

    /// Cuts the agent off.
    pub fn freeze(&self) {
        self.life.send_replace(Life::Frozen);
    }

    pub fn thaw(&self) {
        self.life.send_replace(Life::Alive);
    }
}

#[derive(Clone)]
struct Worker {
    client: Client,
    clock: Arc<crate::world::TokioClock>,
    name: String,
    plan: Arc<dyn Fn(&Task) -> Plan + Send + Sync>,
    life: watch::Receiver<Life>,
    /// A restart of the host cuts the agent off.
    host: Arc<watch::Sender<Life>>,
}

impl Worker {
    async fn work(self) {
        let fields = format!("spec.nodeName={}", self.name);
        let tasks: Informer<Task> = Informer::start(self.client.clone(), Options::all().fields(fields));
        let mut changes = tasks.subscribe();
        let mut renew = tokio::time::interval(RENEW);
        let mut life = self.life.clone();
        let mut under_way: tokio::task::JoinSet<()> = tokio::task::JoinSet::new();
        loop {
            if life.wait_for(|l| *l == Life::Alive).await.is_err() {
                return;
            }
            tokio::select! {
                _ = renew.tick() => self.renew().await,
                batch = changes.next() => {
                    for change in batch {
                        if let Change::Applied(task) = change {
                            let (worker, task) = (self.clone(), task.clone());
                            under_way.spawn(async move { worker.attend(&task).await });
                        }
                    }
                }
                _ = life.changed() => {}
            }
        }
    }

    async fn renew(&self) {
        let api: Api<Lease> = Api::namespaced(self.client.clone(), informer::NODE_LEASES);
        let body = json!({"spec": {"renewTime": MicroTime(self.now())}});
        let _ = api
            .patch(&self.name, &PatchParams::default(), &Patch::Merge(body))
            .await;
    }

    fn now(&self) -> Timestamp {
        use api::clock::Clock as _;
        self.clock.now()
    }

    async fn attend(&self, task: &Task) {
        if task.phase().is_terminal() {
            return;
        }
        match (&task.spec.stop, task.phase()) {
            (None, TaskPhase::Bound) if task.spec.drain == Some(Drain::Wanted) => {}
            (None, TaskPhase::Bound) => self.take(task).await,
            (Some(stop), TaskPhase::Claimed | TaskPhase::Running) => {
                let failed = ["Timeout", "DeadlineExceeded"].contains(&stop.reason.as_str())
                    || SYSTEM_ENDS.contains(&stop.reason.as_str());
                let phase = if failed {
                    TaskPhase::Failed
                } else {
                    TaskPhase::Cancelled
                };
                self.end(task, phase, &stop.reason, json!({})).await;
            }
            _ => {}
        }
    }

    async fn take(&self, task: &Task) {
        let plan = (self.plan)(task);
        match plan {
            Plan::Ignore => return,
            Plan::Reject => return self.end(task, TaskPhase::Rejected, "NoRoom", json!({})).await,
            _ => {}
        }
        let claim = Claim {
            agent_instance: self.name.clone(),
            boot_id: "boot".into(),
            nonce: "nonce".into(),
            time: MicroTime(self.now()),
        };
        let phase = if matches!(plan, Plan::Run | Plan::Restart(_) | Plan::Fail(_, true)) {
            TaskPhase::Running
        } else {
            TaskPhase::Claimed
        };
        let claimed = self
            .patch(task, json!({"phase": "Claimed", "claim": claim}))
            .await;
        let Some(mut claimed) = claimed else { return };
        if phase == TaskPhase::Running {
            let Some(running) = self
                .patch(&claimed, json!({"phase": "Running", "startedSteps": true}))
                .await
            else {
                return;
            };
            claimed = running;
        }
        match plan {
            Plan::Succeed(after) => {
                tokio::time::sleep(after).await;
                self.end(&claimed, TaskPhase::Succeeded, "", json!({})).await;
            }
            Plan::Output(name, value) => {
                self.end(
                    &claimed,
                    TaskPhase::Succeeded,
                    "",
                    json!({"outputs": {name: value}}),
                )
                .await;
            }
            Plan::Restart(restart) => {
                tokio::time::sleep(restart.runs).await;
                let rebooting = json!({"phase": "Rebooting", "reboots": 1});
                let Some(rebooting) = self.patch(&claimed, rebooting).await else {
                    return;
                };
                self.allowed(&rebooting).await;
                if !restart.away.is_zero() {
                    self.host.send_replace(Life::Frozen);
                    tokio::time::sleep(restart.away).await;
                    self.host.send_replace(Life::Alive);
                }
                tokio::time::sleep(restart.unready).await;
                self.end(&rebooting, TaskPhase::Succeeded, "", json!({})).await;
            }
            Plan::Fail(reason, _) => self.end(&claimed, TaskPhase::Failed, reason, json!({})).await,
            Plan::Run | Plan::Reject | Plan::Ignore => {}
        }
    }

    /// Waits for the permission to restart the host.
    async fn allowed(&self, task: &Task) {
        let fields = format!("metadata.name={}", task.name());
        let tasks: Informer<Task> = Informer::start(self.client.clone(), Options::all().fields(fields));
        let mut changes = tasks.subscribe();
        while !tasks
            .by_uid(task.uid())
            .is_some_and(|task| task.spec.reboot_allowed)
        {
            changes.next().await;
        }
    }

    async fn end(&self, task: &Task, phase: TaskPhase, reason: &str, more: Value) {
        let mut status = json!({"phase": phase, "reason": reason, "finishedAt": MicroTime(self.now())});
        for (name, value) in more.as_object().unwrap() {
            status[name] = value.clone();
        }
        self.patch(task, status).await;
    }

    /// What is cut off writes nothing until it is back.
    async fn patch(&self, task: &Task, status: Value) -> Option<Task> {
        let mut life = self.life.clone();
        life.wait_for(|l| *l == Life::Alive).await.ok()?;
        let api: Api<Task> = Api::namespaced(self.client.clone(), task.namespace());
        let body = json!({"metadata": {"resourceVersion": task.metadata.resource_version}, "status": status});
        let patch = api
            .patch_status(task.name(), &PatchParams::default(), &Patch::Merge(&body))
            .await;
        match patch {
            Ok(task) => Some(task),
            // somebody wrote in between: what still has to be said is said to the newer object, as an agent does
            Err(kube::Error::Api(s)) if s.code == 409 && task.phase() != TaskPhase::Bound => {
                let newer = api.get_opt(task.name()).await.ok()??;
                let body = json!({"metadata": {"resourceVersion": newer.metadata.resource_version}, "status": body["status"]});
                api.patch_status(task.name(), &PatchParams::default(), &Patch::Merge(body))
                    .await
                    .ok()
            }
            Err(_) => None,
        }
    }
}

impl World {
    pub fn now(&self) -> Timestamp {
        use api::clock::Clock as _;
        self.clock.now()
    }
}
