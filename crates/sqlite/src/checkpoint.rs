//! Moving pages from the WAL into the database, beside the writes.
//!
//! A passive checkpoint blocks nobody, but under a steady load the WAL never becomes empty by it and would grow without
//! end. So once it is long, the rest, which by then is short, is moved while the writer waits, and the WAL starts over.

use crate::{Failure, connection, database::Health};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Pages in the WAL after which the writer is made to wait for the rest: 64 MiB.
const LONG: i64 = (64 << 20) / 4096;

/// Checkpoints at every nudge, until the sender is dropped.
pub(crate) fn run(path: &Path, health: &Health, turn: &Arc<Mutex<()>>, nudges: &Receiver<()>) {
    let db = match connection::checkpointer(path) {
        Ok(db) => db,
        Err(error) => {
            return tracing::error!(%error, "no checkpoints: the database could not be opened for them");
        }
    };
    while nudges.recv().is_ok() {
        if health.failed().is_some() {
            return;
        }
        let outcome = checkpoint(&db, "PASSIVE").and_then(|pages| {
            if pages < LONG {
                return Ok(pages);
            }
            checkpoint(&db, "PASSIVE")?;
            let _turn = turn.lock();
            checkpoint(&db, "RESTART")
        });
        if let Err(error) = outcome {
            match Failure::of_write(&error) {
                Failure::Broken(why) => return health.fail(&why),
                other => tracing::warn!(error = %other, "a checkpoint did not finish; the next one goes on"),
            }
        }
    }
}

/// Moves everything and empties the WAL; for a clean end.
pub(crate) fn finish(path: &Path) -> Result<(), Failure> {
    let db = connection::checkpointer(path).map_err(|e| Failure::of_write(&e))?;
    checkpoint(&db, "TRUNCATE").map_err(|e| Failure::of_write(&e))?;
    Ok(())
}

/// The pages in the WAL at the time.
fn checkpoint(db: &rusqlite::Connection, mode: &str) -> rusqlite::Result<i64> {
    db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| row.get(1))
}
