//! What is to happen at a time. A timer only says "look again": what it is about may have changed meanwhile.

use api::wanted::Key;
use jiff::Timestamp;
use std::{collections::BTreeSet, sync::Arc};

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// An index may start.
    Due(Arc<str>, Key),
    /// A Job's Tasks may be made again.
    Pause(Arc<str>),
    /// A Job's activeDeadlineSeconds passes.
    Deadline(Arc<str>),
    /// An Indexed Job's startingDeadlineSeconds may have passed.
    Starting(Arc<str>),
    /// A PerNode item's startingDeadlineSeconds may have passed.
    Unavailable(Arc<str>, Arc<str>),
    /// A Task's stop could not be written.
    Stop(Arc<str>),
    /// Work may have starved.
    Starved,
}

/// Timers by time.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Timestamp, Timer)>);

impl Timers {
    pub fn arm(&mut self, at: Timestamp, timer: Timer) {
        self.0.insert((at, timer));
    }

    /// The next timer that is due.
    pub fn pop(&mut self, now: Timestamp) -> Option<Timer> {
        let (at, _) = self.0.first()?;
        if *at > now {
            return None;
        }
        self.0.pop_first().map(|(_, timer)| timer)
    }

    pub fn next(&self) -> Option<Timestamp> {
        self.0.first().map(|(at, _)| *at)
    }
}
