//! Semantic validation: what a schema cannot say. Every mistake at once, each with its path and what to do.
//!
//! The API server runs it at admission, controllers run it again before they act (on a real Kubernetes cluster nothing else
//! does). One file a concern; `later` lists what exists in the API but not yet in this version.

mod change;
mod env;
mod job;
mod later;
mod others;
mod placement;
mod reboot;
mod retry;
mod script;
mod step;
mod text;

use crate::{
    Job, Node, Queue, Resource, TRACKING_FINALIZER, Target, Task,
    field::{Errors, Path},
    identity::Identity,
    job::RequestedBy,
};
use kube::core::ObjectMeta;

/// What a Job may have changed after it was made.
pub const EDITABLE: &str = "suspend, cancel, priority, parallelism, maxFailures, activeDeadlineSeconds, ttlSecondsAfterFinished, notify";

fn track(metadata: &mut ObjectMeta) {
    let finalizers = metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|f| f == TRACKING_FINALIZER) {
        finalizers.push(TRACKING_FINALIZER.to_owned());
    }
}

impl Resource for Job {
    const LABEL_NAME: bool = true;

    fn prepare_create(&mut self, user: &Identity) {
        track(&mut self.metadata);
        self.spec.requested_by = Some(RequestedBy {
            user: user.name.clone(),
            groups: user.groups.clone(),
            via: "User".to_owned(),
        });
        if self.metadata.generate_name.is_some() && self.spec.ttl_seconds_after_finished.is_none() {
            // names a user chose are for GitOps, which would make the Job again and so run it again; generated ones are not
            self.spec.ttl_seconds_after_finished = Some(604_800);
        }
    }

    fn prepare_update(&mut self, old: &Self) {
        self.spec.requested_by = old.spec.requested_by.clone();
    }

    fn validate(&self) -> Errors {
        let mut errors = Errors::new();
        job::validate(self, &mut errors);
        later::job(&self.spec, &Path::new("spec"), &mut errors);
        errors
    }

    fn validate_update(&self, old: &Self) -> Errors {
        change::job(self, old)
    }

    fn warnings(&self) -> Vec<String> {
        job::warnings(&self.spec)
    }
}

impl Resource for Task {
    fn prepare_create(&mut self, _user: &Identity) {
        track(&mut self.metadata);
    }

    fn validate(&self) -> Errors {
        Errors::new() // made by the scheduler alone; its bounds are in the schema
    }

    fn validate_update(&self, old: &Self) -> Errors {
        change::task(self, old)
    }

    fn validate_status(&self, old: &Self) -> Errors {
        change::task_status(self, old)
    }
}

impl Resource for Node {
    fn validate(&self) -> Errors {
        others::node(self)
    }
}

impl Resource for Queue {
    fn validate(&self) -> Errors {
        let mut errors = others::queue(self);
        later::queue(&self.spec, &Path::new("spec"), &mut errors);
        errors
    }
}

impl Resource for Target {
    fn validate(&self) -> Errors {
        let mut errors = others::target(self);
        later::target(&self.spec, &Path::new("spec"), &mut errors);
        errors
    }
}
