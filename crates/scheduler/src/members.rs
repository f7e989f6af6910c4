//! Reading the snapshot of a PerNode Job's nodes.

use api::{Job, names, wanted::snapshot};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use std::sync::Arc;

/// Why a snapshot could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The API did not answer; a retry helps.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// A part is gone. A retry cannot help; the Job controller fails the Job.
    #[error("ConfigMap {0} of the snapshot is gone")]
    Gone(String),
    /// The names are not those that were written. A retry cannot help; the Job controller fails the Job.
    #[error(transparent)]
    Differs(#[from] snapshot::Differs),
}

impl Error {
    /// Whether a retry can help.
    pub fn may_pass(&self) -> bool {
        matches!(self, Error::Api(_))
    }
}

pub(crate) async fn read(client: &Client, job: &Job) -> Result<Vec<Arc<str>>, Error> {
    let chosen = job
        .status
        .as_ref()
        .and_then(|s| s.snapshot.clone())
        .unwrap_or_default();
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), job.namespace());
    let mut parts: Vec<String> = Vec::new();
    for part in 0..snapshot::part_count(&chosen) {
        let name = names::snapshot(job.name(), job.uid(), part);
        let map = api.get_opt(&name).await?.ok_or(Error::Gone(name))?;
        parts.push(
            map.data
                .and_then(|mut d| d.remove(snapshot::KEY))
                .unwrap_or_default(),
        );
    }
    Ok(snapshot::read(parts.iter().map(String::as_str), &chosen)?)
}
