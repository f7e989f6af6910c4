//! What identifies a process.

use std::io;

/// When a process was created, in clock ticks since boot (proc(5), `stat`, field 22); `None` if there is no such process
/// or only its zombie.
pub fn created(pid: u32) -> Option<u64> {
    super::proc::stat(pid)
        .filter(|s| !s.is_zombie())
        .map(|s| s.created)
}

/// The program of a process, as an absolute path; that of a replaced file is still the old path.
pub fn image(pid: u32) -> io::Result<String> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe"))?;
    let text = path.to_string_lossy();
    Ok(text.strip_suffix(" (deleted)").unwrap_or(&text).to_owned())
}

/// Leaves the session, so that neither a terminal's Ctrl-C nor its end reaches this process.
pub fn detach_from_session() -> io::Result<()> {
    match rustix::process::setsid() {
        Ok(_) => Ok(()),
        Err(rustix::io::Errno::PERM) => Ok(()), // already leads a session or group of its own
        Err(e) => Err(e.into()),
    }
}
