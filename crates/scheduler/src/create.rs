//! Making the Task of a decision: its content, and what a refusal means.

use crate::core::Placement;
use api::{
    GROUP, Job, Resource as _, TRACKING_FINALIZER, Task, TaskSpec, VERSION,
    job::{Impact, OnUnknown},
    task::{Drain, JobRef},
    work::Work,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Api, Client, api::PostParams, core::ObjectMeta};
use std::{collections::BTreeMap, collections::HashMap, sync::Arc, time::Duration};

/// The label Tasks carry the name of their Job in.
const JOB_LABEL: &str = "prow.windows/job";

/// What became of a create.
pub(crate) enum Outcome {
    /// The Task was made.
    Made,
    /// It was there already and is ours.
    There(Arc<Task>),
    /// It was not made, or that is not known; the Job is left alone for a while.
    Refused { message: String, wait: Duration },
}

fn refused(message: impl Into<String>, seconds: u64) -> Outcome {
    Outcome::Refused {
        message: message.into(),
        wait: Duration::from_secs(seconds),
    }
}

/// The work of Jobs, worked out once a Job.
pub(crate) struct Works {
    by_uid: HashMap<String, Arc<Result<Work, String>>>,
    fence_seconds: i64,
}

impl Works {
    /// `fence_seconds` is what Tasks of Rerun Jobs carry.
    pub fn new(fence_seconds: i64) -> Self {
        Self {
            by_uid: HashMap::new(),
            fence_seconds,
        }
    }

    pub fn forget(&mut self, uid: &str) {
        self.by_uid.remove(uid);
    }

    /// The Task of a decision, or why there can be none.
    pub fn task(&mut self, placement: &Placement) -> Result<Task, Outcome> {
        let job = &placement.job;
        let work = self
            .by_uid
            .entry(job.uid().to_owned())
            .or_insert_with(|| Arc::new(work_of(job)))
            .clone();
        match &*work {
            Ok(work) => Ok(task(placement, work, self.fence_seconds)),
            Err(message) => Err(refused(message.clone(), 3600)),
        }
    }
}

/// A Job that a server let in though it is not valid is not started.
fn work_of(job: &Job) -> Result<Work, String> {
    if let Some(error) = job.validate().iter().next() {
        return Err(format!("the Job is not valid: {error}"));
    }
    Work::of(&job.spec).map_err(|error| format!("the Job cannot be written as work: {error}"))
}

fn task(placement: &Placement, work: &Work, fence_seconds: i64) -> Task {
    let job = &placement.job;
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let metadata = ObjectMeta {
        name: Some(placement.name()),
        namespace: job.metadata.namespace.clone(),
        labels: Some(BTreeMap::from([(JOB_LABEL.to_owned(), job.name().to_owned())])),
        finalizers: Some(vec![TRACKING_FINALIZER.to_owned()]),
        owner_references: Some(vec![OwnerReference {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: "Job".to_owned(),
            name: job.name().to_owned(),
            uid: job.uid().to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }]),
        ..Default::default()
    };
    let spec = TaskSpec {
        job_ref: JobRef {
            name: job.name().to_owned(),
            uid: job.uid().to_owned(),
            work_hash: work.hash.clone(),
        },
        index: number(placement.index),
        count: number(placement.count),
        attempt: number(placement.attempt),
        node_name: placement.node.to_string(),
        work: placement.record.is_none().then(|| work.inline()).flatten(),
        fence_seconds: (job.spec.on_unknown == OnUnknown::Rerun).then_some(fence_seconds),
        stop: placement.record.as_ref().map(|r| r.stop()),
        drain: (job.spec.impact == Impact::Disruptive && placement.record.is_none()).then_some(Drain::Wanted),
        ..Default::default()
    };
    Task {
        metadata,
        spec,
        status: None,
    }
}

pub(crate) async fn create(client: &Client, task: Task) -> Outcome {
    let api: Api<Task> = Api::namespaced(client.clone(), task.namespace());
    let error = match api.create(&PostParams::default(), &task).await {
        Ok(_) => return Outcome::Made,
        Err(error) => error,
    };
    match error {
        kube::Error::Api(status) if status.reason == "AlreadyExists" => there(&api, &task).await,
        kube::Error::Api(status) if status.code < 500 && status.code != 429 => refused(status.message, 10),
        other => refused(other.to_string(), 1),
    }
}

/// An object of that name is ours only if it names our Job by uid; it is never adopted otherwise.
async fn there(api: &Api<Task>, wanted: &Task) -> Outcome {
    match api.get_opt(wanted.name()).await {
        Ok(Some(found)) if found.spec.job_ref.uid == wanted.spec.job_ref.uid => {
            Outcome::There(Arc::new(found))
        }
        Ok(Some(_)) => refused(
            format!(
                "Task {} of an earlier Job is still there; waiting until it is gone",
                wanted.name()
            ),
            5,
        ),
        Ok(None) => refused(format!("Task {} was just removed", wanted.name()), 1),
        Err(error) => refused(error.to_string(), 1),
    }
}
