//! Restarting the host.

use crate::platform::Ordered;
use std::io;
use win32::shutdown::{IN_PROGRESS, IS_SCHEDULED, restart};

/// Orders a restart; see [`crate::platform::order_reboot`].
pub fn order_reboot(why: &str) -> io::Result<Ordered> {
    match restart(why) {
        Ok(()) => Ok(Ordered::Ours),
        Err(error) if error.code == IN_PROGRESS => Ok(Ordered::Theirs("Windows is shutting down".into())),
        Err(error) if error.code == IS_SCHEDULED => Ok(Ordered::Theirs(
            "it is scheduled; event 1074 of the System log names who did that".into(),
        )),
        Err(error) => Err(error.into()),
    }
}
