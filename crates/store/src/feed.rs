//! The recent past of a store, and the watchers that follow it.
//!
//! Model: one queue of batches in the order of their revisions. `floor` is the revision after which the queue is
//! complete. A watcher is a cursor: it holds nothing but the revision it has seen, reads what came after it, then waits
//! for the mark to move. A watcher whose cursor is below the floor reads from the backend's [`History`] until it has
//! caught up with the queue, so a slow watcher costs no memory and is not cut off before its history is compacted.
//!
//! Invariant: a watcher's progress mark never passes the durable revision, so what it remembers survives a crash.

use crate::{Batch, Head, Revision, WatchEnd, WatchStream};
use async_trait::async_trait;
use parking_lot::RwLock;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// Batches a watcher takes at a time.
const TAKE: usize = 256;

/// Where batches that are no longer in the feed come from.
#[async_trait]
pub(crate) trait History: Send + Sync + 'static {
    /// Whether a watch may start after `after`.
    fn admit(&self, after: Revision) -> Result<(), WatchEnd>;

    /// Batches of keys that start with `prefix` with revisions in (`after`, `upto`], in order, and the revision up to
    /// which they are complete; more than `after`, unless that is `upto`.
    async fn read(
        &self,
        prefix: &str,
        after: Revision,
        upto: Revision,
    ) -> Result<(Vec<Batch>, Revision), WatchEnd>;
}

/// The recent past; see the module.
#[derive(Debug)]
pub(crate) struct Feed {
    recent: RwLock<Recent>,
    /// Bytes the queue may hold.
    room: usize,
    marks: watch::Sender<Mark>,
}

#[derive(Debug)]
struct Recent {
    queue: VecDeque<Batch>,
    floor: Revision,
    /// The last revision published; what is up to here and above the floor is in the queue.
    last: Revision,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Mark {
    head: Head,
    ended: Option<String>,
}

/// What a cursor finds.
enum Found {
    /// Matching batches, complete up to the revision.
    Batches(Vec<Batch>, Revision),
    /// The queue is only complete after this revision.
    Below(Revision),
}

impl Feed {
    /// A feed of a store at `revision`, with nothing in it since `floor`, that holds up to `room` bytes.
    pub(crate) fn new(floor: Revision, revision: Revision, room: usize) -> Self {
        let head = Head {
            revision,
            durable: revision,
        };
        let recent = Recent {
            queue: VecDeque::new(),
            floor,
            last: revision,
            bytes: 0,
        };
        Self {
            recent: RwLock::new(recent),
            room,
            marks: watch::Sender::new(Mark { head, ended: None }),
        }
    }

    pub(crate) fn head(&self) -> Head {
        self.marks.borrow().head
    }

    /// Tells watchers of `batches`, in order; everything up to `durable` is on disk by now.
    pub(crate) fn publish(&self, batches: impl IntoIterator<Item = Batch>, durable: Revision) {
        let mut recent = self.recent.write();
        for batch in batches {
            recent.last = batch.revision;
            recent.bytes += size(&batch);
            recent.queue.push_back(batch);
        }
        // What is not on disk can be read nowhere else, so it stays whatever the room.
        // What is not on disk can be read nowhere else, so it stays whatever the room.
        while recent.bytes > self.room && recent.drop_oldest(durable) {}
        let last = recent.last;
        drop(recent);
        self.marks.send_modify(|mark| {
            mark.head.revision = last;
            mark.head.durable = mark.head.durable.max(durable);
        });
    }

    /// Forgets what is at or before `before`.
    pub(crate) fn forget(&self, before: Revision) {
        let mut recent = self.recent.write();
        while recent.drop_oldest(before) {}
        recent.floor = recent.floor.max(before);
    }

    /// Ends all watches as lost.
    pub(crate) fn end(&self, why: &str) {
        self.marks.send_modify(|mark| {
            mark.ended.get_or_insert_with(|| why.to_owned());
        });
    }

    /// Follows the feed.
    pub(crate) fn watch(
        self: Arc<Self>,
        history: Arc<dyn History>,
        prefix: &str,
        after: Revision,
    ) -> WatchStream {
        let marks = self.marks.subscribe();
        let cursor = Cursor {
            feed: self,
            history,
            prefix: prefix.to_owned(),
            seen: after,
            told: after,
            found: VecDeque::new(),
            marks,
            stage: Stage::Asked,
        };
        Box::pin(futures::stream::unfold(cursor, |mut cursor| async {
            let item = cursor.next().await?;
            Some((item, cursor))
        }))
    }

    fn find(&self, prefix: &str, after: Revision) -> Found {
        let recent = self.recent.read();
        if after < recent.floor {
            return Found::Below(recent.floor);
        }
        let start = recent.queue.partition_point(|batch| batch.revision <= after);
        let mut seen = recent.last.max(after);
        let mut batches = Vec::new();
        for batch in recent.queue.range(start..) {
            if batches.len() == TAKE {
                seen = batch.revision - 1;
                break;
            }
            batches.extend(only(batch, prefix));
        }
        Found::Batches(batches, seen)
    }
}

impl Recent {
    /// Drops the oldest batch if it is at or before `upto`; whether it did.
    fn drop_oldest(&mut self, upto: Revision) -> bool {
        if self.queue.front().is_none_or(|oldest| oldest.revision > upto) {
            return false;
        }
        if let Some(oldest) = self.queue.pop_front() {
            self.bytes -= size(&oldest);
            self.floor = oldest.revision;
        }
        true
    }
}

/// `batch` cut down to the keys that start with `prefix`; `None` if nothing is left.
fn only(batch: &Batch, prefix: &str) -> Option<Batch> {
    let events: Vec<_> = batch
        .events
        .iter()
        .filter(|event| event.key.starts_with(prefix))
        .cloned()
        .collect();
    (!events.is_empty()).then_some(Batch {
        revision: batch.revision,
        events,
    })
}

/// What a batch holds in memory, in bytes, roughly.
fn size(batch: &Batch) -> usize {
    let events = batch.events.iter().map(|event| {
        let previous = event.previous.as_ref().map_or(0, |entry| entry.value.len());
        200 + event.key.len() + event.value.as_ref().map_or(0, |value| value.len()) + previous
    });
    events.sum()
}

/// One watcher.
struct Cursor {
    feed: Arc<Feed>,
    history: Arc<dyn History>,
    prefix: String,
    /// Everything up to here was looked at.
    seen: Revision,
    /// The last revision the watcher was told.
    told: Revision,
    /// Looked at, not told yet.
    found: VecDeque<Batch>,
    marks: watch::Receiver<Mark>,
    stage: Stage,
}

enum Stage {
    /// Nobody has checked yet whether the watch can start where it wants to.
    Asked,
    Running,
    Ended,
}

impl Cursor {
    async fn next(&mut self) -> Option<Result<Batch, WatchEnd>> {
        match self.stage {
            Stage::Ended => return None,
            Stage::Running => {}
            Stage::Asked => {
                self.stage = Stage::Running;
                if let Err(end) = self.history.admit(self.told) {
                    return self.end(end);
                }
            }
        }
        loop {
            if let Some(batch) = self.found.pop_front() {
                self.told = batch.revision;
                return Some(Ok(batch));
            }
            // The mark is taken before the look, so whatever comes after the look wakes the wait below.
            let mark = self.marks.borrow_and_update().clone();
            if let Some(why) = mark.ended {
                return self.end(WatchEnd::Lost(why));
            }
            let found = match self.feed.find(&self.prefix, self.seen) {
                Found::Batches(batches, seen) => Ok((batches, seen)),
                Found::Below(floor) => self.history.read(&self.prefix, self.seen, floor).await,
            };
            match found {
                Ok((batches, seen)) => {
                    self.found.extend(batches);
                    self.seen = seen;
                }
                Err(end) => return self.end(end),
            }
            if !self.found.is_empty() || self.seen < mark.head.revision {
                continue;
            }
            let safe = mark.head.durable.min(self.seen);
            if safe > self.told {
                self.told = safe;
                return Some(Ok(Batch {
                    revision: safe,
                    events: Vec::new(),
                }));
            }
            if self.marks.changed().await.is_err() {
                return self.end(WatchEnd::Lost("the store is gone".into()));
            }
        }
    }

    fn end(&mut self, end: WatchEnd) -> Option<Result<Batch, WatchEnd>> {
        self.stage = Stage::Ended;
        Some(Err(end))
    }
}
