//! What an operator would want to know, as Events: one an object and reason, counted up when it happens again.
//!
//! Telling never holds up or fails anything: what cannot be written, or comes too fast, is dropped with a line in the log.

use crate::{context::Context, error::Error};
use api::clock::Clock;
use jiff::SignedDuration;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::ObjectMeta,
};
use serde_json::json;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// How many Events may wait to be written.
const QUEUED: usize = 1024;
/// How often expired Events are looked for.
const SWEEP: Duration = Duration::from_secs(60);
/// How many Events one look takes up.
const PAGE: u32 = 500;

/// Normal, or something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Normal,
    Warning,
}

struct Told {
    about: ObjectReference,
    type_: Type,
    reason: &'static str,
    message: String,
}

/// Takes in what is to be told.
#[derive(Clone)]
pub(crate) struct Recorder(mpsc::Sender<Told>);

impl Recorder {
    /// Tells of an object.
    pub fn tell<K>(&self, object: &K, type_: Type, reason: &'static str, message: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        let told = Told {
            about: object.object_ref(&()),
            type_,
            reason,
            message: message.into(),
        };
        if self.0.try_send(told).is_err() {
            tracing::warn!(reason, "too many Events at once; this one is not written");
        }
    }
}

/// A recorder, and the work of writing what it takes in.
pub(crate) fn recorder(client: Client, clock: Arc<dyn Clock>) -> (Recorder, impl Future<Output = ()>) {
    let (send, mut receive) = mpsc::channel::<Told>(QUEUED);
    let writing = async move {
        while let Some(told) = receive.recv().await {
            let reason = told.reason;
            if let Err(error) = write(&client, &told, Time(clock.now())).await {
                tracing::debug!(reason, %error, "Event not written");
            }
        }
    };
    (Recorder(send), writing)
}

async fn write(client: &Client, told: &Told, now: Time) -> Result<(), Error> {
    // Events about what is in no namespace lie in `default`, as in Kubernetes
    let namespace = told.about.namespace.clone().unwrap_or_else(|| "default".into());
    let api: Api<Event> = Api::namespaced(client.clone(), &namespace);
    let (about, uid) = (
        told.about.name.clone().unwrap_or_default(),
        told.about.uid.clone().unwrap_or_default(),
    );
    let hash = api::names::sha256_hex(format!("{uid}/{}", told.reason));
    let name = format!("{}.{}", about.chars().take(200).collect::<String>(), &hash[..16]);
    let event = Event {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(namespace),
            ..Default::default()
        },
        involved_object: told.about.clone(),
        reason: Some(told.reason.to_owned()),
        message: Some(told.message.chars().take(1024).collect()),
        type_: Some(format!("{:?}", told.type_)),
        count: Some(1),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now.clone()),
        source: Some(EventSource {
            component: Some("prow-controllers".into()),
            host: None,
        }),
        reporting_component: Some("prow.windows/controllers".into()),
        ..Default::default()
    };
    match api
        .create(&PostParams::default(), &event)
        .await
        .map_err(Error::from)
    {
        Ok(_) => Ok(()),
        Err(Error::Conflict) => {
            let Some(there) = api.get_opt(&name).await? else {
                return Ok(());
            };
            let again = json!({
                "count": there.count.unwrap_or(1) + 1,
                "lastTimestamp": now,
                "message": event.message,
            });
            api.patch(&name, &PatchParams::default(), &Patch::Merge(again))
                .await?;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Deletes Events that have not happened again for long.
pub(crate) async fn expire(context: &Context) {
    loop {
        tokio::time::sleep(SWEEP.min(context.options.event_ttl)).await;
        if let Err(error) = sweep(context).await {
            tracing::warn!(%error, "expired Events not deleted");
        }
    }
}

async fn sweep(context: &Context) -> Result<(), Error> {
    let all: Api<Event> = Api::all(context.client.clone());
    let ttl = SignedDuration::try_from(context.options.event_ttl).unwrap_or(SignedDuration::MAX);
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = all.list(&page).await?;
        for event in &list.items {
            let last = event.last_timestamp.as_ref().map(|t| t.0);
            let last = last
                .or_else(|| event.event_time.as_ref().map(|t| t.0))
                .or_else(|| event.metadata.creation_timestamp.as_ref().map(|t| t.0));
            if last.is_none_or(|t| context.now().duration_since(t) < ttl) {
                continue;
            }
            let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
            let api: Api<Event> = Api::namespaced(context.client.clone(), namespace);
            let name = event.metadata.name.as_deref().unwrap_or_default();
            match api
                .delete(name, &DeleteParams::default())
                .await
                .map_err(Error::from)
            {
                Ok(_) | Err(Error::Gone) => {}
                Err(error) => return Err(error),
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}
