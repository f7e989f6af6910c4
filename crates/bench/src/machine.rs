//! What the machine gives: processor time used so far, and what an fsync costs on its disk.

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many fsyncs are timed.
const FSYNCS: usize = 100;

/// Processor time a process has used over all its threads, this one if none is named; `None` where the system does not tell.
pub fn cpu_time(process: Option<u32>) -> Option<Duration> {
    match process {
        Some(process) => imp::cpu_time_of(process),
        None => imp::cpu_time(),
    }
}

/// The median time of appending 4 KiB to a file in `folder` and syncing it.
pub fn fsync_time(folder: &Path) -> Result<Duration> {
    let path = folder.join("fsync-probe");
    let mut file = File::create(&path).with_context(|| format!("cannot write in {}", folder.display()))?;
    let mut times = Histogram::<u64>::new(3)?;
    for _ in 0..FSYNCS {
        file.write_all(&[0; 4096])?;
        let start = Instant::now();
        file.sync_data()?;
        times.record(u64::try_from(start.elapsed().as_nanos())?)?;
    }
    std::fs::remove_file(&path)?;
    Ok(Duration::from_nanos(times.value_at_quantile(0.5)))
}

#[cfg(unix)]
mod imp {
    use rustix::time::{ClockId, clock_gettime};
    use std::time::Duration;

    pub fn cpu_time() -> Option<Duration> {
        clock_gettime(ClockId::ProcessCPUTime).try_into().ok()
    }

    /// User and system time of `/proc/PID/stat`; source: proc(5).
    pub fn cpu_time_of(process: u32) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // the name, in parentheses, may hold anything
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
        let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
        Some(Duration::from_millis(
            ticks * 1000 / rustix::param::clock_ticks_per_second(),
        ))
    }
}

#[cfg(not(unix))]
mod imp {
    use std::time::Duration;

    pub fn cpu_time() -> Option<Duration> {
        None
    }

    pub fn cpu_time_of(_process: u32) -> Option<Duration> {
        None
    }
}
