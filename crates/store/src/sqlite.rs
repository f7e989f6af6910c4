//! The embedded store: one SQLite database in the server's data folder.
//!
//! A commit goes through a queue to the writer thread ([`writer`]); reads run beside it on their own connections;
//! watchers follow a feed of recent batches and read the log table for older ones. Answers from memory (lazy writes)
//! are laid over what is read ([`overlay`]). The files, their lock and their repair are the `sqlite` crate's.
//!
//! Revisions after a crash: all revisions that may have been answered are below a ceiling kept on disk, so the next
//! start goes on from the ceiling. Those between the last one on disk and the ceiling may be known to somebody although
//! what they stood for is lost; a watch from one of them ends as compacted, so its owner scans again.

mod overlay;
mod tables;
mod writer;

use crate::feed::{Feed, History};
use crate::{
    Batch, Conflict, Durability, Entry, Head, Revision, Store, StoreError, WatchEnd, WatchStream, Write,
};
use ::sqlite::{Database, Failure, OpenError};
use async_trait::async_trait;
use overlay::Overlay;
use parking_lot::{Mutex, RwLock};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tables::Meta;
use tokio::sync::oneshot;
use writer::{Commit, Engine, Request};

/// Log rows one read for a watcher looks at.
const HISTORY: usize = 1000;

/// How a store on disk behaves.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The longest a lazy write is kept from the disk. Default 500 ms.
    pub flush: Duration,
    /// How many revisions are reserved at a time, and skipped by a crash. Default 2^20.
    pub reserve: u64,
    /// Bytes of recent changes kept in memory for watchers. Default 8 MiB.
    pub recent: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flush: Duration::from_millis(500),
            reserve: 1 << 20,
            recent: 8 << 20,
        }
    }
}

/// A store on disk. Dropping it closes it, which may wait for the disk; [`Store::close`] also tells whether that went
/// well.
#[derive(Debug)]
pub struct Sqlite {
    shared: Arc<Shared>,
    queue: Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the writer, the readers and the watchers share.
#[derive(Debug)]
struct Shared {
    database: Database,
    feed: Arc<Feed>,
    overlay: Overlay,
    epoch: String,
    /// The last revision that may be read by anybody, a little ahead of those watchers were told.
    assigned: AtomicU64,
    compacted: AtomicU64,
    gaps: RwLock<Vec<(Revision, Revision)>>,
}

/// What is found on disk at a start.
struct Found {
    epoch: String,
    revision: Revision,
    compacted: Revision,
    swept: Revision,
    gaps: Vec<(Revision, Revision)>,
}

impl Sqlite {
    /// Opens `store.db` in `folder`, making both where needed. Blocks on the disk; a database whose disk had failed is
    /// first copied to a new file.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        let path = folder.join("store.db");
        let (database, mut db) = Database::open(&path, tables::SCHEMA)?;
        let found = db.transact(|db| {
            let last = tables::last(db)?;
            let ceiling = Meta::Ceiling.read(db)?;
            if ceiling > last + 1 {
                tables::add_gap(db, last, ceiling)?;
            }
            let revision = last.max(ceiling);
            Meta::Ceiling.write(db, revision + 1 + options.reserve)?;
            Ok(Found {
                epoch: tables::epoch(db)?,
                revision,
                compacted: Meta::Compacted.read(db)?,
                swept: Meta::Swept.read(db)?,
                gaps: tables::gaps(db)?,
            })
        });
        let found = found.map_err(|failure| OpenError::Unusable {
            path: path.clone(),
            failure,
        })?;
        let shared = Arc::new(Shared {
            database,
            feed: Arc::new(Feed::new(found.revision, found.revision, options.recent)),
            overlay: Overlay::default(),
            epoch: found.epoch,
            assigned: AtomicU64::new(found.revision),
            compacted: AtomicU64::new(found.compacted),
            gaps: RwLock::new(found.gaps),
        });
        let ceiling = found.revision + 1 + options.reserve;
        let engine = Engine::new(db, shared.clone(), options, found.revision, ceiling, found.swept);
        let (queue, requests) = channel();
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || engine.run(&requests))
            .map_err(|source| OpenError::Io { path, source })?;
        Ok(Self {
            shared,
            queue,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Asks the writer and waits for its answer.
    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Request,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(request(reply)).map_err(|_| StoreError::Closed)?;
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the store's writer had panicked");
        }
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        let (reply, _) = oneshot::channel();
        // An error means it was closed before.
        drop(self.queue.send(Request::Close { reply }));
        self.join();
    }
}

#[async_trait]
impl Store for Sqlite {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let key: Arc<str> = key.into();
        let Some(lazy) = self.shared.overlay.get(&key) else {
            return Ok(self
                .shared
                .database
                .read(move |db| tables::current(db, &key))
                .await?);
        };
        let stored = {
            let key = key.clone();
            self.shared
                .database
                .read(move |db| Ok((tables::last(db)?, tables::current(db, &key)?)))
        };
        let (durable, stored) = stored.await?;
        Ok(if lazy.revision > durable {
            lazy.entry(&key)
        } else {
            stored
        })
    }

    async fn scan(
        &self,
        prefix: &str,
        from: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Revision), StoreError> {
        // The revision is taken before the overlay is copied: all that is newer than the disk by then is in the copy.
        let head = self.shared.feed.head().revision;
        let lazy = self.shared.overlay.range(prefix, from);
        let (prefix, from) = (prefix.to_owned(), prefix.max(from).to_owned());
        let answer = self.shared.database.read(move |db| {
            let durable = tables::last(db)?;
            let lazy: Vec<_> = lazy
                .into_iter()
                .filter(|(_, lazy)| lazy.revision > durable)
                .collect();
            // Each lazy deletion may take one away again.
            let mut room = limit.saturating_add(lazy.len());
            let stored = tables::scan(db, &from, |key| {
                let take = room > 0 && key.starts_with(&prefix);
                room = room.saturating_sub(1);
                take
            })?;
            let newest = lazy.iter().map(|(_, lazy)| lazy.revision).max().unwrap_or(0);
            let mut entries = overlay::merge(stored, lazy);
            entries.truncate(limit);
            Ok((entries, durable.max(head).max(newest)))
        });
        Ok(answer.await?)
    }

    async fn commit(
        &self,
        writes: Vec<Write>,
        durability: Durability,
    ) -> Result<Vec<Result<Revision, Conflict>>, StoreError> {
        self.ask(|reply| {
            Request::Commit(Commit {
                writes,
                durability,
                reply,
            })
        })
        .await
    }

    fn watch(&self, prefix: &str, after: Revision) -> WatchStream {
        self.shared.feed.clone().watch(self.shared.clone(), prefix, after)
    }

    async fn head(&self) -> Result<Head, StoreError> {
        Ok(self.shared.feed.head())
    }

    async fn compact(&self, before: Revision) -> Result<(), StoreError> {
        self.ask(|reply| Request::Compact { before, reply }).await
    }

    fn epoch(&self) -> &str {
        &self.shared.epoch
    }

    async fn fatal(&self) -> StoreError {
        StoreError::Failed(self.shared.database.broken().await)
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.ask(|reply| Request::Close { reply }).await?;
        self.join();
        Ok(())
    }
}

impl Shared {
    fn compacted(&self) -> Revision {
        self.compacted.load(Ordering::SeqCst)
    }

    fn compact(&self, compacted: Revision) {
        self.compacted.store(compacted, Ordering::SeqCst);
        self.gaps.write().retain(|(_, before)| *before > compacted);
    }
}

#[async_trait]
impl History for Shared {
    fn admit(&self, after: Revision) -> Result<(), WatchEnd> {
        if after > self.assigned.load(Ordering::SeqCst) {
            return Err(WatchEnd::Future {
                head: self.feed.head().revision,
            });
        }
        let compacted = self.compacted();
        if after < compacted {
            return Err(WatchEnd::Compacted { oldest: compacted });
        }
        let gaps = self.gaps.read();
        match gaps.iter().find(|(start, end)| *start < after && after < *end) {
            Some((_, end)) => Err(WatchEnd::Compacted { oldest: *end }),
            None => Ok(()),
        }
    }

    async fn read(
        &self,
        prefix: &str,
        after: Revision,
        upto: Revision,
    ) -> Result<(Vec<Batch>, Revision), WatchEnd> {
        let prefix = prefix.to_owned();
        let read = self.database.read(move |db| {
            let compacted = Meta::Compacted.read(db)?;
            if after < compacted {
                return Ok(Err(WatchEnd::Compacted { oldest: compacted }));
            }
            tables::changes(db, &prefix, after, upto, HISTORY).map(Ok)
        });
        read.await
            .unwrap_or_else(|failure| Err(WatchEnd::Lost(failure.to_string())))
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full(why) => Self::Full(why),
            Failure::Broken(why) => Self::Failed(why),
            Failure::Closed => Self::Closed,
            Failure::Other(why) => Self::Database(why),
        }
    }
}
