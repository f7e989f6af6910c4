//! A whole control plane in one process, on simulated time.

use crate::agent::{Agent, Plan};
use api::{
    Job, JobSpec, JobStatus, Node, Queue, QueueSpec, Target, Task, clock::Clock, identity::Identity,
    placement::LabelSelector, step::Step, target::Access, task::TaskPhase,
};
use futures::StreamExt;
use informer::Shared;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use store::{Memory, Store};
use tokio::{task::JoinHandle, time::Instant};

pub const NS: &str = "ops";

/// A clock that goes with Tokio's simulated time.
pub struct TokioClock {
    start: Instant,
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap() + self.start.elapsed()
    }
}

pub struct World {
    pub server: apiserver::Server,
    pub store: Arc<Memory>,
    pub client: Client,
    pub shared: Shared,
    pub clock: Arc<TokioClock>,
    pub agents: Vec<Agent>,
    parts: Vec<JoinHandle<()>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.parts.iter().for_each(JoinHandle::abort);
    }
}

pub fn options() -> controllers::Options {
    controllers::Options::default()
}

impl World {
    /// A server, one scheduler, the controllers, and as many agents (`n0`, `n1`, …) that do as the plan says.
    pub async fn start(agents: usize, plan: impl Fn(&Task) -> Plan + Send + Sync + 'static) -> Self {
        Self::with(agents, options(), 1, plan).await
    }

    pub async fn with(
        agents: usize,
        options: controllers::Options,
        schedulers: u64,
        plan: impl Fn(&Task) -> Plan + Send + Sync + 'static,
    ) -> Self {
        let clock = Arc::new(TokioClock {
            start: Instant::now(),
        });
        let store = Arc::new(Memory::new());
        let mut kinds = machinery::core_kinds::all();
        kinds.push(machinery::typed::kind::<Job>());
        kinds.push(machinery::typed::kind::<Task>());
        kinds.push(machinery::typed::kind::<Node>());
        kinds.push(machinery::typed::kind::<Queue>());
        kinds.push(machinery::typed::kind::<Target>());
        let server_options = apiserver::Options {
            clock: clock.clone(),
            ..Default::default()
        };
        let server = apiserver::Server::start(store.clone(), kinds, server_options)
            .await
            .unwrap();
        let client = server.client(Identity::part("test"));
        let shared = Shared::start(&client);
        let mut world = Self {
            server,
            store,
            client,
            shared,
            clock,
            agents: Vec::new(),
            parts: Vec::new(),
        };
        world
            .create(&Namespace {
                metadata: kube::core::ObjectMeta {
                    name: Some(NS.into()),
                    ..Default::default()
                },
                ..Default::default()
            })
            .await;
        let weight = QueueSpec {
            weight: 1,
            ..Default::default()
        };
        world.create(&Queue::new("default", weight)).await;
        let mut all = Target::new("all", Default::default());
        all.spec.selector = Some(LabelSelector::default());
        all.spec.access = vec![Access::default()];
        world.create(&all).await;
        let plan: Arc<dyn Fn(&Task) -> Plan + Send + Sync> = Arc::new(plan);
        for n in 0..agents {
            let agent = Agent::join(&world, &format!("n{n}"), plan.clone()).await;
            world.agents.push(agent);
        }
        world.shared.synced().await;
        for seed in 0..schedulers {
            world.schedule(seed);
        }
        world.control(options);
        world
    }

    /// One more scheduler.
    pub fn schedule(&mut self, seed: u64) {
        let options = scheduler::Options {
            seed,
            ..Default::default()
        };
        let client = self.server.client(Identity::part("scheduler"));
        let run = scheduler::run(
            client,
            self.shared.clone(),
            options,
            self.clock.clone(),
            std::future::pending(),
        );
        self.parts.push(tokio::spawn(run));
    }

    /// The controllers, or once more the controllers.
    pub fn control(&mut self, options: controllers::Options) {
        let client = self.server.client(Identity::part("controllers"));
        let run = controllers::run(
            client,
            self.shared.clone(),
            options,
            self.clock.clone(),
            std::future::pending(),
        );
        self.parts.push(tokio::spawn(run));
    }

    /// Ends scheduler and controllers at once, as a crash would.
    pub fn crash(&mut self) {
        self.parts.drain(..).for_each(|p| p.abort());
    }

    /// Starts scheduler and controllers anew, with watches of their own.
    pub async fn restart(&mut self) {
        self.shared = Shared::start(&self.client);
        self.schedule(7);
        self.control(options());
    }

    async fn create<K>(&self, object: &K)
    where
        K: kube::Resource<DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        api.create(&PostParams::default(), object).await.unwrap();
    }

    pub fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), NS)
    }

    pub fn tasks(&self) -> Api<Task> {
        Api::namespaced(self.client.clone(), NS)
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Makes a Job of one step.
    pub async fn job(&self, name: &str, edit: impl FnOnce(&mut JobSpec)) -> Job {
        let mut spec = JobSpec {
            queue_name: "default".into(),
            task_timeout_seconds: 86400,
            termination_grace_period_seconds: 30,
            steps: vec![Step {
                name: "run".into(),
                script: Some("true".into()),
                ..Default::default()
            }],
            ..Default::default()
        };
        edit(&mut spec);
        let job = Job::new(name, spec);
        self.jobs().create(&PostParams::default(), &job).await.unwrap()
    }

    pub async fn edit_job(&self, name: &str, patch: Value) {
        self.jobs()
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    pub async fn status(&self, name: &str) -> JobStatus {
        self.jobs().get(name).await.unwrap().status.unwrap_or_default()
    }

    pub async fn all_tasks(&self) -> Vec<Task> {
        self.tasks().list(&ListParams::default()).await.unwrap().items
    }

    /// Waits until a Job's status is as wanted; panics with it after a day of simulated time.
    pub async fn until(&self, name: &str, wanted: impl Fn(&JobStatus) -> bool) -> JobStatus {
        let mut changes = self.shared.jobs.subscribe();
        let end = Instant::now() + Duration::from_secs(3 * 86400);
        loop {
            if let Some(status) = self.shared.jobs.get(NS, name).and_then(|j| j.status.clone())
                && wanted(&status)
            {
                add_up(&status);
                return status;
            }
            if tokio::time::timeout_at(end, changes.next()).await.is_err() {
                let tasks: Vec<_> = self.all_tasks().await.iter().map(describe).collect();
                panic!("{name} is {:#?}\n{tasks:#?}", self.status(name).await);
            }
        }
    }

    pub async fn finished(&self, name: &str) -> JobStatus {
        self.until(name, |s| s.phase.is_terminal()).await
    }

    /// Waits until a Task is as wanted.
    pub async fn until_task(&self, wanted: impl Fn(&Task) -> bool) -> Task {
        let mut changes = self.shared.tasks.subscribe();
        let end = Instant::now() + Duration::from_secs(3 * 86400);
        loop {
            if let Some(task) = self.shared.tasks.all().iter().find(|t| wanted(t)) {
                return (**task).clone();
            }
            if tokio::time::timeout_at(end, changes.next()).await.is_err() {
                let tasks: Vec<_> = self.all_tasks().await.iter().map(describe).collect();
                panic!("no such Task: {tasks:#?}");
            }
        }
    }

    /// Waits until something is gone.
    pub async fn gone(&self, what: &str, there: impl AsyncFn() -> bool) {
        let end = Instant::now() + Duration::from_secs(3600);
        while there().await {
            assert!(Instant::now() < end, "{what} is still there");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn delete_job(&self, name: &str, params: &DeleteParams) {
        self.jobs().delete(name, params).await.unwrap();
    }

    /// `reason object` of all Events.
    pub async fn events(&self) -> Vec<String> {
        let api: Api<Event> = Api::all(self.client.clone());
        let list = api.list(&ListParams::default()).await.unwrap();
        let mut told: Vec<_> = list
            .items
            .iter()
            .map(|e| {
                format!(
                    "{} {}",
                    e.reason.as_deref().unwrap(),
                    e.involved_object.name.as_deref().unwrap()
                )
            })
            .collect();
        told.sort();
        told
    }

    /// The revision of the last write.
    pub async fn head(&self) -> u64 {
        self.store.head().await.unwrap().revision
    }

    /// The plurals of all objects written after a revision, in order.
    pub async fn written(&self, after: u64) -> Vec<String> {
        let mut written = Vec::new();
        let head = self.head().await;
        let mut watch = self.store.watch("", after);
        while (written.len() as u64) < head - after {
            let batch = watch.next().await.unwrap().unwrap();
            written.extend(
                batch
                    .events
                    .iter()
                    .map(|e| e.key.split('/').nth(1).unwrap().to_owned()),
            );
        }
        written
    }
}

pub fn add_up(s: &JobStatus) {
    let sum = s.pending + s.active + s.succeeded + s.failed + s.unknown + s.cancelled + s.skipped;
    assert_eq!(s.desired, sum, "{s:?}");
}

pub fn describe(task: &Task) -> String {
    let status = task.status.clone().unwrap_or_default();
    format!(
        "{} on {}: {:?} {} stop={:?} deleting={}",
        task.name(),
        task.spec.node_name,
        status.phase,
        status.reason,
        task.spec.stop.as_ref().map(|s| s.reason.clone()),
        task.metadata.deletion_timestamp.is_some()
    )
}

pub fn cancel() -> Value {
    json!({"spec": {"cancel": {"reason": "not needed"}}})
}

pub fn count(tasks: &[Task], phase: TaskPhase) -> usize {
    tasks.iter().filter(|t| t.phase() == phase).count()
}
