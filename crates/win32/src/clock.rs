//! Time since the boot.

use std::time::Duration;
use windows_sys::Win32::System::SystemInformation::GetTickCount64;

/// Time since the host started, time spent in sleep and hibernation included, to some 15 ms. Every process reads the same clock.
pub fn since_boot() -> Duration {
    // SAFETY: takes nothing and cannot fail.
    Duration::from_millis(unsafe { GetTickCount64() })
}
