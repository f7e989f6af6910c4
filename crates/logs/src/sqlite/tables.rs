//! The table of `logs.db` and every statement on it.

use crate::Log;
use rusqlite::{Connection, OptionalExtension, params};
use sqlite::Schema;
use std::io;
use std::sync::Arc;

pub(super) const SCHEMA: Schema = Schema {
    version: 1,
    create: "
        -- The bytes [start, start + size) of a log, as one zstd frame. The parts of a log join without gap or overlap.
        CREATE TABLE part(task TEXT NOT NULL, step TEXT NOT NULL, start INTEGER NOT NULL, size INTEGER NOT NULL,
                          data BLOB NOT NULL, PRIMARY KEY(task, step, start));
    ",
};

/// zstd's level: log text shrinks to a fifth or less at it, and costs little.
const LEVEL: i32 = 1;

/// Packs bytes for `insert`.
pub(super) fn pack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}

pub(super) fn size(db: &Connection, log: &Log) -> rusqlite::Result<u64> {
    let last = db
        .prepare_cached(
            "SELECT start + size FROM part WHERE task = ?1 AND step = ?2 ORDER BY start DESC LIMIT 1",
        )?
        .query_row([&*log.task, &*log.step], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(last.map_or(0, i64::cast_unsigned))
}

pub(super) fn insert(
    db: &Connection,
    log: &Log,
    start: u64,
    size: usize,
    packed: &[u8],
) -> rusqlite::Result<()> {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    db.prepare_cached("INSERT INTO part(task, step, start, size, data) VALUES(?1, ?2, ?3, ?4, ?5)")?
        .execute(params![&*log.task, &*log.step, start.cast_signed(), size, packed])?;
    Ok(())
}

/// Up to `limit` bytes from `start` on.
pub(super) fn read(db: &Connection, log: &Log, start: u64, limit: usize) -> rusqlite::Result<Vec<u8>> {
    let mut query = db.prepare_cached(
        "SELECT start, size, data FROM part
         WHERE task = ?1 AND step = ?2
           AND start >= (SELECT ifnull(max(start), 0) FROM part WHERE task = ?1 AND step = ?2 AND start <= ?3)
         ORDER BY start",
    )?;
    let mut rows = query.query(params![
        &*log.task,
        &*log.step,
        i64::try_from(start).unwrap_or(i64::MAX)
    ])?;
    let mut bytes = Vec::new();
    while bytes.len() < limit
        && let Some(row) = rows.next()?
    {
        let part_start = row.get::<_, i64>(0)?.cast_unsigned();
        let size = usize::try_from(row.get::<_, i64>(1)?).unwrap_or(usize::MAX);
        let part = zstd::bulk::decompress(row.get_ref(2)?.as_blob()?, size).map_err(|e| {
            rusqlite::Error::FromSqlConversionFailure(2, rusqlite::types::Type::Blob, Box::new(e))
        })?;
        let skip = usize::try_from(start.saturating_sub(part_start))
            .unwrap_or(usize::MAX)
            .min(part.len());
        let take = (limit - bytes.len()).min(part.len() - skip);
        bytes.extend_from_slice(&part[skip..skip + take]);
    }
    Ok(bytes)
}

pub(super) fn remove(db: &Connection, task: &str) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM part WHERE task = ?1")?
        .execute([task])?;
    Ok(())
}

pub(super) fn tasks(db: &Connection) -> rusqlite::Result<Vec<Arc<str>>> {
    let mut query = db.prepare_cached("SELECT DISTINCT task FROM part")?;
    query.query_map([], |row| row.get::<_, Arc<str>>(0))?.collect()
}
