//! The local endpoint as a named pipe, whose name stands in the task's folder.
//!
//! Pipes are a space of names that every account can add to, so the name holds random letters, the first instance must be ours, and
//! the agent compares the process that serves the pipe with the one that wrote the name into the protected folder. The pipe's access
//! list turns all others than the system, the administrators and our own account away.

use std::{
    io,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::windows::named_pipe::{NamedPipeClient, NamedPipeServer},
    sync::Mutex,
};
use win32::{pipe, security::Descriptor};

const FILE: &str = "pipe";
/// All pipes of the server's instances are taken: the next is made as soon as a client came in.
const ERROR_PIPE_BUSY: i32 = 231;
/// How long the next instance may take.
const BUSY: Duration = Duration::from_secs(5);

/// A connection between agent and runner.
#[derive(Debug)]
pub enum Stream {
    /// The runner's end.
    Server(NamedPipeServer),
    /// The agent's end.
    Client(NamedPipeClient),
}

/// Where the agent is waited for.
pub struct Endpoint {
    name: String,
    descriptor: Descriptor,
    /// The instance that the next agent will get.
    next: Mutex<NamedPipeServer>,
}

impl Endpoint {
    /// Makes a pipe and writes its name into `folder`, in the place of one left there. The caller holds the folder's lock.
    pub fn bind(folder: &Path) -> io::Result<Self> {
        let uid = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let random: String = random.iter().map(|b| format!("{b:02x}")).collect();
        let name = format!(r"\\.\pipe\prow-task-{uid}-{random}");
        let descriptor = Descriptor::private()?;
        let next = Mutex::new(pipe::serve(&name, &descriptor, true)?);
        let text = format!("{} {name}\n", std::process::id());
        let part = folder.join("pipe.part");
        super::files::write_private(&part, text.as_bytes())?;
        super::files::rename(&part, &file(folder))?;
        Ok(Self {
            name,
            descriptor,
            next,
        })
    }

    /// The next peer; the access list has turned others away.
    pub async fn accept(&self) -> io::Result<Stream> {
        let mut next = self.next.lock().await;
        next.connect().await?;
        let following = pipe::serve(&self.name, &self.descriptor, false)?;
        Ok(Stream::Server(std::mem::replace(&mut next, following)))
    }
}

/// Connects to the one who listens in `folder`.
pub async fn connect(folder: &Path) -> io::Result<Stream> {
    let text = std::fs::read_to_string(file(folder))?;
    let malformed = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{} is malformed", file(folder).display()),
        )
    };
    let (pid, name) = text.trim_end().split_once(' ').ok_or_else(malformed)?;
    let pid: u32 = pid.parse().map_err(|_| malformed())?;
    let client = open(name).await?;
    if pipe::server_process(&client)? == pid {
        Ok(Stream::Client(client))
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{name} is served by another process than the runner"),
        ))
    }
}

async fn open(name: &str) -> io::Result<NamedPipeClient> {
    let end = tokio::time::Instant::now() + BUSY;
    loop {
        match pipe::open(name) {
            Err(e) if e.raw_os_error() == Some(ERROR_PIPE_BUSY) && tokio::time::Instant::now() < end => {
                tokio::time::sleep(Duration::from_millis(20)).await; // nothing tells of a new instance
            }
            result => return result,
        }
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Server(pipe) => Pin::new(pipe).poll_read(cx, buf),
            Self::Client(pipe) => Pin::new(pipe).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Server(pipe) => Pin::new(pipe).poll_write(cx, buf),
            Self::Client(pipe) => Pin::new(pipe).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Server(pipe) => Pin::new(pipe).poll_flush(cx),
            Self::Client(pipe) => Pin::new(pipe).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Server(pipe) => Pin::new(pipe).poll_shutdown(cx),
            Self::Client(pipe) => Pin::new(pipe).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn one_agent_after_the_other_finds_the_runner() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = Endpoint::bind(folder.path()).unwrap();
        for word in [b"one", b"two"] {
            let (agent, runner) = tokio::join!(connect(folder.path()), endpoint.accept());
            let (mut agent, mut runner) = (agent.unwrap(), runner.unwrap());
            agent.write_all(word).await.unwrap();
            drop(agent);
            let mut heard = Vec::new();
            runner.read_to_end(&mut heard).await.unwrap();
            assert_eq!(heard, word);
        }
    }

    #[tokio::test]
    async fn both_directions_work_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let endpoint = Endpoint::bind(folder.path()).unwrap();
        let (agent, runner) = tokio::join!(connect(folder.path()), endpoint.accept());
        let (mut from_runner, mut to_runner) = tokio::io::split(agent.unwrap());
        let (mut from_agent, mut to_agent) = tokio::io::split(runner.unwrap());
        let large = vec![7; 1 << 20];
        let (mut a, mut b) = (vec![0; large.len()], vec![0; large.len()]);
        let (one, two, three, four) = tokio::join!(
            to_runner.write_all(&large),
            to_agent.write_all(&large),
            from_agent.read_exact(&mut a),
            from_runner.read_exact(&mut b),
        );
        for sent in [one, two] {
            sent.unwrap();
        }
        assert_eq!((three.unwrap(), four.unwrap()), (large.len(), large.len()));
        assert!(a == large && b == large);
    }

    #[tokio::test]
    async fn a_pipe_of_another_process_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let _endpoint = Endpoint::bind(folder.path()).unwrap();
        let text = std::fs::read_to_string(file(folder.path())).unwrap();
        let (_, name) = text.split_once(' ').unwrap();
        std::fs::write(file(folder.path()), format!("1 {name}")).unwrap();
        let error = connect(folder.path()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[tokio::test]
    async fn a_runner_that_is_gone_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(
            connect(folder.path()).await.unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        drop(Endpoint::bind(folder.path()).unwrap());
        assert_eq!(
            connect(folder.path()).await.unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        std::fs::write(file(folder.path()), "nonsense").unwrap();
        assert_eq!(
            connect(folder.path()).await.unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
