//! Namespaces that are being deleted: running Jobs are cancelled first, then everything goes, then the namespace.

use crate::{
    context::Context,
    error::Error,
    keyed::{self, Outcome},
    ttl::{gone, of_uid},
};
use api::Job;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams},
    core::Request,
    discovery::{Discovery, Scope, verbs},
};
use serde_json::json;
use std::time::Duration;

/// How many namespaces are worked on at once.
const AT_ONCE: usize = 4;
/// How often a namespace is looked at again while something in it still goes.
const AGAIN: Duration = Duration::from_millis(500);

pub(crate) async fn run(context: &Context) {
    let going = keyed::feed(context.shared.namespaces.subscribe(), |change| {
        let meta = &change.object().metadata;
        let going = meta.deletion_timestamp.is_some();
        going
            .then(|| (meta.name.clone().unwrap_or_default(), Duration::ZERO))
            .into_iter()
            .collect()
    });
    keyed::work("namespace", going.boxed(), AT_ONCE, |name| empty(context, name)).await;
}

async fn empty(context: &Context, name: String) -> Outcome {
    let Some(namespace) = context.shared.namespaces.get("", &name) else {
        return Ok(None);
    };
    if cancel_jobs(context, &name).await? {
        return Ok(Some(AGAIN));
    }
    let mut left = 0;
    for kind in namespaced_kinds(context).await? {
        let api: Api<DynamicObject> = Api::namespaced_with(context.client.clone(), &name, &kind);
        let there = api.list_metadata(&ListParams::default().limit(1)).await?;
        if there.items.is_empty() {
            continue;
        }
        left += 1;
        api.delete_collection(&DeleteParams::background(), &ListParams::default())
            .await?;
    }
    if left > 0 {
        return Ok(Some(AGAIN));
    }
    finalize(context, &namespace).await?;
    Ok(None)
}

/// Deletes all Jobs, which cancels those that run; tells whether there still are any.
async fn cancel_jobs(context: &Context, namespace: &str) -> Result<bool, Error> {
    let api: Api<Job> = Api::namespaced(context.client.clone(), namespace);
    let jobs = api.list(&ListParams::default()).await?;
    for job in jobs
        .items
        .iter()
        .filter(|j| j.metadata.deletion_timestamp.is_none())
    {
        gone(api.delete(job.name(), &of_uid(job.uid())).await)?;
    }
    Ok(!jobs.items.is_empty())
}

/// All kinds that lie in namespaces and can be listed and deleted.
async fn namespaced_kinds(context: &Context) -> Result<Vec<ApiResource>, Error> {
    let discovery = Discovery::new(context.client.clone()).run().await?;
    let mut kinds = Vec::new();
    for group in discovery.groups() {
        for (kind, capabilities) in group.recommended_resources() {
            let can = |verb| capabilities.supports_operation(verb);
            if capabilities.scope == Scope::Namespaced && can(verbs::LIST) && can(verbs::DELETE_COLLECTION) {
                kinds.push(kind);
            }
        }
    }
    Ok(kinds)
}

/// Takes the namespace's own finalizers away, through the subresource that is made for it.
async fn finalize(context: &Context, namespace: &Namespace) -> Result<(), Error> {
    let mut empty = namespace.clone();
    if let Some(spec) = &mut empty.spec {
        spec.finalizers = Some(Vec::new());
    }
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let mut body = serde_json::to_value(&empty).map_err(|e| Error::Api(kube::Error::SerdeError(e)))?;
    body["apiVersion"] = json!("v1");
    body["kind"] = json!("Namespace");
    let body = body.to_string().into_bytes();
    let request = Request::new("/api/v1/namespaces")
        .replace_subresource("finalize", name, &Default::default(), body)
        .map_err(|e| Error::Api(kube::Error::BuildRequest(e)))?;
    match context.client.request_text(request).await.map_err(Error::from) {
        Ok(_) | Err(Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}
