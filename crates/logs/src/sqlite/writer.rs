//! The one thread that writes: it gathers what comes within a few milliseconds, writes it in one transaction and answers
//! after the one fsync.

use super::tables;
use crate::growth::Growth;
use crate::{Log, LogError};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Bytes of packed data after which a group is not made larger.
const GROUP: usize = 8 << 20;

/// What the writer is asked.
#[derive(Debug)]
pub(super) enum Request {
    Change(Change, oneshot::Sender<Result<u64, LogError>>),
    Close(oneshot::Sender<Result<u64, LogError>>),
}

/// A change of the table. The answer is a log's size; of a removal 0.
#[derive(Debug)]
pub(super) enum Change {
    Append {
        log: Log,
        start: u64,
        size: usize,
        packed: Vec<u8>,
    },
    Remove {
        task: Arc<str>,
    },
}

/// Serves `queue` until it is told to close or nobody is left to ask.
pub(super) fn run(mut db: sqlite::Writer, growth: &Growth, gather: Duration, queue: &Receiver<Request>) {
    let mut close = None;
    while close.is_none()
        && let Ok(first) = queue.recv()
    {
        let mut group = Vec::new();
        let mut bytes = 0;
        let end = Instant::now() + gather;
        let mut next = Ok(first);
        while let Ok(request) = next {
            match request {
                Request::Close(reply) => {
                    close = Some(reply);
                    break;
                }
                Request::Change(change, reply) => {
                    bytes += change.weight();
                    group.push((change, reply));
                }
            }
            if bytes >= GROUP {
                break;
            }
            next = queue.recv_timeout(end.saturating_duration_since(Instant::now()));
        }
        write(&mut db, growth, group);
    }
    let finished = db.finish().map(|()| 0).map_err(LogError::from);
    growth.close();
    if let Some(reply) = close {
        drop(reply.send(finished));
    }
}

type Asked = (Change, oneshot::Sender<Result<u64, LogError>>);

fn write(db: &mut sqlite::Writer, growth: &Growth, group: Vec<Asked>) {
    let sizes = db.transact(|db| {
        let apply = |(change, _): &Asked| match change {
            Change::Append {
                log,
                start,
                size,
                packed,
            } => {
                let end = tables::size(db, log)?;
                if end != *start || *size == 0 {
                    return Ok(end);
                }
                tables::insert(db, log, *start, *size, packed)?;
                Ok(end + *size as u64)
            }
            Change::Remove { task } => tables::remove(db, task).map(|()| 0),
        };
        group.iter().map(apply).collect::<rusqlite::Result<Vec<u64>>>()
    });
    match sizes {
        Ok(sizes) => {
            for ((change, reply), size) in group.into_iter().zip(sizes) {
                match change {
                    Change::Append { log, .. } => growth.tell(&log, size),
                    Change::Remove { task } => growth.removed(&task),
                }
                // Whoever asked may have gone.
                drop(reply.send(Ok(size)));
            }
        }
        Err(failure) => {
            let error = LogError::from(failure);
            for (_, reply) in group {
                drop(reply.send(Err(error.clone())));
            }
        }
    }
}

impl Change {
    fn weight(&self) -> usize {
        match self {
            Self::Append { packed, .. } => packed.len(),
            Self::Remove { .. } => 0,
        }
    }
}
