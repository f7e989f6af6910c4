//! A log as a stream of bytes, to its present end or to its last.

use crate::Gateway;
use crate::refusal::Refusal;
use crate::tasks::{Outlook, outlook};
use api::task::Task;
use bytes::Bytes;
use futures::Stream;
use futures::future::{Either, select};
use logs::{Log, LogError};
use std::pin::pin;
use std::sync::Arc;

/// Bytes sent in one piece.
const PIECE: usize = 64 << 10;

/// Where a reader is.
struct Reader {
    gateway: Gateway,
    task: Arc<Task>,
    log: Log,
    at: u64,
    follow: bool,
}

/// Why a stream breaks off. The reader may ask again from the offset it has reached.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Broken(String);

/// The bytes of `log` from `at` on. Without `follow` it ends where the log ends now; with it when the Task is at its end
/// and all of the log was sent or nothing more came for long, or when the Task is gone.
pub(crate) fn stream(
    gateway: Gateway,
    task: Arc<Task>,
    log: Log,
    at: u64,
    follow: bool,
) -> impl Stream<Item = Result<Bytes, Broken>> + Send + 'static {
    let reader = Reader {
        gateway,
        task,
        log,
        at,
        follow,
    };
    futures::stream::try_unfold(reader, |mut reader| async {
        let piece = reader.next().await?;
        Ok(piece.map(|piece| (piece, reader)))
    })
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Bytes>, Broken> {
        let mut endings = self.gateway.tasks.endings();
        loop {
            // Looked at before the log is read: what a Task at its end has, its log has by then.
            endings.mark_unchanged();
            let last = !self.follow || self.last().await?;
            let bytes = match self.gateway.logs.read(&self.log, self.at, PIECE).await {
                Ok(bytes) => bytes,
                Err(error) => return Err(Broken(error.to_string())),
            };
            if !bytes.is_empty() {
                self.at += bytes.len() as u64;
                return Ok(Some(bytes));
            }
            if last {
                return Ok(None);
            }
            let over = self.task.status.as_ref().is_some_and(|s| s.phase.is_terminal());
            let patience = self.gateway.patience;
            let grown = pin!(self.gateway.logs.grown(&self.log, self.at));
            let ended = pin!(endings.changed());
            let news = select(grown, ended);
            let news = if over {
                match tokio::time::timeout(patience, news).await {
                    Ok(news) => news,
                    Err(_) => return Ok(None),
                }
            } else {
                news.await
            };
            match news {
                Either::Left((Err(LogError::Removed), _)) => return Ok(None),
                Either::Left((Err(error), _)) => return Err(Broken(error.to_string())),
                Either::Left((Ok(_), _)) | Either::Right(_) => {}
            }
        }
    }

    /// Whether what the log holds beyond here, if anything, is all that will come.
    async fn last(&mut self) -> Result<bool, Broken> {
        let meta = &self.task.metadata;
        let (namespace, name) = (
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        );
        let found = self
            .gateway
            .tasks
            .find(namespace, name, meta.uid.as_deref())
            .await;
        match found.map_err(Refusal::into_message).map_err(Broken)? {
            Some(task) => self.task = task,
            None => return Ok(true),
        }
        Ok(match outlook(&self.task, &self.log.step) {
            Outlook::More => false,
            Outlook::Until(end) => self.at >= end,
            Outlook::Over => true,
        })
    }
}
