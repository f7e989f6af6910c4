//! The one thread that writes.
//!
//! It takes all commits that wait, decides their guards in order, writes them in one transaction and answers after the
//! one fsync; while it syncs, the next group gathers. Commits that are all lazy are decided in memory, answered at
//! once, and written with the next transaction, at the latest after [`Options::flush`]. So what is newer than the disk
//! is always lazy, and the log on disk has no holes.
//!
//! Invariants: a revision is answered only below the durable ceiling; watchers hear of a change after it is durable (or,
//! if lazy, readable) and in order; a transaction that fails leaves nothing behind but the lazy writes still in memory.

use super::overlay::Lazy;
use super::{Options, Shared, tables};
use crate::{Batch, Conflict, Durability, Entry, Event, Revision, StoreError, Write};
use rusqlite::Connection;
use sqlite::Failure;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Instant;
use tokio::sync::oneshot;

/// Writes after which a group is not made larger.
const GROUP: usize = 1024;
/// Log rows a transaction sweeps besides its writes.
const SWEEP: usize = 256;

pub(super) type Answers = Vec<Result<Revision, Conflict>>;

/// What the writer is asked.
#[derive(Debug)]
pub(super) enum Request {
    Commit(Commit),
    Compact {
        before: Revision,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
    Close {
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
}

#[derive(Debug)]
pub(super) struct Commit {
    pub(super) writes: Vec<Write>,
    pub(super) durability: Durability,
    pub(super) reply: oneshot::Sender<Result<Answers, StoreError>>,
}

/// The state of the writer thread.
#[derive(Debug)]
pub(super) struct Engine {
    db: sqlite::Writer,
    shared: Arc<Shared>,
    options: Options,
    /// The last revision given out.
    revision: Revision,
    /// Revisions from here on are not reserved yet.
    ceiling: Revision,
    swept: Revision,
    /// Lazy writes that are answered and not on disk.
    pending: Vec<Batch>,
    /// When they must be.
    flush_at: Option<Instant>,
    /// The last transaction found no space; nothing more is promised from memory until one succeeds.
    full: bool,
}

/// What one transaction did.
struct Written {
    answers: Vec<Answers>,
    batches: Vec<Batch>,
    revision: Revision,
    ceiling: Revision,
    swept: Revision,
}

impl Engine {
    pub(super) fn new(
        db: sqlite::Writer,
        shared: Arc<Shared>,
        options: Options,
        revision: Revision,
        ceiling: Revision,
        swept: Revision,
    ) -> Self {
        Self {
            db,
            shared,
            options,
            revision,
            ceiling,
            swept,
            pending: Vec::new(),
            flush_at: None,
            full: false,
        }
    }

    /// Serves `queue` until it is told to close or nobody is left to ask.
    pub(super) fn run(mut self, queue: &Receiver<Request>) {
        loop {
            match self.wait(queue) {
                Ok(Request::Commit(first)) => {
                    let mut group = vec![first];
                    let other = gather(queue, &mut group);
                    self.serve(group);
                    match other {
                        Some(Request::Close { reply }) => return answer(reply, self.close()),
                        Some(Request::Compact { before, reply }) => answer(reply, self.compact(before)),
                        Some(Request::Commit(_)) | None => {}
                    }
                }
                Ok(Request::Compact { before, reply }) => answer(reply, self.compact(before)),
                Ok(Request::Close { reply }) => return answer(reply, self.close()),
                // Due: write what is pending, sweep a little. A failure shows at the next write.
                Err(RecvTimeoutError::Timeout) => drop(self.transact(&[])),
                Err(RecvTimeoutError::Disconnected) => return drop(self.close()),
            }
        }
    }

    fn wait(&self, queue: &Receiver<Request>) -> Result<Request, RecvTimeoutError> {
        let sweeping = self.swept < self.shared.compacted() && !self.full && self.db.broken().is_none();
        if sweeping {
            return queue.try_recv().map_err(|e| match e {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            });
        }
        match self.flush_at {
            Some(due) => queue.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn serve(&mut self, group: Vec<Commit>) {
        let rows: usize = group.iter().map(|commit| commit.writes.len()).sum();
        let lazy = group.iter().all(|commit| commit.durability == Durability::Lazy);
        let reserved = self.revision + rows as Revision + 1 < self.ceiling;
        if lazy && reserved && !self.full && self.db.broken().is_none() {
            for commit in group {
                answer(commit.reply, self.promise(&commit.writes));
            }
            return;
        }
        match self.transact(&group) {
            Ok(answers) => {
                for (commit, answers) in group.into_iter().zip(answers) {
                    answer(commit.reply, Ok(answers));
                }
            }
            Err(error) => {
                for commit in group {
                    answer(commit.reply, Err(error.clone()));
                }
            }
        }
    }

    /// Applies lazy writes in memory.
    fn promise(&mut self, writes: &[Write]) -> Result<Answers, StoreError> {
        let mut revision = self.revision;
        let mut staged: Vec<Batch> = Vec::with_capacity(writes.len());
        let mut answers = Answers::with_capacity(writes.len());
        for write in writes {
            let current = match staged_state(&staged, &write.key) {
                Some(lazy) => lazy.entry(&write.key),
                None => match self.shared.overlay.get(&write.key) {
                    Some(lazy) => lazy.entry(&write.key),
                    None => self.db.view(|db| tables::current(db, &write.key))?,
                },
            };
            answers.push(decide(write, current, &mut revision).map(|batch| {
                let revision = batch.revision;
                staged.push(batch);
                revision
            }));
        }
        if staged.is_empty() {
            return Ok(answers);
        }
        self.revision = revision;
        self.shared.assigned.store(revision, Ordering::SeqCst);
        self.shared.overlay.insert(staged.iter().flat_map(changes));
        self.pending.extend(staged.iter().cloned());
        self.flush_at
            .get_or_insert_with(|| Instant::now() + self.options.flush);
        let durable = self.shared.feed.head().durable;
        self.shared.feed.publish(staged, durable);
        Ok(answers)
    }

    /// Writes what is pending and the group in one transaction, sweeps a little, then tells everybody.
    fn transact(&mut self, group: &[Commit]) -> Result<Vec<Answers>, StoreError> {
        let (pending, shared) = (&self.pending, &self.shared);
        let (revision, ceiling, swept) = (self.revision, self.ceiling, self.swept);
        let (reserve, compacted) = (self.options.reserve, self.shared.compacted());
        let written = self.db.transact(|db| {
            for batch in pending {
                tables::append(db, batch)?;
            }
            let mut written = Written {
                answers: Vec::with_capacity(group.len()),
                batches: Vec::new(),
                revision,
                ceiling,
                swept,
            };
            for commit in group {
                written.apply(db, &commit.writes)?;
            }
            if written.revision + 1 >= ceiling {
                written.ceiling = written.revision + 1 + reserve;
                tables::Meta::Ceiling.write(db, written.ceiling)?;
            }
            if swept < compacted {
                written.swept = tables::sweep(db, swept, compacted, SWEEP)?;
            }
            // Before the commit, so that nobody who reads it is told that it lies in the future.
            shared.assigned.store(written.revision, Ordering::SeqCst);
            Ok(written)
        });
        match written {
            Ok(written) => {
                self.full = false;
                self.pending.clear();
                self.flush_at = None;
                self.revision = written.revision;
                self.ceiling = written.ceiling;
                self.swept = written.swept;
                self.shared.overlay.clear();
                self.shared.feed.publish(written.batches, self.revision);
                Ok(written.answers)
            }
            Err(failure) => {
                self.full = matches!(failure, Failure::Full(_));
                self.flush_at = match &failure {
                    Failure::Broken(why) => {
                        self.shared.feed.end(&format!("writes have stopped: {why}"));
                        None
                    }
                    _ if self.pending.is_empty() => None,
                    _ => Some(Instant::now() + self.options.flush),
                };
                Err(failure.into())
            }
        }
    }

    fn compact(&mut self, before: Revision) -> Result<(), StoreError> {
        self.transact(&[])?;
        let compacted = before.min(self.revision).max(self.shared.compacted());
        self.db.transact(|db| {
            tables::Meta::Compacted.write(db, compacted)?;
            tables::drop_gaps(db, compacted)
        })?;
        self.shared.compact(compacted);
        Ok(())
    }

    /// Writes everything, notes that no revision beyond the last was answered, and leaves one plain file.
    fn close(mut self) -> Result<(), StoreError> {
        let revision = self.revision;
        let written = self.transact(&[]).and_then(|_| {
            self.db
                .transact(|db| tables::Meta::Ceiling.write(db, revision))
                .map_err(Into::into)
        });
        self.shared.feed.end("the store is closed");
        self.shared.database.close();
        written?;
        Ok(self.db.finish()?)
    }
}

impl Written {
    fn apply(&mut self, db: &Connection, writes: &[Write]) -> rusqlite::Result<()> {
        let mut answers = Answers::with_capacity(writes.len());
        for write in writes {
            let current = tables::current(db, &write.key)?;
            let outcome = decide(write, current, &mut self.revision);
            if let Ok(batch) = &outcome {
                tables::append(db, batch)?;
            }
            answers.push(outcome.map(|batch| {
                let revision = batch.revision;
                self.batches.push(batch);
                revision
            }));
        }
        self.answers.push(answers);
        Ok(())
    }
}

/// What `write` does to a key in the state `current`, at the next revision.
fn decide(write: &Write, current: Option<Entry>, revision: &mut Revision) -> Result<Batch, Conflict> {
    if !write.admits(current.as_ref().map(|entry| entry.revision)) {
        return Err(Conflict { current });
    }
    *revision += 1;
    let event = Event {
        key: write.key.clone(),
        value: write.value.clone(),
        previous: current,
    };
    Ok(Batch {
        revision: *revision,
        events: vec![event],
    })
}

/// The keys a batch changes and the state it leaves them in.
fn changes(batch: &Batch) -> impl Iterator<Item = (Arc<str>, Lazy)> {
    let state = |event: &Event| Lazy {
        revision: batch.revision,
        value: event.value.clone(),
    };
    batch
        .events
        .iter()
        .map(move |event| (event.key.clone(), state(event)))
}

/// The state of `key` by the writes staged so far.
fn staged_state(staged: &[Batch], key: &str) -> Option<Lazy> {
    let mut latest = staged.iter().rev().flat_map(changes);
    latest.find_map(|(changed, lazy)| (&*changed == key).then_some(lazy))
}

/// Takes the commits that wait, up to another request.
fn gather(queue: &Receiver<Request>, group: &mut Vec<Commit>) -> Option<Request> {
    let mut rows: usize = group.iter().map(|commit| commit.writes.len()).sum();
    while rows < GROUP {
        match queue.try_recv() {
            Ok(Request::Commit(commit)) => {
                rows += commit.writes.len();
                group.push(commit);
            }
            Ok(other) => return Some(other),
            Err(_) => return None,
        }
    }
    None
}

/// Whoever asked may have gone.
fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    drop(reply.send(value));
}
