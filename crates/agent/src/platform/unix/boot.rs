//! Which boot this is, and the clock that counts suspend.

use rustix::time::{ClockId, clock_gettime};
use std::io;

/// The id of this boot of the host: the same until it restarts. Source: random(4), `/proc/sys/kernel/random/boot_id`.
pub fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

/// Nanoseconds since boot, time spent in suspend included. Every process of this host reads the same clock.
pub fn boot_nanos() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
