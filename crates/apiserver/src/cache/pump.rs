//! Moves what the store commits into the cache, in the store's order.

use super::having::Having;
use super::{Cache, Change, FillError, KindCache};
use crate::object::Object;
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Batch, Entry, Revision, Store, WatchEnd};

/// Entries a scan reads at a time.
const PAGE: usize = 2_000;
/// Batches applied at a time at most.
const CHUNK: usize = 512;
/// Between tries to reach the store again.
const RETRY: Duration = Duration::from_millis(200);

/// Reads all kinds anew. Answers the revision to watch from. Pages of a scan are of different revisions: the watch
/// starts after the first page's and repairs what changed while the rest was read.
pub(super) async fn load(cache: &Cache, store: &dyn Store) -> Result<Revision, FillError> {
    let start = store.head().await?.revision;
    for (prefix, kind) in &cache.kinds {
        let mut from = String::new();
        let mut objects = super::Objects::new();
        loop {
            let (entries, _) = store.scan(prefix, &from, PAGE).await?;
            for Entry { key, value, revision } in &entries {
                let Some((namespace, name)) = names(&key[prefix.len()..]) else {
                    continue;
                };
                let object = Object::new(&kind.shape, namespace.clone(), name.clone(), value, *revision)?;
                objects
                    .entry(namespace)
                    .or_default()
                    .insert(name, Arc::new(object));
            }
            match entries.last() {
                Some(last) if entries.len() == PAGE => from = format!("{}\0", last.key),
                _ => break,
            }
        }
        let mut having = Having::new(&kind.shape.kind);
        objects
            .values()
            .flat_map(|names| names.values())
            .for_each(|object| having.change(None, Some(object)));
        let mut state = kind.state.write();
        state.objects = objects;
        state.having = having;
        state.ring.reset(start);
        state.last = start;
        drop(state);
        kind.watchers.wake_all();
    }
    cache.applied.advance(start);
    Ok(start)
}

/// Follows the store from `after` on until it is closed for good.
pub(super) async fn run(cache: Arc<Cache>, store: Arc<dyn Store>, mut after: Revision) {
    loop {
        let mut chunks = store.watch("", after).ready_chunks(CHUNK);
        let end = loop {
            let Some(chunk) = chunks.next().await else {
                break None;
            };
            let (batches, end) = split(chunk);
            if let Some(last) = batches.last() {
                after = last.revision;
                apply(&cache, &batches);
            }
            if end.is_some() {
                break end;
            }
        };
        match end {
            Some(WatchEnd::Compacted { .. } | WatchEnd::Future { .. }) => match load(&cache, &*store).await {
                Ok(start) => after = start,
                Err(error) => tracing::error!(%error, "the cache cannot be filled again"),
            },
            Some(WatchEnd::Lost(why)) => tracing::debug!(why, "the watch of the store ended"),
            None => {}
        }
        if matches!(store.head().await, Err(store::StoreError::Closed)) {
            return;
        }
        tokio::time::sleep(RETRY).await;
    }
}

fn split(chunk: Vec<Result<Batch, WatchEnd>>) -> (Vec<Batch>, Option<WatchEnd>) {
    let mut batches = Vec::with_capacity(chunk.len());
    for item in chunk {
        match item {
            Ok(batch) => batches.push(batch),
            Err(end) => return (batches, Some(end)),
        }
    }
    (batches, None)
}

/// Puts batches into the cache, kind by kind, then says how far it is complete.
fn apply(cache: &Cache, batches: &[Batch]) {
    let now = Instant::now();
    let mut changes: HashMap<&str, (&Arc<KindCache>, Vec<Change>)> = HashMap::new();
    for batch in batches {
        for event in &batch.events {
            let Some((prefix, rest)) = kind_prefix(&event.key) else {
                continue;
            };
            let Some((_, kind)) = cache.kinds.get_key_value(prefix) else {
                continue;
            };
            let Some((namespace, name)) = names(rest) else {
                continue;
            };
            let object = match &event.value {
                None => None,
                Some(value) => {
                    match Object::new(
                        &kind.shape,
                        namespace.clone(),
                        name.clone(),
                        value,
                        batch.revision,
                    ) {
                        Ok(object) => Some(Arc::new(object)),
                        Err(error) => {
                            tracing::error!(%error, "an object that cannot be read is left as it was");
                            continue;
                        }
                    }
                }
            };
            let change = Change {
                namespace,
                name,
                revision: batch.revision,
                object,
            };
            changes
                .entry(prefix)
                .or_insert_with(|| (kind, Vec::new()))
                .1
                .push(change);
        }
    }
    for (kind, changes) in changes.into_values() {
        cache.apply(kind, changes, now);
    }
    if let Some(last) = batches.last() {
        cache.applied.advance(last.revision);
    }
}

/// `prow.windows/jobs/` and what follows.
fn kind_prefix(key: &str) -> Option<(&str, &str)> {
    let group = key.find('/')? + 1;
    let plural = group + key[group..].find('/')? + 1;
    Some(key.split_at(plural))
}

/// `ops/patch-web`, or `/patch-web` of cluster kinds.
fn names(rest: &str) -> Option<(Arc<str>, Arc<str>)> {
    let (namespace, name) = rest.split_once('/')?;
    Some((namespace.into(), name.into()))
}
