//! Logs in one SQLite database beside the store.

mod tables;
mod writer;

use crate::growth::{Growth, News};
use crate::{Log, LogError, Logs};
use ::sqlite::{Database, Failure, OpenError};
use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use writer::{Change, Request};

/// Bytes from which packing is left to a blocking thread.
const LONG: usize = 32 << 10;

/// How logs on disk behave.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long ranges are gathered before they are written together. Default 5 ms.
    pub gather: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            gather: Duration::from_millis(5),
        }
    }
}

/// Logs on disk. Dropping closes them, which may wait for the disk.
#[derive(Debug)]
pub struct Sqlite {
    database: Database,
    growth: Arc<Growth>,
    queue: Sender<Request>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Sqlite {
    /// Opens `logs.db` in `folder`, making both where needed. Blocks on the disk.
    pub fn open(folder: &Path, options: Options) -> Result<Self, OpenError> {
        let path = folder.join("logs.db");
        let (database, db) = Database::open(&path, tables::SCHEMA)?;
        let growth = Arc::new(Growth::default());
        let (queue, requests) = channel();
        let thread = {
            let growth = growth.clone();
            std::thread::Builder::new()
                .name("logs-writer".into())
                .spawn(move || writer::run(db, &growth, options.gather, &requests))
                .map_err(|source| OpenError::Io { path, source })?
        };
        Ok(Self {
            database,
            growth,
            queue,
            thread: Mutex::new(Some(thread)),
        })
    }

    async fn ask(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<u64, LogError>>) -> Request,
    ) -> Result<u64, LogError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(request(reply)).map_err(|_| LogError::Closed)?;
        answer.await.unwrap_or(Err(LogError::Closed))
    }

    fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the writer of the logs had panicked");
        }
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.database.close();
        let (reply, _) = oneshot::channel();
        // An error means they were closed before.
        drop(self.queue.send(Request::Close(reply)));
        self.join();
    }
}

#[async_trait]
impl Logs for Sqlite {
    async fn append(&self, log: &Log, start: u64, bytes: Bytes) -> Result<u64, LogError> {
        let size = bytes.len();
        let packed = if size < LONG {
            tables::pack(&bytes)
        } else {
            tokio::task::spawn_blocking(move || tables::pack(&bytes))
                .await
                .unwrap_or_else(|gone| Err(gone.into()))
        };
        let packed = packed.map_err(|e| LogError::Database(format!("cannot pack the range: {e}")))?;
        let append = Change::Append {
            log: log.clone(),
            start,
            size,
            packed,
        };
        self.ask(|reply| Request::Change(append, reply)).await
    }

    async fn read(&self, log: &Log, start: u64, limit: usize) -> Result<Bytes, LogError> {
        let log = log.clone();
        let bytes = self
            .database
            .read(move |db| tables::read(db, &log, start, limit))
            .await?;
        Ok(bytes.into())
    }

    async fn size(&self, log: &Log) -> Result<u64, LogError> {
        let log = log.clone();
        Ok(self.database.read(move |db| tables::size(db, &log)).await?)
    }

    async fn grown(&self, log: &Log, size: u64) -> Result<u64, LogError> {
        // The wait begins before the look, so nothing between them is missed.
        let mut wait = self.growth.wait(log);
        let now = self.size(log).await?;
        if now > size {
            return Ok(now);
        }
        match wait.beyond(size).await {
            News::Size(now) => Ok(now),
            News::Removed => Err(LogError::Removed),
            News::Closed | News::None => Err(LogError::Closed),
        }
    }

    async fn remove(&self, task: &str) -> Result<(), LogError> {
        let remove = Change::Remove { task: task.into() };
        self.ask(|reply| Request::Change(remove, reply)).await?;
        Ok(())
    }

    async fn tasks(&self) -> Result<Vec<Arc<str>>, LogError> {
        Ok(self.database.read(|db| tables::tasks(db)).await?)
    }

    async fn fatal(&self) -> LogError {
        LogError::Failed(self.database.broken().await)
    }

    async fn close(&self) -> Result<(), LogError> {
        // Reads first: nobody may begin to wait after the writer has told those who wait.
        self.database.close();
        self.ask(Request::Close).await?;
        self.join();
        Ok(())
    }
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full(why) => Self::Full(why),
            Failure::Broken(why) => Self::Failed(why),
            Failure::Closed => Self::Closed,
            Failure::Other(why) => Self::Database(why),
        }
    }
}
