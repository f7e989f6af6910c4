//! Garbage collection by ownerReferences, as in Kubernetes: what belonged to something that is gone is deleted (background), a delete
//! waits for what belongs to it (foreground), or lets it go (orphan).
//!
//! Watched are the kinds that own or are owned here; of other kinds only their metadata. Whether an owner is gone is asked of the API
//! before anything is deleted: the watch may be behind.

use crate::{
    context::Context,
    error::Error,
    keyed::{self, Outcome},
    patch,
    ttl::{gone, of_uid},
};
use futures::StreamExt;
use informer::{Informer, Options};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta},
    core::PartialObjectMeta,
};
use serde_json::json;
use std::{fmt::Debug, sync::Arc, time::Duration};

/// How many objects are worked on at once.
const AT_ONCE: usize = 16;
/// How often an object that waits for its dependents is looked at.
const AGAIN: Duration = Duration::from_millis(200);
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// What is known of an object whatever its kind.
#[derive(Clone, Debug)]
struct Known {
    kind: ApiResource,
    meta: ObjectMeta,
}

/// The watches that are looked at, whatever their kind.
struct Collector<'a> {
    context: &'a Context,
    config_maps: Informer<PartialObjectMeta<ConfigMap>>,
    secrets: Informer<PartialObjectMeta<Secret>>,
    accounts: Informer<PartialObjectMeta<ServiceAccount>>,
}

pub(crate) async fn run(context: &Context) {
    let client = &context.client;
    let collector = Collector {
        context,
        config_maps: Informer::start(client.clone(), by_owner()),
        secrets: Informer::start(client.clone(), by_owner()),
        accounts: Informer::start(client.clone(), by_owner()),
    };
    let shared = &context.shared;
    let feeds = [
        uids(shared.jobs.subscribe()).boxed(),
        uids(shared.tasks.subscribe()).boxed(),
        uids(collector.config_maps.subscribe()).boxed(),
        uids(collector.secrets.subscribe()).boxed(),
        uids(collector.accounts.subscribe()).boxed(),
    ];
    let feed = futures::stream::select_all(feeds);
    keyed::work("garbage", feed, AT_ONCE, |uid| collector.look(uid)).await;
}

fn by_owner<K: Resource>() -> Options<PartialObjectMeta<K>>
where
    PartialObjectMeta<K>: informer::Watched,
{
    Options::all().index(|object| owners(object.meta()).iter().map(|o| of_owner(&o.uid)).collect())
}

fn of_owner(uid: &str) -> String {
    format!("owner/{uid}")
}

fn owners(meta: &ObjectMeta) -> &[OwnerReference] {
    meta.owner_references.as_deref().unwrap_or_default()
}

/// Objects that could need something done: they have owners, are being deleted in a way that concerns us, or are gone.
fn uids<K: Resource<DynamicType = ()> + 'static>(
    changes: informer::Changes<K>,
) -> impl futures::Stream<Item = Vec<(String, Duration)>> {
    keyed::feed(changes, |change| {
        let meta = change.object().meta();
        let gone = matches!(change, informer::Change::Deleted(_));
        let concerns = gone || !owners(meta).is_empty() || waits(meta, FOREGROUND) || waits(meta, ORPHAN);
        let uid = meta.uid.clone().unwrap_or_default();
        concerns.then_some((uid, Duration::ZERO)).into_iter().collect()
    })
}

/// Whether an object is being deleted and one of our finalizers holds it.
fn waits(meta: &ObjectMeta, finalizer: &str) -> bool {
    meta.deletion_timestamp.is_some() && meta.finalizers.iter().flatten().any(|f| f == finalizer)
}

fn known<K: Resource<DynamicType = ()>>(object: &Arc<K>) -> Known {
    Known {
        kind: ApiResource::erase::<K>(&()),
        meta: object.meta().clone(),
    }
}

impl Collector<'_> {
    async fn look(&self, uid: String) -> Outcome {
        let Some(object) = self.find(&uid) else {
            return self.owner_gone(&uid).await;
        };
        if waits(&object.meta, ORPHAN) {
            self.let_go(&object, &uid).await?;
            self.release(&object, ORPHAN).await?;
            return Ok(None);
        }
        if waits(&object.meta, FOREGROUND) {
            return self.wait_for_dependents(&object, &uid).await;
        }
        if self.is_garbage(&object).await? {
            self.delete(&object).await?;
        }
        Ok(None)
    }

    fn find(&self, uid: &str) -> Option<Known> {
        let shared = &self.context.shared;
        let found = shared.jobs.by_uid(uid).map(|o| known(&o));
        found
            .or_else(|| shared.tasks.by_uid(uid).map(|o| known(&o)))
            .or_else(|| self.config_maps.by_uid(uid).map(|o| known(&o)))
            .or_else(|| self.secrets.by_uid(uid).map(|o| known(&o)))
            .or_else(|| self.accounts.by_uid(uid).map(|o| known(&o)))
    }

    fn dependents(&self, uid: &str) -> Vec<Known> {
        let tasks = self.context.shared.tasks.indexed(&informer::of_job(uid));
        let key = of_owner(uid);
        let mut all: Vec<Known> = tasks.iter().map(known).collect();
        all.extend(self.config_maps.indexed(&key).iter().map(known));
        all.extend(self.secrets.indexed(&key).iter().map(known));
        all.extend(self.accounts.indexed(&key).iter().map(known));
        all.retain(|d| owners(&d.meta).iter().any(|o| o.uid == uid));
        all
    }

    async fn owner_gone(&self, uid: &str) -> Outcome {
        for dependent in self.dependents(uid) {
            if self.is_garbage(&dependent).await? {
                self.delete(&dependent).await?;
            }
        }
        Ok(None)
    }

    async fn wait_for_dependents(&self, object: &Known, uid: &str) -> Outcome {
        let dependents = self.dependents(uid);
        let mut blocked = false;
        for dependent in &dependents {
            let blocks = owners(&dependent.meta)
                .iter()
                .any(|o| o.uid == uid && o.block_owner_deletion == Some(true));
            blocked |= blocks;
            self.delete(dependent).await?;
        }
        if blocked {
            return Ok(Some(AGAIN));
        }
        self.release(object, FOREGROUND).await?;
        Ok(None)
    }

    async fn let_go(&self, _object: &Known, uid: &str) -> Result<(), Error> {
        for dependent in self.dependents(uid) {
            let rest: Vec<_> = owners(&dependent.meta)
                .iter()
                .filter(|o| o.uid != uid)
                .cloned()
                .collect();
            let api = self.api(&dependent);
            patch::main(
                &api,
                &dynamic(&dependent),
                // null takes the list away: an empty one says nothing
                json!({"metadata": {"ownerReferences": Some(rest).filter(|rest| !rest.is_empty())}}),
            )
            .await?;
        }
        Ok(())
    }

    /// Whether it has owners and all are gone.
    async fn is_garbage(&self, object: &Known) -> Result<bool, Error> {
        if owners(&object.meta).is_empty() || object.meta.deletion_timestamp.is_some() {
            return Ok(false);
        }
        for owner in owners(&object.meta) {
            if self.find(&owner.uid).is_some() || self.exists(object, owner).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn exists(&self, object: &Known, owner: &OwnerReference) -> Result<bool, Error> {
        let (group, version) = owner
            .api_version
            .split_once('/')
            .unwrap_or(("", &owner.api_version));
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &owner.kind));
        let client = self.context.client.clone();
        let namespace = object.meta.namespace.as_deref().unwrap_or_default();
        // an owner lies in the same namespace or in none
        for api in [
            Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &kind),
            Api::<DynamicObject>::all_with(client, &kind),
        ] {
            let found = match api.get_opt(&owner.name).await.map_err(Error::from) {
                Ok(found) => found,
                Err(Error::Api(kube::Error::Api(status))) if matches!(status.code, 400 | 405) => None,
                Err(error) => return Err(error),
            };
            if found.is_some_and(|o| o.metadata.uid.as_ref() == Some(&owner.uid)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn delete(&self, object: &Known) -> Result<(), Error> {
        if object.meta.deletion_timestamp.is_some() {
            return Ok(());
        }
        let name = object.meta.name.as_deref().unwrap_or_default();
        let uid = object.meta.uid.as_deref().unwrap_or_default();
        gone(self.api(object).delete(name, &of_uid(uid)).await)
    }

    async fn release(&self, object: &Known, finalizer: &str) -> Result<(), Error> {
        patch::release(&self.api(object), &dynamic(object), finalizer).await
    }

    fn api(&self, object: &Known) -> Api<DynamicObject> {
        let client = self.context.client.clone();
        match &object.meta.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &object.kind),
            None => Api::all_with(client, &object.kind),
        }
    }
}

fn dynamic(object: &Known) -> DynamicObject {
    DynamicObject {
        types: None,
        metadata: object.meta.clone(),
        data: json!({}),
    }
}
