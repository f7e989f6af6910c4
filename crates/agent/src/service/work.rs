//! The work of a Task: carried by it, or read from its Job; always with the hash the Task names.

use super::retry::Backoff;
use api::{
    Job, JobSpec, Task,
    work::{Mismatch, Work},
};
use kube::Api;
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::time::Instant;

/// A server refuses to show a Job until it has seen the Task that names it.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many long works are kept, for the next Task of the same Job.
const KEPT: usize = 4;

/// Why there is no work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Job is gone, or another has its name. The Task will be removed too.
    #[error("the Job {0} is gone")]
    Gone(String),
    /// See there.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The server did not answer, or not with a Job. A retry may help.
    #[error("the Job cannot be read: {0}")]
    Api(#[from] kube::Error),
}

/// Work as stored and as understood.
#[derive(Clone)]
pub struct Found {
    /// The JSON whose hash the Task names.
    pub json: Arc<str>,
    /// The same, read.
    pub spec: Arc<JobSpec>,
}

impl Found {
    /// Reads work that must have the hash a Task names.
    pub fn read(json: &str, hash: &str) -> Result<Self, Mismatch> {
        Ok(Self {
            spec: Arc::new(Work::read(json, hash)?),
            json: json.into(),
        })
    }
}

/// Finds work and keeps the last few.
pub struct Works {
    client: kube::Client,
    kept: Mutex<VecDeque<(String, Found)>>,
}

impl Works {
    /// Reads Jobs through this client.
    pub fn new(client: kube::Client) -> Self {
        Self {
            client,
            kept: Mutex::default(),
        }
    }

    /// The work of a Task.
    pub async fn find(&self, task: &Task) -> Result<Found, Error> {
        let hash = &task.spec.job_ref.work_hash;
        if let Some(inline) = &task.spec.work {
            return Ok(Found::read(inline, hash)?);
        }
        let key = format!("{}/{hash}", task.spec.job_ref.uid);
        if let Some((_, found)) = self.kept.lock().iter().find(|(k, _)| *k == key) {
            return Ok(found.clone());
        }
        let job = self.job(task).await?;
        let work = Work::of(&job.spec).map_err(Mismatch::from)?;
        let found = Found::read(&work.json, hash)?;
        let mut kept = self.kept.lock();
        kept.push_front((key, found.clone()));
        kept.truncate(KEPT);
        Ok(found)
    }

    async fn job(&self, task: &Task) -> Result<Job, Error> {
        let reference = &task.spec.job_ref;
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), task.namespace());
        let end = Instant::now() + PATIENCE;
        let mut backoff = Backoff::new(Duration::from_secs(1));
        loop {
            match jobs.get(&reference.name).await {
                Ok(job) if job.metadata.uid.as_deref() == Some(reference.uid.as_str()) => return Ok(job),
                Ok(_) => return Err(Error::Gone(reference.name.clone())),
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    return Err(Error::Gone(reference.name.clone()));
                }
                Err(kube::Error::Api(status)) if status.code == 403 && Instant::now() < end => {}
                Err(error) => return Err(Error::Api(error)),
            }
            backoff.wait().await;
        }
    }
}
