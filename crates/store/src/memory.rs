//! The store without a disk: the contract at its plainest, for tests and tools. What it holds ends with it.

use crate::feed::{Feed, History};
use crate::{
    Batch, Conflict, Durability, Entry, Event, Head, Revision, Store, StoreError, WatchEnd, WatchStream,
    Write,
};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::sync::Arc;

/// A store in memory.
#[derive(Debug)]
pub struct Memory {
    state: Arc<Mutex<State>>,
    feed: Arc<Feed>,
    epoch: String,
}

#[derive(Debug)]
struct State {
    entries: BTreeMap<Arc<str>, (Revision, Bytes)>,
    revision: Revision,
    compacted: Revision,
    closed: bool,
}

impl Memory {
    /// An empty store, at revision 1.
    pub fn new() -> Self {
        let state = State {
            entries: BTreeMap::new(),
            revision: 1,
            compacted: 0,
            closed: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            // All history stays in the feed until it is compacted.
            feed: Arc::new(Feed::new(0, 1, usize::MAX)),
            epoch: format!("{:016x}", RandomState::new().hash_one("epoch")),
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn open(&self) -> Result<(), StoreError> {
        if self.closed {
            Err(StoreError::Closed)
        } else {
            Ok(())
        }
    }

    fn entry(&self, key: &str) -> Option<Entry> {
        let (key, (revision, value)) = self.entries.get_key_value(key)?;
        Some(Entry {
            key: key.clone(),
            value: value.clone(),
            revision: *revision,
        })
    }

    fn apply(&mut self, write: Write) -> Result<Batch, Conflict> {
        let previous = self.entry(&write.key);
        if !write.admits(previous.as_ref().map(|entry| entry.revision)) {
            return Err(Conflict { current: previous });
        }
        self.revision += 1;
        match &write.value {
            Some(value) => self
                .entries
                .insert(write.key.clone(), (self.revision, value.clone())),
            None => self.entries.remove(&write.key),
        };
        let event = Event {
            key: write.key,
            value: write.value,
            previous,
        };
        Ok(Batch {
            revision: self.revision,
            events: vec![event],
        })
    }
}

#[async_trait]
impl Store for Memory {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let state = self.state.lock();
        state.open()?;
        Ok(state.entry(key))
    }

    async fn scan(
        &self,
        prefix: &str,
        from: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Revision), StoreError> {
        let state = self.state.lock();
        state.open()?;
        let entries = state
            .entries
            .range::<str, _>((Bound::Included(prefix.max(from)), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(prefix))
            .take(limit)
            .map(|(key, (revision, value))| Entry {
                key: key.clone(),
                value: value.clone(),
                revision: *revision,
            });
        Ok((entries.collect(), state.revision))
    }

    async fn commit(
        &self,
        writes: Vec<Write>,
        _: Durability,
    ) -> Result<Vec<Result<Revision, Conflict>>, StoreError> {
        let mut state = self.state.lock();
        state.open()?;
        let mut batches = Vec::with_capacity(writes.len());
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            answers.push(state.apply(write).map(|batch| {
                let revision = batch.revision;
                batches.push(batch);
                revision
            }));
        }
        // Published under the lock, so batches reach the feed in the order of their revisions.
        self.feed.publish(batches, state.revision);
        Ok(answers)
    }

    fn watch(&self, prefix: &str, after: Revision) -> WatchStream {
        self.feed
            .clone()
            .watch(Arc::new(Past(self.state.clone())), prefix, after)
    }

    async fn head(&self) -> Result<Head, StoreError> {
        Ok(self.feed.head())
    }

    async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.open()?;
        state.compacted = state.compacted.max(before.min(state.revision));
        self.feed.forget(state.compacted);
        Ok(())
    }

    fn epoch(&self) -> &str {
        &self.epoch
    }

    async fn fatal(&self) -> StoreError {
        std::future::pending().await
    }

    async fn close(&self) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.open()?;
        state.closed = true;
        self.feed.end("the store is closed");
        Ok(())
    }
}

/// What is not in the feed is gone.
struct Past(Arc<Mutex<State>>);

#[async_trait]
impl History for Past {
    fn admit(&self, after: Revision) -> Result<(), WatchEnd> {
        let state = self.0.lock();
        if after > state.revision {
            return Err(WatchEnd::Future { head: state.revision });
        }
        if after < state.compacted {
            return Err(WatchEnd::Compacted {
                oldest: state.compacted,
            });
        }
        Ok(())
    }

    async fn read(&self, _: &str, _: Revision, upto: Revision) -> Result<(Vec<Batch>, Revision), WatchEnd> {
        Err(WatchEnd::Compacted { oldest: upto })
    }
}
