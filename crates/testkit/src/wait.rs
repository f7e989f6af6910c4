//! Waiting for what objects become, by watching them.

use anyhow::{Context, Result, bail};
use api::{Job, Node, job::JobPhase};
use futures::{StreamExt, TryStreamExt};
use kube::{
    Api, Client, Resource,
    api::{ListParams, WatchEvent, WatchParams},
};
use serde::de::DeserializeOwned;
use std::{fmt::Debug, time::Duration};

/// After so long a test that waits is given up; never a measure of speed.
const PATIENCE: Duration = Duration::from_secs(180);
/// Between two tries while the server is away.
const PAUSE: Duration = Duration::from_millis(100);

/// Waits until an object is as asked; the object then. Survives a server that goes away and comes back.
pub async fn until<K>(api: &Api<K>, name: &str, mut is_met: impl FnMut(&K) -> bool) -> Result<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + 'static,
{
    let selector = format!("metadata.name={name}");
    let mut last = None;
    let watching = async {
        loop {
            let seen = look(api, &selector, &mut is_met, &mut last).await;
            match seen {
                Ok(Some(object)) => return object,
                Ok(None) => {}
                Err(_) => tokio::time::sleep(PAUSE).await, // the server is away, or the revision too old: look again
            }
        }
    };
    match tokio::time::timeout(PATIENCE, watching).await {
        Ok(object) => Ok(object),
        Err(_) => bail!(
            "{} {name} did not become what was waited for; last seen: {last:#?}",
            K::kind(&())
        ),
    }
}

async fn look<K>(
    api: &Api<K>,
    selector: &str,
    is_met: &mut impl FnMut(&K) -> bool,
    last: &mut Option<K>,
) -> Result<Option<K>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + 'static,
{
    let list = api.list(&ListParams::default().fields(selector)).await?;
    let revision = list.metadata.resource_version.clone().unwrap_or_default();
    for object in list {
        if is_met(&object) {
            return Ok(Some(object));
        }
        *last = Some(object);
    }
    let mut changes = api
        .watch(&WatchParams::default().fields(selector), &revision)
        .await?
        .boxed();
    while let Some(event) = changes.try_next().await? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                if is_met(&object) {
                    return Ok(Some(object));
                }
                *last = Some(object);
            }
            WatchEvent::Error(status) => bail!("{}", status.message),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
        }
    }
    Ok(None)
}

/// Waits until an object of this name and uid is gone.
pub async fn until_gone<K>(api: &Api<K>, name: &str, uid: &str) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + 'static,
{
    let gone = async {
        loop {
            match api.get_opt(name).await {
                Ok(Some(object)) if object.meta().uid.as_deref() == Some(uid) => {}
                Ok(_) => return,
                Err(_) => {} // the server is away
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone)
        .await
        .with_context(|| format!("{} {name} is still there", K::kind(&())))
}

/// Waits until a Job has ended; the Job then.
pub async fn finished(client: &Client, namespace: &str, name: &str) -> Result<Job> {
    until(&Api::<Job>::namespaced(client.clone(), namespace), name, |job| {
        job.phase().is_terminal()
    })
    .await
}

/// Waits until a Job is in a phase.
pub async fn phase(client: &Client, namespace: &str, name: &str, phase: JobPhase) -> Result<Job> {
    until(&Api::<Job>::namespaced(client.clone(), namespace), name, |job| {
        job.phase() == phase
    })
    .await
}

/// Waits until nodes `agent-1` to `agent-<count>` are ready.
pub async fn nodes_ready(client: &Client, count: u32) -> Result<()> {
    for number in 1..=count {
        until(
            &Api::<Node>::all(client.clone()),
            &format!("agent-{number}"),
            Node::is_ready,
        )
        .await?;
    }
    Ok(())
}
