//! The Job controller: a Job's status from its Tasks, and all that must be done to its Tasks and by whom no agent will.
//!
//! Everything is worked out anew from the Job and one snapshot of its Tasks:
//!
//! 1. a PerNode Job gets its snapshot before anything of it starts ([`members`]);
//! 2. [`api::wanted`] says where it stands;
//! 3. open Tasks are stopped if the Job is over, and those no agent will end are ended ([`ends`]);
//! 4. the status is written ([`status`]): at once when the phase changes to an end, else debounced and at most four times a second,
//!    so that a Job that ends within a second costs one write;
//! 5. what is being deleted is let go once nothing of it runs.
//!
//! A terminal phase stays. Only an Unknown Job may still get a better or worse end, when a user settles its outcomes.

mod ends;
mod members;
mod status;

use crate::{
    context::Context,
    error::Error,
    keyed::{self, Outcome},
    tasks,
};
use api::{
    Job, TRACKING_FINALIZER, Task,
    job::{JobPhase, NodeSet},
    wanted::{self, Wanted},
};
use futures::StreamExt;
use informer::of_job;
use members::Members;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::time::Instant;

/// How many Jobs are worked on at once.
const AT_ONCE: usize = 64;
/// A Job with more Tasks than this is not looked at again for each of them.
const FEW_TASKS: usize = 32;
/// How much longer, for each Task a Job has, changes of its Tasks are gathered: a look costs about a tenth of that.
const PER_TASK: Duration = Duration::from_micros(10);

/// What is remembered of a Job between two looks; nothing of it must be kept.
#[derive(Default)]
struct Memory {
    first_seen: Option<Instant>,
    last_written: Option<Instant>,
    members: Option<Arc<[Arc<str>]>>,
}

struct Controller<'a> {
    context: &'a Context,
    memory: Mutex<HashMap<String, Memory>>,
}

pub(crate) async fn run(context: &Context) {
    let controller = Controller {
        context,
        memory: Mutex::new(HashMap::new()),
    };
    let shared = &context.shared;
    let jobs = keyed::feed(shared.jobs.subscribe(), |change| {
        vec![(change.object().uid().to_owned(), Duration::ZERO)]
    });
    let interval = context.options.status_interval;
    let all_tasks = shared.tasks.clone();
    let tasks = keyed::feed(shared.tasks.subscribe(), move |change| {
        let uid = change.object().spec.job_ref.uid.clone();
        let count = all_tasks.count(&of_job(&uid));
        let wait = match u32::try_from(count) {
            Ok(count) if count as usize > FEW_TASKS => interval + PER_TASK * count,
            _ => Duration::ZERO,
        };
        vec![(uid, wait)]
    });
    let feed = futures::stream::select(jobs, tasks);
    keyed::work("job", feed.boxed(), AT_ONCE, |uid| controller.look(uid)).await;
}

impl Controller<'_> {
    async fn look(&self, uid: String) -> Outcome {
        let shared = &self.context.shared;
        let tasks = shared.tasks.indexed(&of_job(&uid));
        let Some(job) = shared.jobs.by_uid(&uid) else {
            self.memory.lock().remove(&uid);
            self.let_go(
                tasks
                    .iter()
                    .filter(|t| !tasks::is_open(t) || tasks::is_unclaimed(t)),
            )
            .await?;
            return Ok(None);
        };
        if is_settled(&job, &tasks) {
            self.memory.lock().remove(&uid);
            self.finish(&job, &tasks).await?;
            return Ok(None);
        }
        let members = match self.members(&job).await? {
            Ok(members) => members,
            Err(why) => return self.fail(&job, &why).await,
        };
        let wanted = wanted::wanted(
            &job,
            members.as_deref(),
            tasks.iter().map(|t| &**t),
            self.context.now(),
        );
        let ending = ends::work(self.context, &job, &wanted.outlook, &tasks).await;
        let again = self.write(&job, &wanted, &tasks).await?;
        ending?;
        self.finish(&job, &tasks).await?;
        let deadline = wanted.outlook.deadline.filter(|d| *d > self.context.now());
        let deadline = deadline
            .filter(|_| !job.phase().is_terminal())
            .map(|d| self.context.until(d));
        Ok(again.into_iter().chain(deadline).min())
    }

    /// The nodes of a PerNode Job; chosen and written down now if they were not. The inner error is why the Job cannot go on.
    async fn members(&self, job: &Job) -> Result<Result<Option<Arc<[Arc<str>]>>, String>, Error> {
        if !job.spec.is_per_node() {
            return Ok(Ok(None));
        }
        if job.spec.node_set == NodeSet::Live {
            return Ok(Ok(members::now(self.context, job)));
        }
        if let Some(members) = self.remembered(job) {
            return Ok(Ok(Some(members)));
        }
        let members = match members::of(self.context, job).await? {
            Members::Known(members) => members,
            Members::NotChosen => return Ok(Ok(None)),
            Members::Lost(why) => return Ok(Err(why)),
        };
        self.memory
            .lock()
            .entry(job.uid().to_owned())
            .or_default()
            .members = Some(members.clone());
        Ok(Ok(Some(members)))
    }

    fn remembered(&self, job: &Job) -> Option<Arc<[Arc<str>]>> {
        self.memory.lock().get(job.uid()).and_then(|m| m.members.clone())
    }

    /// Writes the status if it is time to; tells when it will be.
    async fn write(&self, job: &Job, wanted: &Wanted, tasks: &[Arc<Task>]) -> Outcome {
        if !may_change(job, &wanted.outlook, tasks) {
            return Ok(None);
        }
        let new = status::of(job, wanted, tasks, self.context.now());
        let Some(patch) = status::patch(job, &new) else {
            return Ok(None);
        };
        let now = Instant::now();
        if !new.phase.is_terminal() {
            let options = &self.context.options;
            let (first, last) = {
                let mut memory = self.memory.lock();
                let memory = memory.entry(job.uid().to_owned()).or_default();
                (*memory.first_seen.get_or_insert(now), memory.last_written)
            };
            let changed = job.phase() != new.phase;
            let debounced = first + options.status_debounce;
            let earliest = match last {
                Some(last) if !changed => (last + options.status_interval).max(debounced),
                _ => debounced,
            };
            if earliest > now {
                return Ok(Some(earliest - now));
            }
        }
        status::write(self.context, job, patch).await?;
        self.memory
            .lock()
            .entry(job.uid().to_owned())
            .or_default()
            .last_written = Some(now);
        status::tell(self.context, job, &new);
        Ok(None)
    }

    async fn fail(&self, job: &Job, why: &str) -> Outcome {
        if !job.phase().is_terminal() {
            let new = status::failed(job, "SnapshotLost", why, self.context.now());
            if let Some(patch) = status::patch(job, &new) {
                status::write(self.context, job, patch).await?;
                status::tell(self.context, job, &new);
            }
        }
        let tasks = self.context.shared.tasks.indexed(&of_job(job.uid()));
        ends::stop_all(self.context, job, &tasks, "SnapshotLost").await?;
        self.finish(job, &tasks).await?;
        Ok(None)
    }

    /// Lets the Job go if it is being deleted and nothing of it runs, and those of its Tasks that are being deleted.
    async fn finish(&self, job: &Job, tasks: &[Arc<Task>]) -> Result<(), Error> {
        let deleting = job.metadata.deletion_timestamp.is_some();
        if !deleting && !job.phase().is_terminal() {
            return Ok(());
        }
        self.let_go(tasks.iter().filter(|t| !tasks::is_open(t))).await?;
        if deleting && !tasks.iter().any(|t| tasks::is_open(t)) {
            let api = kube::Api::namespaced(self.context.client.clone(), job.namespace());
            crate::patch::release(&api, job, TRACKING_FINALIZER).await?;
        }
        Ok(())
    }

    async fn let_go(&self, tasks: impl Iterator<Item = &Arc<Task>>) -> Result<(), Error> {
        for task in tasks.filter(|t| tasks::is_deleting(t)) {
            tasks::release(self.context, task).await?;
        }
        Ok(())
    }
}

/// Whether a Job has ended and there is nothing left to work out about it.
fn is_settled(job: &Job, tasks: &[Arc<Task>]) -> bool {
    let settles_late = job.phase() == JobPhase::Unknown && tasks.iter().any(|t| t.spec.resolution.is_some());
    job.phase().is_terminal() && !settles_late && !tasks.iter().any(|t| tasks::is_open(t))
}

/// A Job that ended changes no more, but for outcomes that are settled late.
fn may_change(job: &Job, outlook: &wanted::Outlook, tasks: &[Arc<Task>]) -> bool {
    if !job.phase().is_terminal() {
        return true;
    }
    let status = job.status.clone().unwrap_or_default();
    let settled = job.phase() == JobPhase::Unknown
        && tasks.iter().any(|t| t.spec.resolution.is_some())
        && outlook.counts.unknown < u32::try_from(status.unknown).unwrap_or(0);
    settled && outlook.phase.is_terminal()
}
