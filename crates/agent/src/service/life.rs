//! The life of one Task on this host, from the first sight of it until nothing is left to tell.
//!
//! [`recovery::decide`] says what is due, by what the server and the journals say; this carries it out. Nothing here runs without the
//! node's Lease, and nothing is started without an acknowledged claim.

use super::{
    attend::{Attendance, Over},
    capacity::Share,
    claim::{Claimer, Outcome, Step, is_withdrawn},
    host::Host,
    lease,
    orders::{News, Orders, ended_unstarted, look_up, order},
    recovery::{self, Local, Lost, Next, Remote},
    report::{Reporter, Told, logs_complete},
    ship::{Shipper, Whose},
    work::{self, Found},
};
use crate::{
    journal::{self, AgentRecord, RunRecord, Writer},
    layout::{self, TaskDir},
    platform,
    runner::{self, Identity, Options, Recover, status_when_lost},
};
use api::{Node, Task, TaskStatus, placement::Labels, task::TaskPhase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use std::{io, sync::Arc, time::Duration};
use tokio::sync::watch;

/// How long the terminal status waits for the last log bytes.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How long the Node is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one try to end what a runner left behind takes.
const SWEEP: Duration = Duration::from_secs(30);

/// Why a Task could not be looked after. Tried again when the Task is seen next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// See there.
    #[error(transparent)]
    Layout(#[from] layout::Error),
    /// See there.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// See there.
    #[error(transparent)]
    Work(#[from] work::Error),
    /// The own Node cannot be read. A retry helps once the server answers.
    #[error("the Node cannot be read: {0}")]
    Node(kube::Error),
    /// A stored file cannot be used.
    #[error("{0}: {1}")]
    Stored(std::path::PathBuf, io::Error),
}

/// Looks after one Task.
pub struct Life {
    host: Arc<Host>,
    dir: TaskDir,
    news: watch::Receiver<News>,
    journal: Option<Writer<AgentRecord>>,
    local: Local,
    task: Arc<Task>,
}

impl Life {
    /// Lives it through.
    pub async fn live(host: Arc<Host>, dir: TaskDir, news: watch::Receiver<News>) -> Result<(), Error> {
        let seen = news.borrow().clone();
        let stored = || stored_task(&dir);
        let Some(task) = seen.task.clone().or_else(stored) else {
            // Cut off before it was stored, so never claimed.
            return Ok(dir.remove()?);
        };
        let mut life = Self {
            host,
            dir,
            news,
            journal: None,
            local: Local::default(),
            task,
        };
        life.load()?;
        if life.local.is_done() {
            life.keep();
            return Ok(());
        }
        let mut renewals = life.host.renewals.clone();
        lease::held(&mut renewals, life.host.settings.renew).await;
        let remote = if seen.task.is_some() && !seen.left {
            Some(life.task.clone())
        } else {
            life.look().await
        };
        life.go_on(remote).await
    }

    async fn go_on(&mut self, mut remote: Option<Arc<Task>>) -> Result<(), Error> {
        loop {
            if let Some(task) = &remote {
                self.task = task.clone();
            }
            let side = match &remote {
                None => Remote::Gone,
                Some(task) => Remote::of(task, &self.host.home.instance),
            };
            let next = recovery::decide(&side, &self.local, &self.host.home.boot_id);
            tracing::debug!(task = self.task.name(), ?next, "next");
            match next {
                Next::Claim => match self.claim().await? {
                    Claimed::Start(ready) => return self.start(ready).await,
                    Claimed::Ask(task) => remote = task,
                    Claimed::Leave => return Ok(()),
                },
                Next::Resume => {
                    let found = self.stored_work()?;
                    let ready = Ready {
                        labels: self.labels(&found).await?,
                        share: self.host.capacity.count(&found.spec),
                        found,
                    };
                    match self.attempt(Step::Resume).await? {
                        Outcome::Granted(task) => {
                            self.task = Arc::new(*task);
                            return self.start(ready).await;
                        }
                        Outcome::Late(task) => remote = Some(Arc::new(*task)),
                        Outcome::Lost(task) => remote = task.map(|task| Arc::new(*task)),
                    }
                }
                Next::Attach | Next::Stop => {
                    let found = self.stored_work()?;
                    let share = self.host.capacity.count(&found.spec);
                    let runner = self.living_runner().await?;
                    return match runner {
                        Some(runner) => self.attend(found, share, runner, None, true).await,
                        None => {
                            self.load()?; // it ended in between
                            continue;
                        }
                    };
                }
                Next::Report => {
                    let status = self.local.finished().unwrap_or_default();
                    return self.end(status, true).await;
                }
                Next::Lost(lost) => return self.lost(&lost).await,
                Next::JournalLost => {
                    self.see_the_tree_gone().await;
                    let status = self.ended(
                        TaskPhase::Unknown,
                        "JournalLost",
                        "claimed by an agent of this node whose journal is gone; what became of the work is not known",
                    );
                    return self.end(status, false).await;
                }
                Next::Nothing => return self.wind_up(remote.is_some()).await,
            }
        }
    }

    // -- before the start

    /// Stores and claims a Task that nobody has claimed.
    async fn claim(&mut self) -> Result<Claimed, Error> {
        if is_withdrawn(&self.task) {
            return Ok(Claimed::Leave); // a controller ends it
        }
        let found = match self.find_work().await {
            Ok(found) => found,
            Err(Error::Work(work::Error::Gone(job))) => {
                tracing::info!(
                    task = self.task.name(),
                    job,
                    "the Job is gone; the Task is left alone"
                );
                return Ok(Claimed::Leave);
            }
            Err(Error::Work(work::Error::Mismatch(mismatch))) => {
                self.refuse(TaskPhase::Failed, "WorkMismatch", &mismatch.to_string())
                    .await;
                return Ok(Claimed::Leave);
            }
            Err(error) => return Err(error),
        };
        let share = match self.make_room(&found) {
            Ok(share) => share,
            Err((reason, message)) => {
                self.refuse(TaskPhase::Rejected, reason, &message).await;
                return Ok(Claimed::Leave);
            }
        };
        let ready = Ready {
            labels: self.labels(&found).await?,
            share,
            found,
        };
        self.store(&ready.found)?;
        Ok(match self.attempt(Step::Claim).await? {
            Outcome::Granted(task) => {
                self.record(AgentRecord::Claimed {
                    boot_id: self.host.home.boot_id.clone(),
                })?;
                self.task = Arc::new(*task);
                if self.local.run.is_empty() && !self.local.alive {
                    Claimed::Start(ready)
                } else {
                    // Never on a server that kept what it acknowledged: it was restored to a time before the first claim.
                    Claimed::Ask(Some(self.task.clone()))
                }
            }
            Outcome::Late(task) => Claimed::Ask(Some(Arc::new(*task))),
            Outcome::Lost(task) => match task.map(|task| Arc::new(*task)) {
                Some(task) if task.phase().is_bound() => Claimed::Leave,
                other => Claimed::Ask(other),
            },
        })
    }

    async fn find_work(&self) -> Result<Found, Error> {
        if self.journal.is_some()
            && let Ok(found) = self.stored_work()
        {
            return Ok(found);
        }
        Ok(self.host.works.find(&self.task).await?)
    }

    /// The host's part in the decision where a Task runs.
    fn make_room(&self, found: &Found) -> Result<Share, (&'static str, String)> {
        let unknown = |feature: &&String| !super::facts::FEATURES.contains(&feature.as_str());
        if let Some(feature) = self.task.spec.requires.iter().find(unknown) {
            return Err((
                "FeatureMissing",
                format!("this agent has no feature {feature}; a newer one may"),
            ));
        }
        if let Some(lock) = self.task.spec.locks.first() {
            return Err((
                "FeatureMissing",
                format!(
                    "the Task holds lock {}, which this agent cannot verify yet",
                    lock.name
                ),
            ));
        }
        let root = self.host.home.data.path();
        if let Ok((_, free)) = platform::disk(root)
            && free < self.host.settings.min_free_disk
        {
            let floor = self.host.settings.min_free_disk;
            return Err((
                "DiskPressure",
                format!(
                    "{} has {free} bytes free, less than minFreeDisk ({floor})",
                    root.display()
                ),
            ));
        }
        self.host
            .capacity
            .take(&found.spec)
            .map_err(|what| ("NoRoom", what))
    }

    async fn refuse(&self, phase: TaskPhase, reason: &str, message: &str) {
        tracing::info!(task = self.task.name(), ?phase, reason, message, "not taken");
        self.claimer().refuse(&self.task, phase, reason, message).await;
    }

    fn store(&mut self, found: &Found) -> Result<(), Error> {
        if self.journal.is_some() {
            return Ok(());
        }
        self.dir.create()?;
        let task =
            serde_json::to_vec(&*self.task).map_err(|e| Error::Stored(self.dir.task_json(), e.into()))?;
        self.dir.write("task.json", &task)?;
        self.dir.write("job.json", found.json.as_bytes())?;
        self.load()?;
        self.record(AgentRecord::Stored {
            boot_id: self.host.home.boot_id.clone(),
        })
    }

    async fn attempt(&mut self, step: Step) -> Result<Outcome, Error> {
        let host = self.host.clone();
        let task = Box::new((*self.task).clone());
        let claimer = Claimer {
            tasks: Api::namespaced(host.client.clone(), task.namespace()),
            home: &host.home,
            server: &host.server,
            clock: &*host.clock,
        };
        claimer
            .attempt(step, task, |sent_at| {
                self.record(AgentRecord::ClaimSent {
                    nonce: host.home.nonce.clone(),
                    sent_at,
                })
            })
            .await
    }

    fn claimer(&self) -> Claimer<'_> {
        Claimer {
            tasks: Api::namespaced(self.host.client.clone(), self.task.namespace()),
            home: &self.host.home,
            server: &self.host.server,
            clock: &*self.host.clock,
        }
    }

    // -- running

    async fn start(&mut self, ready: Ready) -> Result<(), Error> {
        let Ready { found, share, labels } = ready;
        let grace = found.spec.termination_grace_period_seconds;
        if let Some(stop) = order(Some(&self.task), grace) {
            let (phase, reason, message) = ended_unstarted(&stop);
            let status = self.ended(phase, &reason, &message);
            return self.end(status, false).await;
        }
        match self.spawn(None, labels) {
            Ok(spawned) => {
                self.record(AgentRecord::RunnerStarted {
                    runner: spawned.identity.clone(),
                })?;
                self.attend(found, share, spawned.identity, Some(spawned.ended), false)
                    .await
            }
            Err(error) => {
                let message = format!(
                    "{} cannot be started: {error}",
                    self.host.settings.program.display()
                );
                let status = self.ended(TaskPhase::Failed, Lost::RUNNER.reason, &message);
                self.end(status, false).await
            }
        }
    }

    fn spawn(&self, recover: Option<Recover>, node_labels: Labels) -> io::Result<runner::Spawned> {
        let options = Options {
            max_log_bytes: self.host.settings.max_log_bytes,
            renewed_at: self.host.renewals.borrow().sent_at,
            recover,
            node_labels,
            control_groups: true,
        };
        runner::spawn(&self.host.settings.program, &self.dir, &options)
    }

    /// The Node's labels, for work whose expressions may ask for them.
    async fn labels(&self, found: &Found) -> Result<Labels, Error> {
        if !found.json.contains("label") {
            return Ok(Labels::new());
        }
        let nodes: Api<Node> = Api::all(self.host.client.clone());
        let read = tokio::time::timeout(PATIENCE, nodes.get(&self.host.node)).await;
        let node = read.unwrap_or_else(|_| Err(kube::Error::Service("no answer in time".into())));
        Ok(node.map_err(Error::Node)?.metadata.labels.unwrap_or_default())
    }

    /// Stays with a runner until it has ended, then sees the Task to its end.
    async fn attend(
        &mut self,
        found: Found,
        share: Share,
        mut runner: Identity,
        mut exited: Option<tokio::task::JoinHandle<io::Result<std::process::ExitStatus>>>,
        resumed: bool,
    ) -> Result<(), Error> {
        let grace = found.spec.termination_grace_period_seconds;
        let mut orders = Orders::follow(self.host.clone(), &self.task, self.news.clone(), grace);
        let mut voice = self.voice(resumed);
        let seconds = self.task.spec.fence_seconds.and_then(|s| u64::try_from(s).ok());
        loop {
            let over = Attendance {
                host: &self.host,
                dir: &self.dir,
                namespace: self.task.namespace(),
                fence: seconds.map(Duration::from_secs),
                local: &mut self.local,
                orders: &mut orders,
                reporter: &voice.reporter,
                shipper: &voice.shipper,
            }
            .run(&runner, exited.take())
            .await;
            self.load()?;
            if self.local.alive {
                // Not ours was the one that took the task, but one an earlier agent had started.
                let Some(other) = self.living_runner().await? else {
                    continue;
                };
                runner = other;
                continue;
            }
            if let Some(status) = self.local.finished() {
                drop(share);
                return self.tell(status, voice).await;
            }
            self.see_the_tree_gone().await;
            if over == Over::Fenced {
                let message =
                    "the node could not renew its Lease for fenceSeconds and the runner did not answer";
                let mut status = status_when_lost(&self.local.run, "Fenced", message);
                status.finished_at = Some(self.now());
                return self.tell(status, voice).await;
            }
            runner::forbid(&self.dir).map_err(|e| Error::Stored(self.dir.path(), e))?;
            let ended = orders.stop.borrow().as_ref().is_some_and(|stop| stop.force);
            match self.recover(&found, &Lost::RUNNER, ended).await? {
                Some(spawned) => {
                    runner = spawned.identity;
                    exited = Some(spawned.ended);
                }
                None => {
                    drop(share);
                    let status = self.lost_status(&Lost::RUNNER);
                    return self
                        .tell(status, std::mem::replace(&mut voice, self.voice(true)))
                        .await;
                }
            }
        }
    }

    // -- after a runner's death

    async fn lost(&mut self, lost: &Lost) -> Result<(), Error> {
        self.see_the_tree_gone().await;
        if self.journal.is_some() {
            runner::forbid(&self.dir).map_err(|e| Error::Stored(self.dir.path(), e))?;
            let found = self.stored_work()?;
            if let Some(spawned) = self.recover(&found, lost, false).await? {
                let share = self.host.capacity.count(&found.spec);
                return self
                    .attend(found, share, spawned.identity, Some(spawned.ended), true)
                    .await;
            }
        }
        let status = self.lost_status(lost);
        self.end(status, true).await
    }

    /// Starts a runner for rollback and finally, where they are due after a run that was lost.
    async fn recover(
        &mut self,
        found: &Found,
        lost: &Lost,
        ended: bool,
    ) -> Result<Option<runner::Spawned>, Error> {
        let tried = |record: &RunRecord| matches!(record, RunRecord::Recovering { .. });
        let before = self.local.run.iter().any(|entry| tried(&entry.record));
        let started = runner::status_from_journal(&self.local.run).started_steps;
        let due = !found.spec.finally.is_empty() || started && !found.spec.rollback.is_empty();
        if ended || before || !due || !runner::has_begun(&self.local.run) {
            return Ok(None);
        }
        let recover = Recover {
            reason: lost.reason.into(),
            message: lost.message.into(),
        };
        let labels = self.labels(found).await?;
        match self.spawn(Some(recover), labels) {
            Ok(spawned) => {
                self.record(AgentRecord::RunnerStarted {
                    runner: spawned.identity.clone(),
                })?;
                Ok(Some(spawned))
            }
            Err(error) => {
                tracing::error!(task = self.task.name(), %error, "rollback and finally cannot be run");
                Ok(None)
            }
        }
    }

    fn lost_status(&self, lost: &Lost) -> TaskStatus {
        let mut status = status_when_lost(&self.local.run, lost.reason, lost.message);
        status.started_steps |= lost.assume_started;
        status.finished_at.get_or_insert_with(|| self.now());
        status
    }

    /// Ends what is left of the work and returns only when nothing is.
    async fn see_the_tree_gone(&self) {
        loop {
            let left = platform::end_survivors(self.dir.uid(), self.local.containment(), SWEEP).await;
            if left.is_empty() {
                return;
            }
            tracing::error!(
                task = self.task.name(),
                processes = ?left,
                "processes of a lost run do not end; its end is not told before they do"
            );
        }
    }

    // -- the end

    /// Tells an end and ships the logs.
    async fn end(&mut self, status: TaskStatus, resumed: bool) -> Result<(), Error> {
        let voice = self.voice(resumed);
        self.tell(status, voice).await
    }

    async fn tell(&mut self, mut status: TaskStatus, mut voice: Voice) -> Result<(), Error> {
        self.measure_logs(&mut status);
        let shipped = tokio::time::timeout(LAST_WORDS, voice.shipper.finish())
            .await
            .is_ok();
        if shipped {
            self.record(AgentRecord::Shipped)?;
        }
        status.logs_pending = !shipped;
        let phase = status.phase;
        tracing::info!(task = self.task.name(), ?phase, reason = status.reason, "ended");
        match voice.reporter.end(status).await {
            Told::Gone => self.record(AgentRecord::Dropped)?,
            told => {
                self.record(AgentRecord::Reported { phase })?;
                if !shipped {
                    voice.shipper.finish().await;
                    if told == Told::Acknowledged {
                        logs_complete(&self.host, &self.task).await;
                    }
                    self.record(AgentRecord::Shipped)?;
                }
            }
        }
        self.keep();
        Ok(())
    }

    /// The server has ended the Task, or does not know it: tells a result that came too late, ships what it takes.
    async fn wind_up(&mut self, exists: bool) -> Result<(), Error> {
        if self.journal.is_none() {
            return Ok(());
        }
        if !exists {
            self.see_the_tree_gone().await;
            self.record(AgentRecord::Dropped)?;
        } else if self.local.is_reported() {
            let mut voice = self.voice(true);
            voice.shipper.finish().await;
            logs_complete(&self.host, &self.task).await;
            self.record(AgentRecord::Shipped)?;
        } else if let Some(status) = self.local.finished() {
            return self.end(status, true).await;
        } else {
            self.see_the_tree_gone().await;
            self.record(AgentRecord::Dropped)?;
        }
        self.keep();
        Ok(())
    }

    /// The size of a log is its end for whoever follows it; a runner that was killed could not tell it.
    fn measure_logs(&self, status: &mut TaskStatus) {
        let logs = self.dir.step_logs().unwrap_or_default();
        for (name, path) in logs {
            let step = status
                .steps
                .iter_mut()
                .find(|s| s.name == name && s.log_bytes.is_none());
            if let (Some(step), Ok(meta)) = (step, path.metadata()) {
                step.log_bytes = i64::try_from(meta.len()).ok();
            }
        }
    }

    fn ended(&self, phase: TaskPhase, reason: &str, message: &str) -> TaskStatus {
        TaskStatus {
            phase,
            reason: reason.into(),
            message: message.into(),
            finished_at: Some(self.now()),
            ..TaskStatus::default()
        }
    }

    fn keep(&self) {
        if self.journal.is_some() {
            let last = self.local.agent.last().map(|entry| entry.at.0);
            self.host
                .kept
                .add(&self.dir, last.unwrap_or_else(|| self.host.clock.now()));
        }
    }

    // -- small things

    fn voice(&self, resumed: bool) -> Voice {
        let whose = Whose {
            namespace: self.task.namespace().to_owned(),
            name: self.task.name().to_owned(),
            uid: self.task.uid().to_owned(),
        };
        Voice {
            reporter: Reporter::start(self.host.clone(), &self.task),
            shipper: Shipper::start(self.host.clone(), self.dir.clone(), whose, resumed),
        }
    }

    fn now(&self) -> MicroTime {
        MicroTime(self.host.clock.now())
    }

    async fn look(&self) -> Option<Arc<Task>> {
        let (namespace, name) = (self.task.namespace(), self.task.name());
        let found = look_up(&self.host, namespace, name, self.dir.uid()).await;
        found.map(Arc::new)
    }

    /// Reads the journals, where there is a folder.
    fn load(&mut self) -> Result<(), Error> {
        if !self.dir.task_json().exists() {
            return Ok(());
        }
        let (journal, agent) = Writer::open(&self.dir.agent_journal(), self.host.clock.clone())?;
        self.journal = Some(journal);
        self.local.agent = agent;
        self.local.run = journal::read(&self.dir.run_journal())?;
        self.local.alive = self.local.runner().is_some_and(Identity::is_alive) || is_locked(&self.dir)?;
        Ok(())
    }

    /// Which runner holds the folder; `None` if it ended meanwhile. One that has just started may not have written who it is.
    async fn living_runner(&mut self) -> Result<Option<Identity>, Error> {
        while self.local.alive {
            if let Some(runner) = self.local.runner().filter(|runner| runner.is_alive()) {
                return Ok(Some(runner.clone()));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.load()?;
        }
        Ok(None)
    }

    fn stored_work(&self) -> Result<Found, Error> {
        let path = self.dir.job_json();
        let json = std::fs::read_to_string(&path).map_err(|e| Error::Stored(path, e))?;
        let found = Found::read(&json, &self.task.spec.job_ref.work_hash);
        Ok(found.map_err(work::Error::from)?)
    }

    fn record(&mut self, record: AgentRecord) -> Result<(), Error> {
        if let Some(journal) = &mut self.journal {
            journal.append(&record)?;
        }
        Ok(())
    }
}

/// All that a start needs beside the right to it.
struct Ready {
    found: Found,
    share: Share,
    labels: Labels,
}

/// What came of a claim.
enum Claimed {
    /// It may be started now.
    Start(Ready),
    /// Look at this state of the Task.
    Ask(Option<Arc<Task>>),
    /// Nothing to do with it.
    Leave,
}

/// Who tells of a Task.
struct Voice {
    reporter: Reporter,
    shipper: Shipper,
}

/// The Task as stored in its folder, with the uid of the folder.
fn stored_task(dir: &TaskDir) -> Option<Arc<Task>> {
    let bytes = std::fs::read(dir.task_json()).ok()?;
    let task: Task = serde_json::from_slice(&bytes).ok()?;
    (task.uid() == dir.uid()).then(|| Arc::new(task))
}

/// Whether a process holds the folder's lock: a runner that lives.
fn is_locked(dir: &TaskDir) -> Result<bool, Error> {
    let held = platform::lock(&dir.lock()).map_err(|e| Error::Stored(dir.lock(), e))?;
    Ok(held.is_none())
}
