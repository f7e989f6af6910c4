//! A few connections for reading, each used by one blocking thread at a time.

use crate::{Failure, connection};
use parking_lot::Mutex;
use rusqlite::Transaction;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many reads run at the same time.
const READERS: usize = 4;

/// The read connections of one database, opened when first needed.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    idle: Arc<Mutex<Vec<rusqlite::Connection>>>,
    turns: Semaphore,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            idle: Arc::default(),
            turns: Semaphore::new(READERS),
        }
    }

    /// Runs `query` in one read transaction, so all it sees is of one moment.
    pub(crate) async fn run<T, F>(&self, query: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let _turn = self.turns.acquire().await.map_err(|_| Failure::Closed)?;
        let path = self.path.clone();
        let idle = self.idle.clone();
        let task = tokio::task::spawn_blocking(move || -> rusqlite::Result<T> {
            let kept = idle.lock().pop();
            let mut db = match kept {
                Some(db) => db,
                None => connection::reader(&path)?,
            };
            let answer = db.transaction().and_then(|view| query(&view));
            if answer.is_ok() {
                idle.lock().push(db);
            }
            answer
        });
        match task.await {
            Ok(answer) => answer.map_err(|e| Failure::of_read(&e)),
            Err(gone) => Err(Failure::Other(format!("the query was given up: {gone}"))),
        }
    }

    /// Refuses further reads and closes the idle connections.
    pub(crate) fn close(&self) {
        self.turns.close();
        self.idle.lock().clear();
    }
}
