//! An open database: one writer, a few readers, and whether its disk can still be trusted.

use crate::lock::{Lock, LockError};
use crate::readers::Readers;
use crate::repair::RepairError;
use crate::{Failure, checkpoint, connection, repair};
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Commits after which a checkpoint is asked for. A commit is some tens of pages under load.
const COMMITS_A_CHECKPOINT: u32 = 64;

/// The tables of a database. They are made when it is new; a database of another version is refused.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    /// Kept in `user_version`; 1 or more.
    pub version: i32,
    /// The statements that make the tables.
    pub create: &'static str,
}

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Somebody else has it open, or its lock file could not be made.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The folder could not be made or read.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The database.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An earlier write had failed and the repair did not succeed. Free space or replace the disk and start again.
    #[error("cannot repair {}: {source}", path.display())]
    Repair {
        /// The database.
        path: PathBuf,
        /// What failed.
        source: RepairError,
    },
    /// It was made by another version of the program. Use that one, or another folder.
    #[error("{} has format {found}, this program reads format {wanted}", path.display())]
    Format {
        /// The database.
        path: PathBuf,
        /// The version in the file.
        found: i32,
        /// The version the program reads.
        wanted: i32,
    },
    /// It was opened but could not be prepared: no space, or a disk that fails. Retry once that is mended.
    #[error("cannot use {}: {failure}", path.display())]
    Unusable {
        /// The database.
        path: PathBuf,
        /// What failed.
        failure: Failure,
    },
    /// SQLite refused it: not a database, damaged, no permission, no space.
    #[error("cannot open {}: {source}", path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// Whether the disk can still be trusted.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    path: PathBuf,
    failed: watch::Sender<Option<String>>,
}

impl Health {
    pub(crate) fn failed(&self) -> Option<String> {
        self.failed.borrow().clone()
    }

    /// Stops all writes for good and leaves the mark that makes the next start repair the files.
    pub(crate) fn fail(&self, why: &str) {
        let first = self.failed.send_if_modified(|failed| {
            let first = failed.is_none();
            failed.get_or_insert_with(|| why.to_owned());
            first
        });
        if !first {
            return;
        }
        tracing::error!(database = %self.path.display(), why, "a write to the disk failed: writes are stopped");
        if let Err(error) = repair::mark(&self.path) {
            tracing::error!(database = %self.path.display(), %error, "the database could not be marked for repair");
        }
    }
}

/// An open database, for reading. It may outlive its [`Writer`], but should not: close it then.
#[derive(Debug)]
pub struct Database {
    readers: Readers,
    health: Health,
}

/// The one handle that writes; it belongs to one thread and holds the lock of the database.
#[derive(Debug)]
pub struct Writer {
    db: Connection,
    path: PathBuf,
    health: Health,
    turn: Arc<Mutex<()>>,
    commits: u32,
    checkpoints: Option<(SyncSender<()>, JoinHandle<()>)>,
    _lock: Lock,
}

impl Database {
    /// Opens the database at `path`, making it and its folder where needed. Blocks on the disk.
    pub fn open(path: &Path, schema: Schema) -> Result<(Self, Writer), OpenError> {
        let io = |source| OpenError::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
            repair::sync_folder(folder).map_err(io)?;
        }
        let lock = Lock::take(&repair::beside(path, ".lock"))?;
        repair::run(path).map_err(|source| OpenError::Repair {
            path: path.to_owned(),
            source,
        })?;

        let database = |source| OpenError::Database {
            path: path.to_owned(),
            source,
        };
        let mut db = connection::writer(path).map_err(database)?;
        let found = migrate(&mut db, schema).map_err(database)?;
        if found != schema.version {
            return Err(OpenError::Format {
                path: path.to_owned(),
                found,
                wanted: schema.version,
            });
        }
        repair::sync_folder(path).map_err(io)?;

        let health = Health {
            path: path.to_owned(),
            failed: watch::Sender::new(None),
        };
        let turn = Arc::new(Mutex::new(()));
        let (nudge, nudges) = sync_channel(1);
        let thread = {
            let (path, health, turn) = (path.to_owned(), health.clone(), turn.clone());
            std::thread::Builder::new()
                .name("checkpoint".into())
                .spawn(move || checkpoint::run(&path, &health, &turn, &nudges))
                .map_err(io)?
        };
        let writer = Writer {
            db,
            path: path.to_owned(),
            health: health.clone(),
            turn,
            commits: 0,
            checkpoints: Some((nudge, thread)),
            _lock: lock,
        };
        Ok((
            Self {
                readers: Readers::new(path.to_owned()),
                health,
            },
            writer,
        ))
    }

    /// Runs `query` in one read transaction, off the async threads. Keep it under a second: the WAL cannot start over
    /// while it runs.
    pub async fn read<T, F>(&self, query: F) -> Result<T, Failure>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        self.readers.run(query).await
    }

    /// Resolves with the reason once writes have stopped for good.
    pub async fn broken(&self) -> String {
        let mut failed = self.health.failed.subscribe();
        match failed.wait_for(Option::is_some).await.map(|why| why.clone()) {
            Ok(Some(why)) => why,
            // The sender lives in `self`, so the value can only be a reason.
            _ => std::future::pending().await,
        }
    }

    /// Refuses further reads.
    pub fn close(&self) {
        self.readers.close();
    }
}

impl Writer {
    /// Runs `change` in one transaction and returns when it is on disk. On any failure nothing of it is visible,
    /// except that after [`Failure::Broken`] it may or may not be there at the next start.
    pub fn transact<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        let turn = self.turn.lock();
        if let Some(why) = self.health.failed() {
            return Err(Failure::Broken(why));
        }
        let done = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .and_then(|transaction| {
                let answer = change(&transaction)?;
                transaction.commit()?;
                Ok(answer)
            });
        drop(turn);
        match done {
            Ok(answer) => {
                self.commits += 1;
                if self.commits.is_multiple_of(COMMITS_A_CHECKPOINT)
                    && let Some((nudge, _)) = &self.checkpoints
                {
                    // Full means a checkpoint is already due.
                    let _ = nudge.try_send(());
                }
                Ok(answer)
            }
            Err(error) => {
                let failure = Failure::of_write(&error);
                if let Failure::Broken(why) = &failure {
                    self.health.fail(why);
                }
                Err(failure)
            }
        }
    }

    /// Reads with the writer's own connection; it sees exactly what was committed.
    pub fn view<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Failure> {
        query(&self.db).map_err(|e| Failure::of_read(&e))
    }

    /// Why writes have stopped, if they have.
    pub fn broken(&self) -> Option<String> {
        self.health.failed()
    }

    /// Moves everything into the database file and empties the WAL. The last thing to do with a writer.
    pub fn finish(mut self) -> Result<(), Failure> {
        if let Some(why) = self.health.failed() {
            return Err(Failure::Broken(why));
        }
        self.stop_checkpoints();
        checkpoint::finish(&self.path)
    }

    fn stop_checkpoints(&mut self) {
        if let Some((nudge, thread)) = self.checkpoints.take() {
            drop(nudge);
            if thread.join().is_err() {
                tracing::error!("the checkpoint thread had panicked");
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop_checkpoints();
    }
}

/// Makes the tables of a new database; the version it then has.
fn migrate(db: &mut Connection, schema: Schema) -> rusqlite::Result<i32> {
    let version = |db: &Connection| db.pragma_query_value(None, "user_version", |row| row.get(0));
    let found: i32 = version(db)?;
    if found != 0 {
        return Ok(found);
    }
    let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(schema.create)?;
    transaction.pragma_update(None, "user_version", schema.version)?;
    transaction.commit()?;
    version(db)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: Schema = Schema {
        version: 1,
        create: "CREATE TABLE t(n)",
    };

    #[test]
    fn a_database_of_a_newer_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        drop(
            Database::open(
                &path,
                Schema {
                    version: 2,
                    ..NUMBERS
                },
            )
            .unwrap(),
        );
        let refused = Database::open(&path, NUMBERS).unwrap_err();
        assert!(
            matches!(
                refused,
                OpenError::Format {
                    found: 2,
                    wanted: 1,
                    ..
                }
            ),
            "{refused}"
        );
    }

    #[test]
    fn a_file_that_is_no_database_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        std::fs::write(
            &path,
            "this is a text, and it is longer than the header of a database would be".repeat(20),
        )
        .unwrap();
        let refused = Database::open(&path, NUMBERS).unwrap_err().to_string();
        assert!(
            refused.contains("x.db") && refused.contains("not a database"),
            "{refused}"
        );
    }

    #[test]
    fn a_transaction_that_fails_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let (_db, mut writer) = Database::open(&folder.path().join("x.db"), NUMBERS).unwrap();
        let failed = writer.transact(|t| {
            t.execute("INSERT INTO t VALUES(1)", [])?;
            t.execute("INSERT INTO nowhere VALUES(1)", [])
        });
        assert!(matches!(failed, Err(Failure::Other(_))));
        let count = writer.view(|db| db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)));
        assert_eq!(count, Ok(0));
    }

    #[test]
    fn a_clean_end_leaves_everything_in_the_file_and_the_wal_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let (db, mut writer) = Database::open(&path, NUMBERS).unwrap();
        for n in 0..100 {
            writer
                .transact(|t| t.execute("INSERT INTO t VALUES(?1)", [n]))
                .unwrap();
        }
        writer.finish().unwrap();
        drop(db);
        assert_eq!(std::fs::metadata(repair::beside(&path, "-wal")).unwrap().len(), 0);
        let (_db, writer) = Database::open(&path, NUMBERS).unwrap();
        let count = writer.view(|db| db.query_row("SELECT count(*) FROM t", [], |row| row.get::<_, i64>(0)));
        assert_eq!(count, Ok(100));
    }
}
