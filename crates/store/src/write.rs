//! What is stored, and how it is changed: entries, guarded writes and the conflicts they meet.

use bytes::Bytes;
use std::sync::Arc;

/// A point in the store's history. Every change gets one of its own, larger than all before it; numbers are skipped
/// after a crash, never reused. The first change has revision 1 or more, so 0 is "before everything".
pub type Revision = u64;

/// A key with its value as of a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key, such as `prow.windows/jobs/ops/patch-web`.
    pub key: Arc<str>,
    /// The bytes last put.
    pub value: Bytes,
    /// The revision that put them.
    pub revision: Revision,
}

/// What must be true of a key for a write to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Nothing: the last writer wins.
    Any,
    /// The key does not exist.
    Absent,
    /// The key exists and was last put at this revision.
    Revision(Revision),
}

/// One guarded change of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key to change.
    pub key: Arc<str>,
    /// The new value; `None` deletes. Deleting a key that is not there is a [`Conflict`] whatever the guard.
    pub value: Option<Bytes>,
    /// What must hold.
    pub guard: Guard,
}

impl Write {
    /// Sets `key` to `value`.
    pub fn put(key: impl Into<Arc<str>>, value: impl Into<Bytes>, guard: Guard) -> Self {
        Self {
            key: key.into(),
            value: Some(value.into()),
            guard,
        }
    }

    /// Removes `key`.
    pub fn delete(key: impl Into<Arc<str>>, guard: Guard) -> Self {
        Self {
            key: key.into(),
            value: None,
            guard,
        }
    }

    /// Whether this write may happen to a key in the state `current`.
    pub(crate) fn admits(&self, current: Option<Revision>) -> bool {
        if self.value.is_none() && current.is_none() {
            return false;
        }
        match self.guard {
            Guard::Any => true,
            Guard::Absent => current.is_none(),
            Guard::Revision(revision) => current == Some(revision),
        }
    }
}

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After it is on disk: a power cut does not lose it.
    Durable,
    /// At once, on disk within a second; a crash before that loses it, with every later lazy write. Only for values
    /// that are soon repeated or of little worth (node heartbeats, events). A backend may treat it as durable.
    Lazy,
}

/// A write that did not happen because its guard did not hold. Re-read (or use `current`), decide again, write again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The key as it is now; `None` if it does not exist.
    pub current: Option<Entry>,
}
