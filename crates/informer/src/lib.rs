//! One watch a kind and process, shared by all parts: an indexed map of the objects there are, and a stream of changes for each
//! part that asks.
//!
//! - [`Informer::start`] lists by watching (`sendInitialEvents`), so there is one way objects come in, and goes on from the last
//!   version it saw; where that is too old it begins anew and drops what is gone meanwhile.
//! - Each object is decoded behind a guard: one that cannot be read is reported and its last readable state is kept, so it can
//!   neither stop the watch nor look deleted.
//! - [`Informer::subscribe`] gives every consumer its own queue in which changes of one object are folded into the last one. A slow
//!   consumer therefore costs at most one entry an object.
//!
//! What is read here is always a little old. Whoever acts on it writes with the resourceVersion it saw.

mod cache;
mod changes;
mod decode;
mod shared;
mod watch;

pub use changes::{Change, Changes};
pub use shared::{NODE_LEASES, Shared, of_job, on_node};

use cache::Cache;
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Kinds that can be watched.
pub trait Watched: Resource<DynamicType = ()> + Clone + DeserializeOwned + Send + Sync + 'static {}
impl<K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Send + Sync + 'static> Watched for K {}

/// What to watch and how to keep it.
pub struct Options<K> {
    /// URL of the collection, and query selectors.
    path: String,
    fields: Option<String>,
    trim: fn(&mut K),
    index: fn(&K) -> Vec<String>,
}

impl<K: Watched> Options<K> {
    /// All objects of the kind, in every namespace.
    pub fn all() -> Self {
        Self::at(K::url_path(&(), None))
    }

    /// The objects of one namespace.
    pub fn namespaced(namespace: &str) -> Self {
        Self::at(K::url_path(&(), Some(namespace)))
    }

    fn at(path: String) -> Self {
        Self {
            path,
            fields: None,
            trim: |_| {},
            index: |_| Vec::new(),
        }
    }

    /// Only objects that a field selector matches.
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Drops from each object what nobody here reads, before it is kept.
    pub fn trim(mut self, trim: fn(&mut K)) -> Self {
        self.trim = trim;
        self
    }

    /// Files each object under these keys too; see [`Informer::indexed`].
    pub fn index(mut self, index: fn(&K) -> Vec<String>) -> Self {
        self.index = index;
        self
    }
}

/// The objects of a kind as last seen. Clones share one watch, which ends with the last of them.
pub struct Informer<K> {
    cache: Arc<Cache<K>>,
    _watch: Arc<AbortOnDrop>,
}

impl<K> Clone for Informer<K> {
    fn clone(&self) -> Self {
        Self {
            cache: self.cache.clone(),
            _watch: self._watch.clone(),
        }
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<K: Watched> Informer<K> {
    /// Starts to watch. Must be called within a Tokio runtime.
    pub fn start(client: Client, options: Options<K>) -> Self {
        let cache = Arc::new(Cache::new(options.index));
        let watch = tokio::spawn(watch::run(client, options, cache.clone()));
        Self {
            cache,
            _watch: Arc::new(AbortOnDrop(watch)),
        }
    }

    /// Waits until all objects there were at the start have been seen once.
    pub async fn synced(&self) {
        self.cache.synced().await;
    }

    /// The object of this name; an empty namespace for kinds without.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.cache.get(namespace, name)
    }

    /// The object of this uid.
    pub fn by_uid(&self, uid: &str) -> Option<Arc<K>> {
        self.cache.by_uid(uid)
    }

    /// The objects filed under a key of the index.
    pub fn indexed(&self, key: &str) -> Vec<Arc<K>> {
        self.cache.indexed(key)
    }

    /// How many objects are filed under a key of the index.
    pub fn count(&self, key: &str) -> usize {
        self.cache.count(key)
    }

    /// All objects, in no order.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.cache.all()
    }

    /// A queue of changes that begins with all objects there are.
    pub fn subscribe(&self) -> Changes<K> {
        self.cache.subscribe()
    }

    /// How often the watch was broken off other than by its own end. Whoever judges by silence must start over when it grew.
    pub fn interruptions(&self) -> u64 {
        self.cache.interruptions()
    }
}

#[cfg(test)]
mod tests;
