//! Stopping a Task as the core decided, and telling of it on both sides: the Task that gave way and the Job it made room for.

use crate::core::Stopping;
use api::{Job, Task};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams, PostParams},
    core::ObjectMeta,
};
use serde_json::json;

/// Writes the stop. A Task that is gone, or that someone else stopped first, is as good as stopped.
pub(crate) async fn stop(client: &Client, stopping: &Stopping, now: Timestamp) -> Result<(), kube::Error> {
    let task = &stopping.task;
    let api: Api<Task> = Api::namespaced(client.clone(), task.namespace());
    let patch = json!({
        "metadata": {"uid": task.uid()},
        "spec": {"stop": stopping.stop},
    });
    match api
        .patch(task.name(), &PatchParams::default(), &Patch::Merge(&patch))
        .await
    {
        Ok(_) => tell(client, stopping, now).await,
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

async fn tell(client: &Client, stopping: &Stopping, now: Timestamp) {
    let (task, job) = (&stopping.task, stopping.for_job.as_deref());
    let reason = if job.is_some() { "Preempted" } else { "Drained" };
    event(client, task.object_ref(&()), reason, &stopping.stop.message, now).await;
    if let Some(job) = job {
        let message = format!(
            "stopped Task {}/{} on node {} to make room",
            task.namespace(),
            task.name(),
            task.spec.node_name
        );
        event(client, Job::object_ref(job, &()), "Preempting", &message, now).await;
    }
}

/// Telling never fails anything: what cannot be written is dropped with a line in the log.
async fn event(client: &Client, about: ObjectReference, reason: &str, message: &str, now: Timestamp) {
    let namespace = about.namespace.clone().unwrap_or_default();
    let event = Event {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}.", about.name.as_deref().unwrap_or_default())),
            namespace: Some(namespace.clone()),
            ..Default::default()
        },
        involved_object: about,
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        type_: Some("Normal".to_owned()),
        count: Some(1),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        source: Some(EventSource {
            component: Some("prow-scheduler".to_owned()),
            host: None,
        }),
        reporting_component: Some("prow.windows/scheduler".to_owned()),
        ..Default::default()
    };
    let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
    if let Err(error) = api.create(&PostParams::default(), &event).await {
        tracing::debug!(reason, %error, "Event not written");
    }
}
