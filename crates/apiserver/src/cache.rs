//! All objects in memory: what lists and gets are answered from, and what watchers follow.
//!
//! Per kind, one immutable ordered map a namespace and a ring of recent events, both under one lock: whoever holds it
//! sees a list and the place in the ring that follows it. Taking a snapshot is cloning a map, which costs nothing; the
//! writer copies only the paths it changes while a snapshot is held. One task, the pump, applies what the store
//! commits, in the store's order, a batch of commits at a time. A write is answered once the cache holds it
//! ([`Cache::reaches`]), so everybody reads their own writes.
//!
//! All objects, finished ones too, stay in memory: some 1.2 times their JSON. `maxFinished` and TTLs bound them.

mod applied;
mod having;
mod object_index;
mod pins;
mod pump;
mod ring;
mod watchers;

pub use object_index::IndexKey;
pub use pins::{Pin, Pins};
pub use ring::{Bounds, Cursor, Event, Look};
pub use watchers::Waker;

use crate::object::{Damaged, Object, Shape};
use applied::Applied;
use having::Having;
use imbl::OrdMap;
use parking_lot::RwLock;
use ring::Ring;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use store::{Revision, Store};
use watchers::Watchers;

/// The objects of one namespace by name.
pub type Names = OrdMap<Arc<str>, Arc<Object>>;
/// All objects of a kind by namespace and name.
pub type Objects = OrdMap<Arc<str>, Names>;

/// The objects and recent events of one kind.
#[derive(Debug)]
pub struct KindCache {
    /// The kind.
    pub shape: Arc<Shape>,
    state: RwLock<State>,
    watchers: Watchers,
}

#[derive(Debug)]
struct State {
    objects: Objects,
    /// For each selectable field, the objects by its value: what `spec.nodeName=web03` lists.
    having: Having,
    ring: Ring,
    /// The revision of the last event.
    last: Revision,
}

/// All objects of a kind as of one revision, and the place in the ring that follows.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The objects.
    pub objects: Objects,
    /// The revision.
    pub revision: Revision,
    /// The events after it.
    pub cursor: Cursor,
}

impl KindCache {
    fn new(shape: Arc<Shape>, bounds: Bounds) -> Self {
        let ring = Ring::new(&shape.kind, 0, bounds);
        let watchers = Watchers::new(&shape.kind);
        let state = State {
            objects: Objects::new(),
            having: Having::new(&shape.kind),
            ring,
            last: 0,
        };
        Self {
            shape,
            state: RwLock::new(state),
            watchers,
        }
    }

    /// An object; `namespace` is empty for cluster kinds.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.state.read().objects.get(namespace)?.get(name).cloned()
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        let objects = self.state.read().objects.clone();
        objects.values().map(Names::len).sum()
    }

    /// Looks into the ring; see [`Ring::look`].
    pub fn look(&self, cursor: &mut Cursor, key: Option<IndexKey<'_>>, limit: usize) -> Look {
        self.state.read().ring.look(cursor, key, limit)
    }

    /// The place after `revision`, or the oldest revision a watch can start after.
    pub fn after(&self, revision: Revision) -> Result<Cursor, Revision> {
        self.state.read().ring.after(revision)
    }

    /// A snapshot as it was at an earlier revision, as far back as the ring goes; else the oldest revision it knows.
    pub fn back_to(&self, mut snapshot: Snapshot, revision: Revision) -> Result<Snapshot, Revision> {
        let events = {
            let state = self.state.read();
            let mut cursor = state.ring.after(revision)?;
            match state.ring.look(&mut cursor, None, usize::MAX) {
                Look::Events(events) => events,
                Look::Overrun(oldest) => return Err(oldest),
            }
        };
        for event in events
            .iter()
            .rev()
            .filter(|event| event.revision <= snapshot.revision)
        {
            let Some(object) = event.before.as_ref().or(event.now.as_ref()) else {
                continue;
            };
            let names = snapshot.objects.entry(object.namespace.clone()).or_default();
            match &event.before {
                Some(before) => names.insert(before.name.clone(), before.clone()),
                None => names.remove(&object.name),
            };
        }
        snapshot.revision = revision;
        Ok(snapshot)
    }

    /// A waker for events of `key`, or for all.
    pub fn waker(&self, key: Option<IndexKey<'_>>) -> Waker {
        self.watchers.add(key)
    }
}

/// Everything in memory.
#[derive(Debug)]
pub struct Cache {
    kinds: HashMap<Box<str>, Arc<KindCache>>,
    applied: Applied,
}

impl Cache {
    /// An empty cache for `kinds`.
    pub fn new(shapes: impl IntoIterator<Item = Arc<Shape>>, bounds: Bounds) -> Self {
        let kinds = shapes
            .into_iter()
            .map(|shape| (shape.key_prefix().into(), Arc::new(KindCache::new(shape, bounds))))
            .collect();
        Self {
            kinds,
            applied: Applied::default(),
        }
    }

    /// The parts of all kinds.
    pub fn kinds(&self) -> impl Iterator<Item = &Arc<KindCache>> {
        self.kinds.values()
    }

    /// The part for a kind by its names; `None` if it is not served.
    pub fn plural(&self, group: &str, plural: &str) -> Option<&Arc<KindCache>> {
        let group = if group.is_empty() { "core" } else { group };
        self.kinds.get(format!("{group}/{plural}/").as_str())
    }

    /// The revision up to which everything is in it.
    pub fn revision(&self) -> Revision {
        self.applied.revision()
    }

    /// Returns once everything up to `revision` is in it.
    pub async fn reaches(&self, revision: Revision) {
        self.applied.reaches(revision).await;
    }

    /// All objects of a kind as of now.
    pub fn snapshot(&self, kind: &KindCache) -> Snapshot {
        // Before the lock: all that is applied by now is in the map, so the map is complete up to here at least.
        let applied = self.revision();
        let state = kind.state.read();
        let revision = applied.max(state.last);
        Snapshot {
            objects: state.objects.clone(),
            revision,
            cursor: state.ring.end(),
        }
    }

    /// The objects whose selectable field number `field` has a value, by namespace and name, as of now.
    pub fn having(&self, kind: &KindCache, field: usize, value: &str) -> (Vec<Arc<Object>>, Revision) {
        let applied = self.revision();
        let state = kind.state.read();
        (state.having.objects(field, value), applied.max(state.last))
    }

    /// Applies events of one kind, in order, and wakes who watches them.
    fn apply(&self, kind: &KindCache, changes: Vec<Change>, now: Instant) {
        let mut events = Vec::with_capacity(changes.len());
        let mut state = kind.state.write();
        for change in changes {
            state.last = state.last.max(change.revision);
            let before = match &change.object {
                Some(object) => state
                    .objects
                    .entry(change.namespace)
                    .or_default()
                    .insert(change.name, object.clone()),
                None => {
                    let Some(names) = state.objects.get_mut(&change.namespace) else {
                        continue;
                    };
                    let before = names.remove(&change.name);
                    if names.is_empty() {
                        state.objects.remove(&change.namespace);
                    }
                    before
                }
            };
            if change.object.is_none() && before.is_none() {
                continue;
            }
            state.having.change(before.as_deref(), change.object.as_ref());
            let event = Arc::new(Event {
                revision: change.revision,
                now: change.object,
                before,
            });
            state.ring.push(event.clone(), now);
            events.push(event);
        }
        drop(state);
        kind.watchers.wake(&events);
    }
}

/// One write as the pump hands it over.
struct Change {
    namespace: Arc<str>,
    name: Arc<str>,
    revision: Revision,
    object: Option<Arc<Object>>,
}

/// Reads the store into `cache` and keeps it up to date. Returns once the cache is complete; the task goes on until
/// the store is closed.
pub async fn fill(
    cache: Arc<Cache>,
    store: Arc<dyn Store>,
) -> Result<tokio::task::JoinHandle<()>, FillError> {
    let start = pump::load(&cache, &*store).await?;
    let pump = tokio::spawn(pump::run(cache.clone(), store.clone(), start));
    cache.reaches(start).await;
    Ok(pump)
}

/// Why the cache could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// A stored object cannot be read; restore it from a backup, or remove it from the store.
    #[error(transparent)]
    Damaged(#[from] Damaged),
}
