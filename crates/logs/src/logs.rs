//! The contract every backend keeps.

use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;

/// Names one log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Log {
    /// The Task's uid: a later Task of the same name has logs of its own.
    pub task: Arc<str>,
    /// The step's name.
    pub step: Arc<str>,
}

impl Log {
    /// The log of a step of a Task.
    pub fn new(task: impl Into<Arc<str>>, step: impl Into<Arc<str>>) -> Self {
        Self {
            task: task.into(),
            step: step.into(),
        }
    }
}

/// Logs of steps. Shared as `Arc<dyn Logs>`. A log nobody wrote to is empty, not missing.
#[async_trait]
pub trait Logs: Send + Sync + 'static {
    /// Appends `bytes` if `start` is the size of the log, else stores nothing. The answer is the offset the log ends at
    /// now, after what was stored is durable.
    async fn append(&self, log: &Log, start: u64, bytes: Bytes) -> Result<u64, LogError>;

    /// Bytes from offset `start` on: at most `limit`, fewer where it suits the backend, none only at the end.
    async fn read(&self, log: &Log, start: u64, limit: usize) -> Result<Bytes, LogError>;

    /// The offset the log ends at.
    async fn size(&self, log: &Log) -> Result<u64, LogError>;

    /// Waits until the log is longer than `size`; its size then.
    async fn grown(&self, log: &Log, size: u64) -> Result<u64, LogError>;

    /// Removes all logs of a Task; who waits for them to grow is told [`LogError::Removed`].
    async fn remove(&self, task: &str) -> Result<(), LogError>;

    /// The uids of all Tasks that have logs, in no order.
    async fn tasks(&self) -> Result<Vec<Arc<str>>, LogError>;

    /// Resolves when logs can no longer be written until the process is started again; it should then exit.
    async fn fatal(&self) -> LogError;

    /// Puts everything on disk and stops serving.
    async fn close(&self) -> Result<(), LogError>;
}

/// Why logs could not do what they were asked.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LogError {
    /// The disk is full. Nothing was stored; reads go on. A retry helps once there is space.
    #[error(
        "the disk of the logs is full ({0}): free space on it; reads go on, logs wait at their hosts until then"
    )]
    Full(String),
    /// An fsync or write failed, so what reached the disk is unknown. Restart the process: it repairs the files.
    #[error("the logs could not be written to their disk ({0}): check the disk and restart the server")]
    Failed(String),
    /// The logs of the Task were removed while they were waited for. A retry does not help.
    #[error("the log was removed")]
    Removed,
    /// The logs were closed. A retry does not help.
    #[error("the logs are closed")]
    Closed,
    /// The database refused a read or a write for another reason; nothing was stored. A retry may help.
    #[error("the database of the logs failed: {0}")]
    Database(String),
}
