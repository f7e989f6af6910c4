//! What timers ask for: indexes that are due, and those that waited too long for a start.

use super::{Core, job::Record, lanes::later, timers::Timer};
use api::wanted::{Key, reason};
use jiff::Timestamp;
use std::sync::Arc;

impl Core {
    /// Does what timers ask for.
    pub(super) fn fire(&mut self, now: Timestamp) {
        while let Some(timer) = self.timers.pop(now) {
            match timer {
                Timer::Due(uid, key) => {
                    if let Some(state) = self.jobs.get_mut(&uid) {
                        state.is_due(key, now);
                    }
                    self.touch(&uid, now);
                }
                Timer::Pause(uid) => {
                    if let Some(state) = self.jobs.get_mut(&uid)
                        && state.paused.as_ref().is_some_and(|(until, _)| *until <= now)
                    {
                        state.paused = None;
                    }
                    self.touch(&uid, now);
                }
                Timer::Deadline(uid) => self.touch(&uid, now),
                Timer::Starting(uid) => self.starting_deadline(&uid, now),
                Timer::Unavailable(uid, node) => self.unavailable_deadline(&uid, &node, now),
                Timer::Stop(name) => self.stop_again(&name, now),
                Timer::Starved => self.reserve(now),
            }
        }
    }

    /// An Indexed Job that fits nowhere for `startingDeadlineSeconds`: its first index ends, then perhaps the next.
    pub(super) fn starting_deadline(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some(state) = self.jobs.get_mut(uid) else {
            return;
        };
        let Some(seconds) = state.job.spec.starting_deadline() else {
            return;
        };
        let end = later(state.waiting_since, seconds);
        let queue = self.queues.get(&state.job.spec.queue_name);
        let fits_nowhere = state.in_lane && queue.is_some_and(|q| q.is_parked(&state.lane()));
        let again = if end > now {
            end
        } else {
            if let (true, Some(key)) = (fits_nowhere, state.next_key()) {
                let record = Record {
                    reason: reason::NOT_STARTED,
                    message: format!("nothing fitted for startingDeadlineSeconds ({seconds} s)"),
                };
                state.records.insert(key, record);
                self.recording.insert(uid.clone());
            }
            later(now, 1)
        };
        self.timers.arm(again, Timer::Starting(uid.clone()));
    }

    pub(super) fn unavailable_deadline(&mut self, uid: &Arc<str>, node: &Arc<str>, now: Timestamp) {
        let Some(state) = self.jobs.get_mut(uid) else {
            return;
        };
        let Some(seconds) = state.job.spec.starting_deadline() else {
            return;
        };
        let Some(since) = state.unavailable_since.get(node) else {
            return;
        };
        let end = later(*since, seconds);
        if end > now {
            return self
                .timers
                .arm(end, Timer::Unavailable(uid.clone(), node.clone()));
        }
        if state.parked.contains(node) {
            let record = Record {
                reason: reason::NODE_UNAVAILABLE,
                message: format!("node {node} was not available for startingDeadlineSeconds ({seconds} s)"),
            };
            state.records.insert(Key::Node(node.clone()), record);
            self.recording.insert(uid.clone());
        }
    }
}
