//! The tables of `store.db` and every statement on them.
//!
//! `log` holds each change once, under its revision; `cur` names the revision of each living key. So a value is written
//! once, and history and state are the same rows. `prev` is the revision a change superseded: it lets compaction find
//! what is no longer needed without searching, and a resumed watch what was there before.

use crate::{Batch, Entry, Event, Revision};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};
use sqlite::Schema;
use std::sync::Arc;

pub(super) const SCHEMA: Schema = Schema {
    version: 1,
    create: "
        -- A change; value is null where the key was deleted, prev is null where it did not exist before.
        CREATE TABLE log(rev INTEGER PRIMARY KEY, key TEXT NOT NULL, value BLOB, prev INTEGER);
        CREATE TABLE cur(key TEXT PRIMARY KEY, rev INTEGER NOT NULL) WITHOUT ROWID;
        -- Revisions in between may have been answered lazily and lost in a crash.
        CREATE TABLE gap(after INTEGER PRIMARY KEY, before INTEGER NOT NULL);
        -- ceiling: above all revisions that may have been answered. compacted: history is kept after it.
        -- swept: up to here superseded rows are gone.
        CREATE TABLE meta(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
        INSERT INTO meta VALUES('epoch', lower(hex(randomblob(16)))), ('ceiling', 1), ('compacted', 0), ('swept', 0);
    ",
};

type Result<T> = rusqlite::Result<T>;

/// A number of `meta`.
#[derive(Clone, Copy)]
pub(super) enum Meta {
    Ceiling,
    Compacted,
    Swept,
}

impl Meta {
    fn name(self) -> &'static str {
        match self {
            Self::Ceiling => "ceiling",
            Self::Compacted => "compacted",
            Self::Swept => "swept",
        }
    }

    pub(super) fn read(self, db: &Connection) -> Result<Revision> {
        db.prepare_cached("SELECT value FROM meta WHERE name = ?1")?
            .query_row([self.name()], |row| revision(row, 0))
    }

    pub(super) fn write(self, db: &Connection, value: Revision) -> Result<()> {
        db.prepare_cached("UPDATE meta SET value = ?2 WHERE name = ?1")?
            .execute(params![self.name(), value.cast_signed()])?;
        Ok(())
    }
}

pub(super) fn epoch(db: &Connection) -> Result<String> {
    db.query_row("SELECT value FROM meta WHERE name = 'epoch'", [], |row| {
        row.get(0)
    })
}

/// The last revision on disk. Swept rows may have been the last, but are never after `compacted`.
pub(super) fn last(db: &Connection) -> Result<Revision> {
    let logged = db
        .prepare_cached("SELECT ifnull(max(rev), 0) FROM log")?
        .query_row([], |row| revision(row, 0))?;
    Ok(logged.max(Meta::Compacted.read(db)?))
}

/// The living entry at `key`. Not one statement with a join: SQLite prepares that anew for each key.
pub(super) fn current(db: &Connection, key: &Arc<str>) -> Result<Option<Entry>> {
    let rev = db
        .prepare_cached("SELECT rev FROM cur WHERE key = ?1")?
        .query_row([&**key], |row| row.get(0))
        .optional()?;
    match rev {
        Some(rev) => logged(db, key, rev),
        None => Ok(None),
    }
}

/// What the change at `rev` put at `key`.
fn logged(db: &Connection, key: &Arc<str>, rev: i64) -> Result<Option<Entry>> {
    db.prepare_cached("SELECT rev, value FROM log WHERE rev = ?1")?
        .query_row([rev], |row| {
            Ok(Entry {
                key: key.clone(),
                revision: revision(row, 0)?,
                value: value(row, 1)?,
            })
        })
        .optional()
}

/// Living entries from `from` on in the order of keys, as long as `take` says so.
pub(super) fn scan(db: &Connection, from: &str, mut take: impl FnMut(&str) -> bool) -> Result<Vec<Entry>> {
    let mut query = db.prepare_cached(
        "SELECT cur.key, log.rev, log.value FROM cur JOIN log ON log.rev = cur.rev WHERE cur.key >= ?1 ORDER BY cur.key",
    )?;
    let mut rows = query.query([from])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let key = row.get_ref(0)?.as_str()?;
        if !take(key) {
            break;
        }
        entries.push(Entry {
            key: key.into(),
            revision: revision(row, 1)?,
            value: value(row, 2)?,
        });
    }
    Ok(entries)
}

/// Adds a change to both tables.
pub(super) fn append(db: &Connection, batch: &Batch) -> Result<()> {
    let rev = batch.revision.cast_signed();
    for event in &batch.events {
        let prev = event.previous.as_ref().map(|entry| entry.revision.cast_signed());
        db.prepare_cached("INSERT INTO log(rev, key, value, prev) VALUES(?1, ?2, ?3, ?4)")?
            .execute(params![rev, &*event.key, event.value.as_deref(), prev])?;
        match event.value {
            Some(_) => db
                .prepare_cached(
                    "INSERT INTO cur VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET rev = excluded.rev",
                )?
                .execute(params![&*event.key, rev])?,
            None => db
                .prepare_cached("DELETE FROM cur WHERE key = ?1")?
                .execute([&*event.key])?,
        };
    }
    Ok(())
}

/// Changes in (`after`, `upto`] whose keys start with `prefix`, and the revision up to which they are complete: at most
/// `rows` rows are looked at.
pub(super) fn changes(
    db: &Connection,
    prefix: &str,
    after: Revision,
    upto: Revision,
    rows: usize,
) -> Result<(Vec<Batch>, Revision)> {
    let mut query = db.prepare_cached(
        "SELECT rev, key, value, prev FROM log WHERE rev > ?1 AND rev <= ?2 ORDER BY rev LIMIT ?3",
    )?;
    let limit = i64::try_from(rows).unwrap_or(i64::MAX);
    let mut found = query.query(params![after.cast_signed(), upto.cast_signed(), limit])?;
    let (mut batches, mut looked, mut last) = (Vec::new(), 0, after);
    while let Some(row) = found.next()? {
        looked += 1;
        last = revision(row, 0)?;
        let key = row.get_ref(1)?.as_str()?;
        if !key.starts_with(prefix) {
            continue;
        }
        let key: Arc<str> = key.into();
        let value = row.get_ref(2)?.as_blob_or_null()?.map(Bytes::copy_from_slice);
        let previous = match row.get::<_, Option<i64>>(3)? {
            Some(rev) => logged(db, &key, rev)?,
            None => None,
        };
        batches.push(Batch {
            revision: last,
            events: vec![Event { key, value, previous }],
        });
    }
    let complete = if looked < rows { upto } else { last };
    Ok((batches, complete))
}

/// Removes what the next `rows` changes after `swept` have superseded, and those of them that are deletions; the
/// revision swept up to, which is `compacted` once all is done.
pub(super) fn sweep(db: &Connection, swept: Revision, compacted: Revision, rows: usize) -> Result<Revision> {
    let skip = i64::try_from(rows.saturating_sub(1)).unwrap_or(i64::MAX);
    let upto: Option<i64> = db
        .prepare_cached("SELECT rev FROM log WHERE rev > ?1 AND rev <= ?2 ORDER BY rev LIMIT 1 OFFSET ?3")?
        .query_row(
            params![swept.cast_signed(), compacted.cast_signed(), skip],
            |row| row.get(0),
        )
        .optional()?;
    let upto = upto.unwrap_or(compacted.cast_signed());
    let span = params![swept.cast_signed(), upto];
    db.prepare_cached("DELETE FROM log WHERE rev IN (SELECT prev FROM log WHERE rev > ?1 AND rev <= ?2)")?
        .execute(span)?;
    db.prepare_cached("DELETE FROM log WHERE rev > ?1 AND rev <= ?2 AND value IS NULL")?
        .execute(span)?;
    Meta::Swept.write(db, upto.cast_unsigned())?;
    Ok(upto.cast_unsigned())
}

/// The spans of revisions that may have been answered and lost, ends excluded.
pub(super) fn gaps(db: &Connection) -> Result<Vec<(Revision, Revision)>> {
    let mut query = db.prepare_cached("SELECT after, before FROM gap ORDER BY after")?;
    query
        .query_map([], |row| Ok((revision(row, 0)?, revision(row, 1)?)))?
        .collect()
}

pub(super) fn add_gap(db: &Connection, after: Revision, before: Revision) -> Result<()> {
    db.execute(
        "INSERT OR REPLACE INTO gap VALUES(?1, ?2)",
        params![after.cast_signed(), before.cast_signed()],
    )?;
    Ok(())
}

/// Forgets gaps that are before the history kept.
pub(super) fn drop_gaps(db: &Connection, compacted: Revision) -> Result<()> {
    db.execute("DELETE FROM gap WHERE before <= ?1", [compacted.cast_signed()])?;
    Ok(())
}

fn revision(row: &Row<'_>, column: usize) -> Result<Revision> {
    Ok(row.get::<_, i64>(column)?.cast_unsigned())
}

fn value(row: &Row<'_>, column: usize) -> Result<Bytes> {
    Ok(Bytes::copy_from_slice(row.get_ref(column)?.as_blob()?))
}
