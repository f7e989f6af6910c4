//! What watchers are told: batches of events, progress marks, and why a watch ended.

use crate::{Entry, Revision};
use bytes::Bytes;
use futures::stream::BoxStream;
use std::sync::Arc;

/// A key that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The key.
    pub key: Arc<str>,
    /// What it was set to; `None` if it was deleted.
    pub value: Option<Bytes>,
    /// What it was before; `None` if it did not exist, or if the backend could not tell cheaply. The embedded
    /// backends always tell.
    pub previous: Option<Entry>,
}

/// Everything that happened to the watched keys at one revision. Never cut in two, so a watcher may resume after any
/// batch. Without events it is a progress mark: nothing else happened to the watched keys up to and including
/// `revision`, and resuming from there misses nothing, even after a crash of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The revision of all events in it.
    pub revision: Revision,
    /// The events, in the order they were written. Backends that give each write its own revision have one here.
    pub events: Vec<Event>,
}

/// Why a watch is over. It is the last item of its stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchEnd {
    /// The history after the asked revision is gone: compacted, or lost as lazy writes in a crash. Scan again and
    /// watch from the revision the scan returns.
    #[error("the history is only kept from revision {oldest} on")]
    Compacted {
        /// The smallest revision a watch can start after.
        oldest: Revision,
    },
    /// The asked revision has not happened yet: it is of another store, or of this one before a restore. Scan again.
    #[error("the revision is in the future, the store is at {head}")]
    Future {
        /// The latest revision.
        head: Revision,
    },
    /// The store is closed or failed, or the connection to it broke. Watch again from the last revision seen.
    #[error("the store stopped serving the watch: {0}")]
    Lost(String),
}

/// A running watch: batches in the order of their revisions; ends after the first error.
pub type WatchStream = BoxStream<'static, Result<Batch, WatchEnd>>;
