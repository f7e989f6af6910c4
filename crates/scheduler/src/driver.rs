//! The scheduler against the API: changes go into the core, its decisions come out as creates, pipelined.

use crate::{
    core::{Core, Decision, Event, Placement, Stopping},
    create::{self, Outcome, Works},
    members, stop,
};
use api::{Job, clock::Clock, job::Waiting};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use informer::{Change, Changes, Shared};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
};
use serde_json::json;
use std::{collections::HashSet, future::Future, sync::Arc, time::Duration};

/// How the scheduler goes about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many creates may be under way at once.
    pub creates_in_flight: usize,
    /// How many writes of reasons may be under way at once.
    pub tells_in_flight: usize,
    /// The fence of Rerun work: how long its runner goes on when the agent cannot renew its Lease.
    pub fence_seconds: i64,
    /// Decides where searches for a node begin.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            creates_in_flight: 64,
            tells_in_flight: 4,
            fence_seconds: 300,
            seed: 0,
        }
    }
}

/// How long to wait before a snapshot that could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Something that was under way has ended.
enum Done {
    Create(Box<Placement>, Outcome),
    Stop(Box<Stopping>, Result<(), kube::Error>),
    Tell(Arc<Job>, Result<(), kube::Error>),
    Members(Arc<Job>, Result<Vec<Arc<str>>, members::Error>),
}

/// Schedules until `shutdown`. What is under way then is dropped: a Task that was made all the same is found by the next scheduler.
pub async fn run(
    client: Client,
    shared: Shared,
    options: Options,
    clock: Arc<dyn Clock>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let work = async {
        shared.synced().await;
        Driver::new(client, &shared, options, clock).work().await;
    };
    tokio::select! {
        () = shutdown => {}
        () = work => {}
    }
}

struct Driver {
    client: Client,
    core: Core,
    options: Options,
    clock: Arc<dyn Clock>,
    feeds: Feeds,
    works: Works,
    /// Uids of PerNode Jobs whose members are known or being read.
    chosen: HashSet<String>,
    under_way: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Creates and stops under way.
    creates: usize,
    tells: usize,
}

struct Feeds {
    namespaces: Changes<Namespace>,
    queues: Changes<api::Queue>,
    targets: Changes<api::Target>,
    nodes: Changes<api::Node>,
    jobs: Changes<Job>,
    tasks: Changes<api::Task>,
}

impl Driver {
    fn new(client: Client, shared: &Shared, options: Options, clock: Arc<dyn Clock>) -> Self {
        Self {
            client,
            core: Core::new(options.seed),
            clock,
            feeds: Feeds {
                namespaces: shared.namespaces.subscribe(),
                queues: shared.queues.subscribe(),
                targets: shared.targets.subscribe(),
                nodes: shared.nodes.subscribe(),
                jobs: shared.jobs.subscribe(),
                tasks: shared.tasks.subscribe(),
            },
            works: Works::new(options.fence_seconds),
            chosen: HashSet::new(),
            under_way: FuturesUnordered::new(),
            creates: 0,
            tells: 0,
            options,
        }
    }

    async fn work(&mut self) {
        self.drain(); // all there is, before the first decision
        loop {
            self.decide();
            self.explain();
            let pause = self.pause();
            tokio::select! {
                Some(done) = self.under_way.next() => self.done(done),
                // jobs before tasks: a Task that vanished with its finished Job is no loss
                batch = self.feeds.jobs.next() => batch.into_iter().for_each(|c| self.job(c)),
                batch = self.feeds.tasks.next() => {
                    self.feeds.jobs.drain().into_iter().for_each(|c| self.job(c));
                    batch.into_iter().for_each(|c| self.apply(task(c)));
                }
                batch = self.feeds.nodes.next() => batch.into_iter().for_each(|c| self.apply(node(c))),
                batch = self.feeds.queues.next() => batch.into_iter().for_each(|c| self.apply(queue(c))),
                batch = self.feeds.targets.next() => batch.into_iter().for_each(|c| self.apply(target(c))),
                batch = self.feeds.namespaces.next() => batch.into_iter().for_each(|c| self.apply(namespace(c))),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn drain(&mut self) {
        self.feeds
            .namespaces
            .drain()
            .into_iter()
            .for_each(|c| self.apply(namespace(c)));
        self.feeds
            .queues
            .drain()
            .into_iter()
            .for_each(|c| self.apply(queue(c)));
        self.feeds
            .targets
            .drain()
            .into_iter()
            .for_each(|c| self.apply(target(c)));
        self.feeds
            .nodes
            .drain()
            .into_iter()
            .for_each(|c| self.apply(node(c)));
        self.feeds.jobs.drain().into_iter().for_each(|c| self.job(c));
        self.feeds
            .tasks
            .drain()
            .into_iter()
            .for_each(|c| self.apply(task(c)));
    }

    fn apply(&mut self, event: Event) {
        self.core.apply(event, self.clock.now());
    }

    fn job(&mut self, change: Change<Job>) {
        match change {
            Change::Deleted(job) => self.forget(job.uid()),
            Change::Applied(job) => {
                if job.phase().is_terminal() {
                    self.forget(job.uid());
                    return;
                }
                self.apply(Event::Job(job.clone()));
                let snapshot = job.status.as_ref().is_some_and(|s| s.snapshot.is_some());
                if snapshot && self.chosen.insert(job.uid().to_owned()) {
                    self.read_members(job, Duration::ZERO);
                }
            }
        }
    }

    fn forget(&mut self, uid: &str) {
        self.chosen.remove(uid);
        self.works.forget(uid);
        self.apply(Event::JobGone(uid.to_owned()));
    }

    fn read_members(&mut self, job: Arc<Job>, wait: Duration) {
        let client = self.client.clone();
        self.under_way.push(
            async move {
                tokio::time::sleep(wait).await;
                let members = members::read(&client, &job).await;
                Done::Members(job, members)
            }
            .boxed(),
        );
    }

    fn decide(&mut self) {
        while self.creates < self.options.creates_in_flight {
            match self.core.next(self.clock.now()) {
                Some(Decision::Place(placement)) => self.create(Box::new(placement)),
                Some(Decision::Stop(stopping)) => self.stop(Box::new(stopping)),
                None => break,
            }
        }
    }

    fn create(&mut self, placement: Box<Placement>) {
        let task = self.works.task(&placement);
        let client = self.client.clone();
        self.creates += 1;
        self.under_way.push(
            async move {
                let outcome = match task {
                    Ok(task) => create::create(&client, task).await,
                    Err(refusal) => refusal,
                };
                Done::Create(placement, outcome)
            }
            .boxed(),
        );
    }

    fn stop(&mut self, stopping: Box<Stopping>) {
        let (client, now) = (self.client.clone(), self.clock.now());
        self.creates += 1;
        self.under_way.push(
            async move {
                let stopped = stop::stop(&client, &stopping, now).await;
                Done::Stop(stopping, stopped)
            }
            .boxed(),
        );
    }

    fn explain(&mut self) {
        let free = self.options.tells_in_flight.saturating_sub(self.tells);
        if free == 0 {
            return;
        }
        for (job, waiting) in self.core.explanations(free, self.clock.now()) {
            let client = self.client.clone();
            self.tells += 1;
            self.under_way.push(
                async move {
                    let told = tell(&client, &job, &waiting).await;
                    Done::Tell(job, told)
                }
                .boxed(),
            );
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Create(placement, outcome) => {
                self.creates -= 1;
                match outcome {
                    Outcome::Made => {}
                    Outcome::There(task) => self.apply(Event::Task(task)),
                    Outcome::Refused { message, wait } => {
                        tracing::warn!(
                            job = placement.job.name(), task = placement.name(), node = %placement.node, message, "Task not made"
                        );
                        self.apply(Event::Refused {
                            placement,
                            message,
                            wait,
                        });
                    }
                }
            }
            Done::Stop(stopping, stopped) => {
                self.creates -= 1;
                if let Err(error) = stopped {
                    tracing::warn!(task = stopping.task.name(), %error, "Task not stopped");
                    self.apply(Event::NotStopped(stopping.task));
                }
            }
            Done::Tell(job, told) => {
                self.tells -= 1;
                match told {
                    Ok(()) => {}
                    Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {} // another Job by now
                    Err(error) => {
                        tracing::warn!(job = job.name(), %error, "reasons not written");
                        self.core.untold(job.uid());
                    }
                }
            }
            Done::Members(job, members) => match members {
                Ok(nodes) => self.apply(Event::Members {
                    job: job.uid().to_owned(),
                    nodes,
                }),
                Err(error) if error.may_pass() && self.chosen.contains(job.uid()) => {
                    tracing::warn!(job = job.name(), %error, "snapshot not read");
                    self.read_members(job, READ_AGAIN);
                }
                Err(error) => tracing::error!(job = job.name(), %error, "snapshot cannot be read"),
            },
        }
    }

    /// How long there is nothing to do unless something happens.
    fn pause(&self) -> Duration {
        const LONG: Duration = Duration::from_secs(3600);
        let decide = (self.creates < self.options.creates_in_flight)
            .then(|| self.core.wake_at())
            .flatten();
        let explain = (self.tells < self.options.tells_in_flight)
            .then(|| self.core.explain_at())
            .flatten();
        let now = self.clock.now();
        let until = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO);
        decide
            .into_iter()
            .chain(explain)
            .map(until)
            .min()
            .unwrap_or(LONG)
            .clamp(Duration::from_millis(1), LONG)
    }
}

/// Writes why a Job's work waits; touches nothing else of its status.
async fn tell(client: &Client, job: &Job, waiting: &[Waiting]) -> Result<(), kube::Error> {
    let api: Api<Job> = Api::namespaced(client.clone(), job.namespace());
    let patch = json!({
        "metadata": {"uid": job.uid()},
        "status": {"waiting": waiting},
    });
    api.patch_status(job.name(), &PatchParams::default(), &Patch::Merge(&patch))
        .await?;
    Ok(())
}

fn name_of(object: &impl Resource) -> String {
    object.meta().name.clone().unwrap_or_default()
}

fn task(change: Change<api::Task>) -> Event {
    match change {
        Change::Applied(task) => Event::Task(task),
        Change::Deleted(task) => Event::TaskGone(task),
    }
}

fn node(change: Change<api::Node>) -> Event {
    match change {
        Change::Applied(node) => Event::Node(node),
        Change::Deleted(node) => Event::NodeGone(name_of(&*node)),
    }
}

fn queue(change: Change<api::Queue>) -> Event {
    match change {
        Change::Applied(queue) => Event::Queue(queue),
        Change::Deleted(queue) => Event::QueueGone(name_of(&*queue)),
    }
}

fn target(change: Change<api::Target>) -> Event {
    match change {
        Change::Applied(target) => Event::Target(target),
        Change::Deleted(target) => Event::TargetGone(name_of(&*target)),
    }
}

fn namespace(change: Change<Namespace>) -> Event {
    match change {
        Change::Applied(namespace) => {
            let labels = namespace.metadata.labels.clone().unwrap_or_default();
            Event::Namespace(name_of(&*namespace), labels)
        }
        Change::Deleted(namespace) => Event::NamespaceGone(name_of(&*namespace)),
    }
}
