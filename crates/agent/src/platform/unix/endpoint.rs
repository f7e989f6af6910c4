//! The local endpoint as a Unix socket `sock` in the task's folder.
//!
//! A socket's path holds at most 107 bytes; a longer folder is reached through an open descriptor of it (`/proc/self/fd/N/sock`).

use rustix::fs::{Mode, OFlags};
use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};
use tokio::net::{UnixListener, UnixStream};

/// A connection between agent and runner.
pub type Stream = UnixStream;

const NAME: &str = "sock";
const LONGEST: usize = 107;

/// Where the agent is waited for.
pub struct Endpoint(UnixListener);

impl Endpoint {
    /// Listens in `folder`, in the place of a socket left there. The caller holds the folder's lock.
    pub fn bind(folder: &Path) -> io::Result<Self> {
        match std::fs::remove_file(folder.join(NAME)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let (path, _open) = reachable(folder)?;
        UnixListener::bind(path).map(Self)
    }

    /// The next peer of our own account (or root); others are dropped.
    pub async fn accept(&self) -> io::Result<Stream> {
        loop {
            let (stream, _) = self.0.accept().await?;
            if trusted(&stream)? {
                return Ok(stream);
            }
            tracing::warn!("a process of another account tried to talk to this runner");
        }
    }
}

/// Connects to the one who listens in `folder`.
pub async fn connect(folder: &Path) -> io::Result<Stream> {
    let (path, _open) = reachable(folder)?;
    let stream = UnixStream::connect(path).await?;
    if trusted(&stream)? {
        Ok(stream)
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the endpoint belongs to another account",
        ))
    }
}

fn trusted(stream: &Stream) -> io::Result<bool> {
    let peer = stream.peer_cred()?.uid();
    Ok(peer == 0 || peer == rustix::process::geteuid().as_raw())
}

/// A path short enough for a socket, and what must stay open while it is used.
fn reachable(folder: &Path) -> io::Result<(PathBuf, Option<OwnedFd>)> {
    let path = folder.join(NAME);
    if path.as_os_str().len() <= LONGEST {
        return Ok((path, None));
    }
    let open = rustix::fs::open(
        folder,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let short = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd()));
    Ok((short, Some(open)))
}
