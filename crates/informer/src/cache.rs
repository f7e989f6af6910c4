//! The objects of a kind by name, by uid and by whatever else they are filed under, and the queues that hear of changes.

use crate::changes::{Change, Changes, Feed};
use kube::Resource;
use parking_lot::RwLock;
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::sync::watch;

/// `<namespace>/<name>`; without a namespace `/<name>`.
pub(crate) type Keyed = Arc<str>;

pub(crate) fn key(namespace: &str, name: &str) -> Keyed {
    format!("{namespace}/{name}").into()
}

pub(crate) struct Cache<K> {
    state: RwLock<State<K>>,
    index: fn(&K) -> Vec<String>,
    synced: watch::Sender<bool>,
    interruptions: AtomicU64,
}

struct State<K> {
    objects: HashMap<Keyed, Arc<K>>,
    by_uid: HashMap<String, Keyed>,
    filed: HashMap<String, HashMap<Keyed, Arc<K>>>,
    feeds: Vec<Weak<Feed<K>>>,
}

impl<K: Resource<DynamicType = ()>> Cache<K> {
    pub fn new(index: fn(&K) -> Vec<String>) -> Self {
        Self {
            state: RwLock::new(State {
                objects: HashMap::new(),
                by_uid: HashMap::new(),
                filed: HashMap::new(),
                feeds: Vec::new(),
            }),
            index,
            synced: watch::Sender::new(false),
            interruptions: AtomicU64::new(0),
        }
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.state.read().objects.get(&key(namespace, name)).cloned()
    }

    pub fn by_uid(&self, uid: &str) -> Option<Arc<K>> {
        let state = self.state.read();
        state.objects.get(state.by_uid.get(uid)?).cloned()
    }

    pub fn indexed(&self, under: &str) -> Vec<Arc<K>> {
        let state = self.state.read();
        state
            .filed
            .get(under)
            .map(|f| f.values().cloned().collect())
            .unwrap_or_default()
    }

    pub fn count(&self, under: &str) -> usize {
        self.state.read().filed.get(under).map_or(0, HashMap::len)
    }

    pub fn all(&self) -> Vec<Arc<K>> {
        self.state.read().objects.values().cloned().collect()
    }

    pub fn subscribe(&self) -> Changes<K> {
        let mut state = self.state.write();
        let feed = Arc::new(Feed::default());
        for object in state.objects.values() {
            let change = Change::Applied(object.clone());
            feed.push(&change.uid(), change);
        }
        state.feeds.push(Arc::downgrade(&feed));
        Changes::new(feed)
    }

    pub fn apply(&self, object: K) -> Keyed {
        let meta = object.meta();
        let key = key(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        );
        let object = Arc::new(object);
        let mut state = self.state.write();
        if let Some(old) = state.objects.get(&key).cloned() {
            state.unfile(&key, &old, self.index);
            if old.meta().uid != object.meta().uid {
                state.tell(Change::Deleted(old));
            }
        }
        for under in (self.index)(&object) {
            state
                .filed
                .entry(under)
                .or_default()
                .insert(key.clone(), object.clone());
        }
        if let Some(uid) = &object.meta().uid {
            state.by_uid.insert(uid.clone(), key.clone());
        }
        state.objects.insert(key.clone(), object.clone());
        state.tell(Change::Applied(object));
        key
    }

    pub fn delete(&self, key: &Keyed) {
        let mut state = self.state.write();
        if let Some(old) = state.objects.remove(key) {
            state.unfile(key, &old, self.index);
            state.tell(Change::Deleted(old));
        }
    }

    /// Drops what a new list did not hold.
    pub fn retain(&self, listed: &HashSet<Keyed>) {
        let gone: Vec<Keyed> = {
            let state = self.state.read();
            state
                .objects
                .keys()
                .filter(|k| !listed.contains(*k))
                .cloned()
                .collect()
        };
        gone.iter().for_each(|key| self.delete(key));
    }

    pub fn set_synced(&self) {
        self.synced.send_replace(true);
    }

    pub async fn synced(&self) {
        // the sender lives as long as self, so waiting cannot fail
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    pub fn interrupted(&self) {
        self.interruptions.fetch_add(1, Ordering::Relaxed);
    }

    pub fn interruptions(&self) -> u64 {
        self.interruptions.load(Ordering::Relaxed)
    }
}

impl<K: Resource<DynamicType = ()>> State<K> {
    fn unfile(&mut self, key: &Keyed, old: &K, index: fn(&K) -> Vec<String>) {
        for under in index(old) {
            if let Some(filed) = self.filed.get_mut(&under) {
                filed.remove(key);
                if filed.is_empty() {
                    self.filed.remove(&under);
                }
            }
        }
        if let Some(uid) = &old.meta().uid {
            self.by_uid.remove(uid);
        }
    }

    fn tell(&mut self, change: Change<K>) {
        let uid = change.uid();
        self.feeds.retain(|feed| match feed.upgrade() {
            Some(feed) => {
                feed.push(&uid, change.clone());
                true
            }
            None => false,
        });
    }
}
