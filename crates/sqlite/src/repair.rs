//! The way back after a failed fsync.
//!
//! When an fsync fails, the kernel may mark the pages clean although they never reached the disk. A file that is
//! reopened then reads well from the page cache, later commits are acknowledged behind a hole, and a power cut loses
//! them. So the database is marked as suspect, the process ends, and the next start copies everything readable into a
//! new file that is synced as a whole:
//!
//! 1. [`mark`]: `x.db.suspect` is made.
//! 2. copy: `x.db` with its WAL → `x.db.copy`, synced, renamed to `x.db.new`, folder synced. From here the new file is
//!    complete and the old ones are not needed.
//! 3. swap: the old WAL is removed first (it must never meet the new file), then `x.db.new` takes the name `x.db`,
//!    then the mark goes. Each step may be repeated, so a crash in between is harmless.

use crate::connection;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Notes that what is on disk is unknown.
pub(crate) fn mark(db: &Path) -> io::Result<()> {
    let mark = beside(db, ".suspect");
    File::create(&mark)?;
    sync_folder(db)
}

/// Repairs the database if it is marked or a repair was interrupted. Must run under the lock, before anything opens it.
pub(crate) fn run(db: &Path) -> Result<(), RepairError> {
    let suspect = beside(db, ".suspect");
    let new = beside(db, ".new");
    if !new.exists() {
        if !suspect.exists() {
            return Ok(());
        }
        tracing::warn!(database = %db.display(), "an earlier write to the disk failed: copying the database to a new file");
        copy(db, &new)?;
    }
    for end in ["-wal", "-shm"] {
        remove(&beside(db, end))?;
    }
    sync_folder(db)?;
    fs::rename(&new, db)?;
    sync_folder(db)?;
    remove(&suspect)?;
    sync_folder(db)?;
    tracing::info!(database = %db.display(), "the database was copied to a new file");
    Ok(())
}

fn copy(db: &Path, new: &Path) -> Result<(), RepairError> {
    let part = beside(db, ".copy");
    remove(&part)?;
    if db.exists() {
        let old = connection::reader(db)?;
        old.pragma_update(None, "query_only", false)?;
        old.execute("VACUUM INTO ?1", [part.to_string_lossy()])?;
    } else {
        // The very first write failed: there is nothing to keep.
        File::create(&part)?;
    }
    File::open(&part)?.sync_all()?;
    fs::rename(&part, new)?;
    sync_folder(db)?;
    Ok(())
}

/// Why a repair did not succeed. Nothing is lost: the next start tries again.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// A file could not be handled.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The old database could not be read, or the new one not be written.
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// The file with `end` appended to the database's name.
pub(crate) fn beside(db: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(db.as_os_str());
    name.push(end);
    PathBuf::from(name)
}

/// Makes names in the database's folder durable. Only Unix needs it, and only there can a folder be opened for it.
pub(crate) fn sync_folder(db: &Path) -> io::Result<()> {
    #[cfg(unix)]
    if let Some(folder) = db.parent() {
        File::open(folder)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = db;
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(db: &Path) -> Vec<i64> {
        let db = connection::writer(db).unwrap();
        let mut query = db.prepare("SELECT n FROM t ORDER BY n").unwrap();
        query
            .query_map([], |r| r.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect()
    }

    fn make(db: &Path, rows: &[i64]) {
        let db = connection::writer(db).unwrap();
        db.execute_batch("CREATE TABLE t(n)").unwrap();
        for n in rows {
            db.execute("INSERT INTO t VALUES(?1)", [n]).unwrap();
        }
    }

    #[test]
    fn an_unmarked_database_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("x.db");
        make(&db, &[1]);
        let wal = fs::read(beside(&db, "-wal")).unwrap();
        run(&db).unwrap();
        assert_eq!(fs::read(beside(&db, "-wal")).unwrap(), wal);
    }

    #[test]
    fn a_marked_database_is_copied_with_what_is_only_in_its_wal() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("x.db");
        make(&db, &[1, 2, 3]);
        mark(&db).unwrap();
        run(&db).unwrap();
        assert!(
            !beside(&db, "-wal").exists()
                && !beside(&db, ".suspect").exists()
                && !beside(&db, ".new").exists()
        );
        assert_eq!(rows(&db), [1, 2, 3]);
    }

    #[test]
    fn an_interrupted_swap_never_mixes_the_old_wal_with_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("x.db");
        make(&db, &[1, 2]);
        mark(&db).unwrap();
        copy(&db, &beside(&db, ".new")).unwrap();
        // The crash comes here; the old database and its WAL are still in place and must both go.
        run(&db).unwrap();
        assert_eq!(rows(&db), [1, 2]);
    }

    #[test]
    fn a_half_made_copy_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let db = folder.path().join("x.db");
        make(&db, &[7]);
        mark(&db).unwrap();
        fs::write(beside(&db, ".copy"), b"half of it").unwrap();
        run(&db).unwrap();
        assert_eq!(rows(&db), [7]);
    }
}
