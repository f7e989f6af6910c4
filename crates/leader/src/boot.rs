//! A clock that goes on while the machine is suspended, and that nobody can set.

use std::time::Duration;

/// Tells the time since some fixed moment, time spent in suspend included.
pub trait BootClock: Send + Sync {
    /// The time now.
    fn now(&self) -> Duration;
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemBootClock;

#[cfg(unix)]
impl BootClock for SystemBootClock {
    fn now(&self) -> Duration {
        use rustix::time::{ClockId, clock_gettime};
        let now = clock_gettime(ClockId::Boottime);
        Duration::new(now.tv_sec.unsigned_abs(), 0) + Duration::from_nanos(now.tv_nsec.unsigned_abs())
    }
}

/// The performance counter, on which `Instant` rests, goes on in sleep and hibernation. Source: QueryPerformanceCounter of the Win32
/// documentation.
#[cfg(windows)]
impl BootClock for SystemBootClock {
    fn now(&self) -> Duration {
        static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        START.get_or_init(std::time::Instant::now).elapsed()
    }
}
