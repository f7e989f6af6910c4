//! Lazy writes that were answered but are not on disk yet, as readers see them.
//!
//! All that is newer than the disk is lazy and here. A reader copies what it needs from here first and looks at the
//! disk second; what the disk has caught up with in between shows by its last revision and is left out. So a reader
//! sees one moment, and never waits for an fsync.

use crate::{Entry, Revision};
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// The state of a key by its last lazy write.
#[derive(Clone, Debug)]
pub(super) struct Lazy {
    pub(super) revision: Revision,
    /// `None` if it was deleted.
    pub(super) value: Option<Bytes>,
}

impl Lazy {
    pub(super) fn entry(self, key: &Arc<str>) -> Option<Entry> {
        Some(Entry {
            key: key.clone(),
            value: self.value?,
            revision: self.revision,
        })
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Overlay(RwLock<BTreeMap<Arc<str>, Lazy>>);

impl Overlay {
    pub(super) fn get(&self, key: &str) -> Option<Lazy> {
        self.0.read().get(key).cloned()
    }

    pub(super) fn insert(&self, writes: impl IntoIterator<Item = (Arc<str>, Lazy)>) {
        self.0.write().extend(writes);
    }

    /// All of it is on disk now.
    pub(super) fn clear(&self) {
        self.0.write().clear();
    }

    /// What is here under `prefix` from `from` on, in the order of keys.
    pub(super) fn range(&self, prefix: &str, from: &str) -> Vec<(Arc<str>, Lazy)> {
        let all = self.0.read();
        let range = all.range::<str, _>((Bound::Included(prefix.max(from)), Bound::Unbounded));
        range
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, lazy)| (key.clone(), lazy.clone()))
            .collect()
    }
}

/// Lays `lazy` over `stored`, in the order of keys.
pub(super) fn merge(stored: Vec<Entry>, lazy: Vec<(Arc<str>, Lazy)>) -> Vec<Entry> {
    if lazy.is_empty() {
        return stored;
    }
    let mut merged: BTreeMap<Arc<str>, Entry> = stored
        .into_iter()
        .map(|entry| (entry.key.clone(), entry))
        .collect();
    for (key, lazy) in lazy {
        match lazy.entry(&key) {
            Some(entry) => merged.insert(key, entry),
            None => merged.remove(&key),
        };
    }
    merged.into_values().collect()
}
