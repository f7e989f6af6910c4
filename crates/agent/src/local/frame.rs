//! Frames: a length, then JSON.

use crate::platform::Stream;
use bytes::{Buf, BytesMut};
use serde::{Serialize, de::DeserializeOwned};
use std::{io, marker::PhantomData};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

const LIMIT: usize = 64 << 20;

/// Sends messages.
pub struct Sender<M> {
    write: WriteHalf<Stream>,
    messages: PhantomData<fn(M)>,
}

impl<M> Sender<M> {
    pub(super) fn new(write: WriteHalf<Stream>) -> Self {
        Self {
            write,
            messages: PhantomData,
        }
    }
}

impl<M: Serialize> Sender<M> {
    /// Sends one message.
    pub async fn send(&mut self, message: &M) -> io::Result<()> {
        let mut frame = vec![0; 4];
        serde_json::to_writer(&mut frame, message)?;
        let len = frame.len() - 4;
        if len > LIMIT {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a message of {len} bytes is over the limit of {LIMIT}"),
            ));
        }
        frame[..4].copy_from_slice(&u32::try_from(len).map_err(io::Error::other)?.to_le_bytes());
        let sent = self.write.write_all(&frame).await;
        frame.fill(0); // it may have held values
        sent
    }
}

/// Receives messages.
pub struct Receiver<M> {
    read: ReadHalf<Stream>,
    buffer: BytesMut,
    messages: PhantomData<fn() -> M>,
}

impl<M> Receiver<M> {
    pub(super) fn new(read: ReadHalf<Stream>) -> Self {
        Self {
            read,
            buffer: BytesMut::new(),
            messages: PhantomData,
        }
    }
}

impl<M: DeserializeOwned> Receiver<M> {
    /// The next message; `None` at the end of the stream, an error if that comes inside a frame. May be dropped while it waits:
    /// nothing is lost.
    pub async fn recv(&mut self) -> io::Result<Option<M>> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            if self.read.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<M>> {
        let Some(head) = self.buffer.first_chunk::<4>() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(*head) as usize;
        if len > LIMIT {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a frame of {len} bytes is over the limit of {LIMIT}"),
            ));
        }
        if self.buffer.len() < 4 + len {
            return Ok(None);
        }
        self.buffer.advance(4);
        let mut json = self.buffer.split_to(len);
        let message = serde_json::from_slice(&json);
        json.fill(0); // it may have held values
        Ok(Some(message?))
    }
}
