//! The life of one Task on this host, from the first sight of it until nothing is left to tell.
//!
//! [`recovery::decide`] says what is due, by what the server and the journals say; this carries it out. Nothing here runs without the
//! node's Lease, and nothing is started without an acknowledged claim.

mod claiming;
mod ending;
mod rebooting;
mod running;

use super::{
    claim::{Outcome, Step},
    host::Host,
    lease,
    orders::{News, Orders, look_up},
    recovery::{self, Local, Next, Remote},
    report::Reporter,
    ship::Shipper,
    work::{self, Found},
};
use crate::{
    journal::{self, AgentRecord, Writer},
    layout::{self, TaskDir},
    platform,
    runner::Identity,
};
use api::{Task, task::TaskPhase};
use claiming::{Claimed, Ready};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use std::{io, sync::Arc, time::Duration};
use tokio::sync::watch;

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
        let mut confirmed = false;
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
            let begins = matches!(next, Next::Claim | Next::Resume);
            let goes_down = self.host.departure.has_begun() && (begins || next == Next::Return);
            if goes_down || begins && self.host.home.data.is_draining() {
                return Ok(()); // looked at again with the next list of Tasks
            }
            match next {
                // What the watch told may be old, and the folder gone because all was told long ago.
                Next::Lost(_) | Next::JournalLost if self.journal.is_none() && !confirmed => {
                    confirmed = true;
                    remote = self.look().await;
                }
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
                Next::Restart => {
                    let found = self.stored_work()?;
                    let _share = self.host.capacity.count(&found.spec);
                    let grace = found.spec.termination_grace_period_seconds;
                    let orders = Orders::follow(self.host.clone(), &self.task, self.news.clone(), grace);
                    let voice = self.voice(true);
                    return self.restart(&found, voice, orders).await;
                }
                Next::Return => match self.come_back().await? {
                    Some(back) => remote = back,
                    None => return Ok(()),
                },
                Next::Lost(lost) => return self.lost(&lost, false).await,
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
        // Before a claim there is no runner, and a look at the lock could get into the way of the one to come.
        self.local.alive = self.local.runner().is_some_and(Identity::is_alive)
            || self.local.may_have_run() && is_locked(&self.dir)?;
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
