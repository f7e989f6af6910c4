//! What identifies a process.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tokio::task::JoinHandle;

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

/// Why a program that printed nothing, and lived so long, did not begin: Unix says so at the start.
pub fn never_began(_code: u32, _lived: Duration) -> Option<&'static str> {
    None
}

/// A process that does not end with us.
pub struct Detached {
    /// Its pid.
    pub pid: u32,
    /// Resolves with its end. Dropping it changes nothing for the process, which is still reaped.
    pub ended: JoinHandle<io::Result<ExitStatus>>,
}

/// Starts a process with nothing of ours but `log` for what it says; it leaves our session by [`detach_from_session`].
pub fn start_detached(program: &Path, args: &[&OsStr], folder: &Path, log: &File) -> io::Result<Detached> {
    let mut child = tokio::process::Command::new(program)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.try_clone()?)
        .kill_on_drop(false)
        .spawn()?;
    let pid = child.id().ok_or(io::ErrorKind::NotFound)?;
    let ended = tokio::spawn(async move { child.wait().await });
    Ok(Detached { pid, ended })
}
