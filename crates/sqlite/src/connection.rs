//! How connections are set up.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// How long a statement waits for a lock. The parts of a database take turns by themselves, so only a reader that
/// rebuilds the index of the WAL at the start is ever waited for.
const BUSY: Duration = Duration::from_secs(30);
/// The page size of new databases, in bytes. An object of the API is a kilobyte or two.
const PAGE: u32 = 4096;
/// What the WAL file is cut back to when it is started over, in bytes.
const WAL_KEPT: i64 = 32 << 20;

/// The connection that writes.
pub(crate) fn writer(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | NO_MUTEX,
    )?;
    common(&db)?;
    db.pragma_update(None, "page_size", PAGE)?;
    db.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    db.pragma_update(None, "synchronous", "full")?;
    db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
    db.pragma_update_and_check(None, "journal_size_limit", WAL_KEPT, |_| Ok(()))?;
    db.pragma_update(None, "cache_size", -16_384)?;
    Ok(db)
}

/// A connection that only reads.
pub(crate) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    // Opened for writing because a reader of a WAL takes part in its index; `query_only` refuses everything else.
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | NO_MUTEX)?;
    common(&db)?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

/// The connection that checkpoints.
pub(crate) fn checkpointer(path: &Path) -> rusqlite::Result<Connection> {
    let db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | NO_MUTEX)?;
    common(&db)?;
    db.pragma_update(None, "synchronous", "full")?;
    db.pragma_update_and_check(None, "journal_size_limit", WAL_KEPT, |_| Ok(()))?;
    Ok(db)
}

/// Each connection is used by one thread at a time.
const NO_MUTEX: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

fn common(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY)?;
    // Closing must not move pages: after a failed fsync that would write unknown bytes into the database.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(())
}
