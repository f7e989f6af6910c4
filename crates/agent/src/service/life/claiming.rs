//! Before the start: work found, room made, the Task stored and claimed.

use super::{Error, Life};
use crate::{
    journal::AgentRecord,
    platform,
    service::{
        capacity::Share,
        claim::{Claimer, Outcome, Step, is_claimable},
        facts,
        work::{self, Found},
    },
};
use api::{Node, Task, placement::Labels, task::TaskPhase};
use kube::Api;
use std::{sync::Arc, time::Duration};

/// How long the Node is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// All that a start needs beside the right to it.
pub(super) struct Ready {
    pub found: Found,
    pub share: Share,
    pub labels: Labels,
}

/// What came of a claim.
pub(super) enum Claimed {
    /// It may be started now.
    Start(Ready),
    /// Look at this state of the Task.
    Ask(Option<Arc<Task>>),
    /// Nothing to do with it.
    Leave,
}

impl Life {
    /// Stores and claims a Task that nobody has claimed.
    pub(super) async fn claim(&mut self) -> Result<Claimed, Error> {
        if !is_claimable(&self.task) {
            return Ok(Claimed::Leave); // a controller ends it, or says when it may be taken
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

    pub(super) async fn find_work(&self) -> Result<Found, Error> {
        if self.journal.is_some()
            && let Ok(found) = self.stored_work()
        {
            return Ok(found);
        }
        Ok(self.host.works.find(&self.task).await?)
    }

    /// The host's part in the decision where a Task runs.
    pub(super) fn make_room(&self, found: &Found) -> Result<Share, (&'static str, String)> {
        let unknown = |feature: &&String| !facts::has(feature);
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

    pub(super) async fn refuse(&self, phase: TaskPhase, reason: &str, message: &str) {
        tracing::info!(task = self.task.name(), ?phase, reason, message, "not taken");
        self.claimer().refuse(&self.task, phase, reason, message).await;
    }

    pub(super) fn store(&mut self, found: &Found) -> Result<(), Error> {
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

    pub(super) async fn attempt(&mut self, step: Step) -> Result<Outcome, Error> {
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

    pub(super) fn claimer(&self) -> Claimer<'_> {
        Claimer {
            tasks: Api::namespaced(self.host.client.clone(), self.task.namespace()),
            home: &self.host.home,
            server: &self.host.server,
            clock: &*self.host.clock,
        }
    }

    /// The Node's labels, for work whose expressions may ask for them.
    pub(super) async fn labels(&self, found: &Found) -> Result<Labels, Error> {
        if !found.json.contains("label") {
            return Ok(Labels::new());
        }
        let nodes: Api<Node> = Api::all(self.host.client.clone());
        let read = tokio::time::timeout(PATIENCE, nodes.get(&self.host.node)).await;
        let node = read.unwrap_or_else(|_| Err(kube::Error::Service("no answer in time".into())));
        Ok(node.map_err(Error::Node)?.metadata.labels.unwrap_or_default())
    }
}
