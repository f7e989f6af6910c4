//! `store-put`: writers that each put one object after the other into a store on disk, as fast as they are answered.

use crate::machine;
use crate::report::{Meter, Report};
use anyhow::{Context, Result};
use bytes::Bytes;
use hdrhistogram::Histogram;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Durability, Guard, Sqlite, Store, Write};

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Writers at the same time.
    #[arg(long, default_value_t = 64)]
    writers: usize,
    /// How long to write.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Bytes of each value.
    #[arg(long, default_value_t = 1300)]
    value_bytes: usize,
    /// Keys a writer puts in turn; 0 makes every put a new key.
    #[arg(long, default_value_t = 0)]
    keys: u64,
    /// Folder on the disk to measure; a new folder is made in it and removed at the end [default: the folder for
    /// temporary files].
    #[arg(long)]
    folder: Option<PathBuf>,
}

pub async fn run(options: &Options) -> Result<Report> {
    let parent = options.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::tempdir_in(&parent)
        .with_context(|| format!("cannot make a folder in {}", parent.display()))?;
    let fsync = machine::fsync_time(folder.path())?;
    let store = Arc::new(Sqlite::open(folder.path(), store::Options::default())?);
    // Bytes that look like text; SQLite stores them as they are.
    let value: Bytes = (b' '..=b'~').cycle().take(options.value_bytes).collect();
    let meter = Meter::start();
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let writers = (0..options.writers).map(|writer| {
        let (store, value, keys) = (store.clone(), value.clone(), options.keys);
        tokio::spawn(async move { put_until(&*store, writer, keys, value, end).await })
    });
    let mut latencies = Histogram::<u64>::new(3)?;
    for writer in futures::future::join_all(writers).await {
        latencies += writer??;
    }
    let report = meter.report("store-put", "one durable put", &latencies, fsync);
    store.close().await?;
    Ok(report)
}

/// One writer; the latencies of its puts in nanoseconds.
async fn put_until(
    store: &dyn Store,
    writer: usize,
    keys: u64,
    value: Bytes,
    end: Instant,
) -> Result<Histogram<u64>> {
    let mut latencies = Histogram::<u64>::new(3)?;
    for n in 0u64.. {
        let start = Instant::now();
        if start >= end {
            break;
        }
        let n = n.checked_rem(keys).unwrap_or(n);
        let key = format!("prow.windows/tasks/bench/writer-{writer}-{n:08}");
        let put = Write::put(key, value.clone(), Guard::Any);
        for answer in store.commit(vec![put], Durability::Durable).await? {
            answer.map_err(|conflict| anyhow::anyhow!("an unguarded put met {conflict:?}"))?;
        }
        latencies.record(u64::try_from(start.elapsed().as_nanos())?)?;
    }
    Ok(latencies)
}
