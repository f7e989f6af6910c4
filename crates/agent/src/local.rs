//! The local endpoint between agent and runner: length-framed JSON over a Unix socket in the task's folder.
//!
//! **The runner listens, the agent connects**: the runner outlives agents, so each new agent finds the endpoint of every living runner
//! in the folders it already knows. Both sides check that the other runs under the same account. A new connection takes the place of
//! the old one. The runner goes on while nobody is connected; only a step that needs values waits.
//!
//! A frame is the length of its JSON as a little-endian `u32`, then the JSON, at most 64 MiB. The end of the stream inside a frame is an
//! error, so a half-received block of values never starts a step. Values are held in memory only; [`Value`] has no printable form.

mod frame;
mod message;

pub use frame::{Receiver, Sender};
pub use message::{FromAgent, FromRunner, Stop, Value, Values, Wanted, WantedKind};

use crate::{layout::TaskDir, platform};
use std::io;

/// Connects the agent to a task's runner. Fails with `NotFound` or `ConnectionRefused` where no runner listens.
pub async fn connect(task: &TaskDir) -> io::Result<(Sender<FromAgent>, Receiver<FromRunner>)> {
    let stream = platform::endpoint_connect(&task.path()).await?;
    Ok(split(stream))
}

/// The runner's side.
pub struct Listener(platform::Endpoint);

impl Listener {
    /// Listens in the task's folder; what a dead runner left there is replaced, which the folder's lock makes safe.
    pub fn bind(task: &TaskDir) -> io::Result<Self> {
        platform::Endpoint::bind(&task.path()).map(Self)
    }

    /// The next agent; others than our own account are turned away.
    pub async fn accept(&self) -> io::Result<(Sender<FromRunner>, Receiver<FromAgent>)> {
        self.0.accept().await.map(split)
    }
}

fn split<Out, In>(stream: platform::Stream) -> (Sender<Out>, Receiver<In>) {
    let (read, write) = tokio::io::split(stream);
    (Sender::new(write), Receiver::new(read))
}
