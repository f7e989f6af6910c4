//! Restarting the host.

use crate::{Error, Result, privilege::Privilege, wide::wide};
use std::ptr;
use windows_sys::Win32::System::Shutdown::{
    InitiateShutdownW, SHTDN_REASON_FLAG_PLANNED, SHTDN_REASON_MAJOR_APPLICATION,
    SHTDN_REASON_MINOR_INSTALLATION, SHUTDOWN_FORCE_OTHERS, SHUTDOWN_FORCE_SELF, SHUTDOWN_RESTART,
};

/// ERROR_SHUTDOWN_IN_PROGRESS: a shutdown goes on.
pub const IN_PROGRESS: u32 = 1115;
/// ERROR_SHUTDOWN_IS_SCHEDULED: one was ordered for later.
pub const IS_SCHEDULED: u32 = 1190;

/// Orders a restart at once, as planned by an application for an installation. `why` is shown to whoever is logged on.
pub fn restart(why: &str) -> Result<()> {
    Privilege::Shutdown.enable()?;
    let why = wide(why);
    // SAFETY: the message ends with a zero; no machine means this one.
    let code = unsafe {
        InitiateShutdownW(
            ptr::null(),
            why.as_ptr(),
            0,
            SHUTDOWN_RESTART | SHUTDOWN_FORCE_SELF | SHUTDOWN_FORCE_OTHERS,
            SHTDN_REASON_FLAG_PLANNED | SHTDN_REASON_MAJOR_APPLICATION | SHTDN_REASON_MINOR_INSTALLATION,
        )
    };
    match code {
        0 => Ok(()),
        code => Err(Error::of("InitiateShutdownW", code)),
    }
}
