//! Restarting the host through systemd.

use crate::platform::Ordered;
use std::{io, process::Command};

/// Where systemd-logind keeps a shutdown that was ordered for later. Source: systemd's `logind-dbus.c`.
const SCHEDULED: &str = "/run/systemd/shutdown/scheduled";

/// Orders a restart; see [`crate::platform::order_reboot`].
pub fn order_reboot(why: &str) -> io::Result<Ordered> {
    if super::is_shutting_down() {
        return Ok(Ordered::Theirs("systemd is stopping the host".into()));
    }
    if let Ok(scheduled) = std::fs::read_to_string(SCHEDULED) {
        let mode = scheduled.lines().find_map(|line| line.strip_prefix("MODE="));
        let mode = mode.unwrap_or("shutdown");
        return Ok(Ordered::Theirs(format!(
            "a {mode} was scheduled with shutdown(8)"
        )));
    }
    let output = Command::new("systemctl")
        .args(["reboot", "--no-wall", "--message", why])
        .output()?;
    if output.status.success() {
        return Ok(Ordered::Ours);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(io::Error::other(format!("systemctl reboot: {said}")))
}
