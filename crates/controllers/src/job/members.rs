//! The snapshot of a PerNode Job: its nodes are chosen once, written into immutable ConfigMaps, and only then named in its status.
//! Before that nothing of it starts, so it may be done again at will.

use crate::{context::Context, error::Error, patch};
use api::{
    GROUP, Job, VERSION, names,
    placement::Labels,
    wanted::{chosen, snapshot},
};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Api, api::PostParams, core::ObjectMeta};
use serde_json::{Map, json};
use std::{collections::BTreeMap, sync::Arc};

pub(super) enum Members {
    Known(Arc<[Arc<str>]>),
    /// Not yet: the Job is suspended or over, or its Target does not exist.
    NotChosen,
    /// The snapshot is gone or was changed.
    Lost(String),
}

/// The nodes that match now; `None` if the Target the Job names does not exist.
pub(super) fn now(context: &Context, job: &Job) -> Option<Arc<[Arc<str>]>> {
    let target = match &job.spec.target_ref {
        Some(target) => Some(context.shared.targets.get("", &target.name)?),
        None => None,
    };
    let nodes = context.shared.nodes.all();
    let none = Labels::new();
    let nodes = nodes
        .iter()
        .map(|node| (node.name(), node.metadata.labels.as_ref().unwrap_or(&none)));
    Some(chosen(&job.spec, target.as_ref().map(|t| &t.spec), nodes).into())
}

/// The nodes of the snapshot, which is taken now if there is none.
pub(super) async fn of(context: &Context, job: &Job) -> Result<Members, Error> {
    if let Some(taken) = job.status.as_ref().and_then(|s| s.snapshot.as_ref()) {
        return read(context, job, taken).await;
    }
    let over = job.spec.cancel.is_some() || job.metadata.deletion_timestamp.is_some();
    if job.spec.suspend || over || job.phase().is_terminal() {
        return Ok(Members::NotChosen);
    }
    match now(context, job) {
        Some(members) => take(context, job, members).await,
        None => Ok(Members::NotChosen),
    }
}

async fn read(context: &Context, job: &Job, taken: &api::job::Snapshot) -> Result<Members, Error> {
    let api = config_maps(context, job);
    let mut parts = Vec::new();
    for part in 0..snapshot::part_count(taken) {
        let name = names::snapshot(job.name(), job.uid(), part);
        let Some(map) = api.get_opt(&name).await? else {
            return Ok(Members::Lost(format!(
                "ConfigMap {name} with names of the chosen nodes is gone"
            )));
        };
        parts.push(
            map.data
                .and_then(|mut d| d.remove(snapshot::KEY))
                .unwrap_or_default(),
        );
    }
    Ok(match snapshot::read(parts.iter().map(String::as_str), taken) {
        Ok(members) => Members::Known(members.into()),
        Err(_) => Members::Lost("the ConfigMaps with names of the chosen nodes were changed".into()),
    })
}

async fn take(context: &Context, job: &Job, members: Arc<[Arc<str>]>) -> Result<Members, Error> {
    let api = config_maps(context, job);
    for (part, text) in snapshot::parts(&members).enumerate() {
        let map = config_map(job, part, text);
        match api
            .create(&PostParams::default(), &map)
            .await
            .map_err(Error::from)
        {
            Ok(_) => {}
            Err(Error::Conflict) => replace(&api, &map).await?,
            Err(error) => return Err(error),
        }
    }
    let mut status = Map::new();
    status.insert("snapshot".into(), json!(snapshot::of(&members)));
    let api: Api<Job> = Api::namespaced(context.client.clone(), job.namespace());
    patch::status(&api, job, &status).await?;
    tracing::info!(job = job.name(), nodes = members.len(), "nodes chosen");
    Ok(Members::Known(members))
}

/// A part of an earlier try, whose names may differ by now. It is immutable, so it is replaced by another.
async fn replace(api: &Api<ConfigMap>, map: &ConfigMap) -> Result<(), Error> {
    let name = map.metadata.name.as_deref().unwrap_or_default();
    let Some(there) = api.get_opt(name).await? else {
        return Err(Error::Conflict);
    };
    if there.data == map.data && there.metadata.owner_references == map.metadata.owner_references {
        return Ok(());
    }
    match api.delete(name, &Default::default()).await.map_err(Error::from) {
        Ok(_) | Err(Error::Gone) => Err(Error::Conflict), // made anew at the next look
        Err(error) => Err(error),
    }
}

fn config_map(job: &Job, part: usize, text: String) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(names::snapshot(job.name(), job.uid(), part)),
            namespace: job.metadata.namespace.clone(),
            owner_references: Some(vec![OwnerReference {
                api_version: format!("{GROUP}/{VERSION}"),
                kind: "Job".into(),
                name: job.name().into(),
                uid: job.uid().into(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..Default::default()
        },
        immutable: Some(true),
        data: Some(BTreeMap::from([(snapshot::KEY.to_owned(), text)])),
        ..Default::default()
    }
}

fn config_maps(context: &Context, job: &Job) -> Api<ConfigMap> {
    Api::namespaced(context.client.clone(), job.namespace())
}
