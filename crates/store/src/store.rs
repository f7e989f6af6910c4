//! The contract every backend keeps.

use crate::{Conflict, Durability, Entry, Revision, WatchStream, Write};
use async_trait::async_trait;

/// A versioned key-value store with compare-and-swap and ordered watches.
///
/// Keys are ordered by their bytes. A write that was answered is seen by every later read, and by every watch in the
/// order of revisions. Shared as `Arc<dyn Store>`.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// The entry at `key`, as of now.
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError>;

    /// Up to `limit` entries whose keys start with `prefix` and are not smaller than `from`, in the order of keys, all
    /// as of the one revision returned with them. The next page starts `from` the last key with a zero byte appended;
    /// pages are of different revisions: a watch from the first page's revision repairs what changed between them.
    async fn scan(
        &self,
        prefix: &str,
        from: &str,
        limit: usize,
    ) -> Result<(Vec<Entry>, Revision), StoreError>;

    /// Applies `writes` in order, each guarded on its own (a conflict stops none of the others; a guard sees the
    /// earlier writes of the same call), and answers one result a write. All are made durable together, with those of
    /// other callers waiting at the same time. An error means: none of these writes is visible or will become so,
    /// except after [`StoreError::Failed`], where they may or may not be there after the restart.
    async fn commit(
        &self,
        writes: Vec<Write>,
        durability: Durability,
    ) -> Result<Vec<Result<Revision, Conflict>>, StoreError>;

    /// Every change after revision `after` to keys that start with `prefix`, in order, then each new one as it comes.
    /// Once the watcher has caught up and what came last was not its own, it gets a progress mark.
    fn watch(&self, prefix: &str, after: Revision) -> WatchStream;

    /// Where the store is.
    async fn head(&self) -> Result<Head, StoreError>;

    /// Forgets the history up to and including revision `before`: watches after smaller revisions end with
    /// [`crate::WatchEnd::Compacted`], those after `before` or later go on. Current entries stay. Clamped to what is
    /// durable.
    async fn compact(&self, before: Revision) -> Result<(), StoreError>;

    /// A random id made with the store. Another one means another history: after a restore, what clients remember of
    /// the old one is no longer true.
    fn epoch(&self) -> &str;

    /// Resolves when the store can no longer write and never will until the process is started again. The process
    /// should then exit with that error: the next start repairs the files.
    async fn fatal(&self) -> StoreError;

    /// Puts everything on disk and stops serving; watches end as lost, later calls with [`StoreError::Closed`].
    async fn close(&self) -> Result<(), StoreError>;
}

/// Where a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The latest revision answered to anybody.
    pub revision: Revision,
    /// The latest revision that a crash cannot take back. Smaller than `revision` only by lazy writes.
    pub durable: Revision,
}

/// Why the store could not do what it was asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full. Nothing was written; reads go on. A retry helps once there is space.
    #[error(
        "the disk of the store is full ({0}): free space on it; reads go on, writes are refused until then"
    )]
    Full(String),
    /// An fsync or write failed, so what reached the disk is unknown. Every later write is refused: restart the
    /// process, the next start repairs the files. See [`Store::fatal`].
    #[error(
        "the store could not write to its disk ({0}): writes are stopped, check the disk and restart the server"
    )]
    Failed(String),
    /// The store was closed. A retry does not help.
    #[error("the store is closed")]
    Closed,
    /// The database refused a read or a write for another reason. Nothing was written; a retry may help.
    #[error("the store's database failed: {0}")]
    Database(String),
}
