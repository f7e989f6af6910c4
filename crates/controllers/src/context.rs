//! What all controllers share.

use crate::events::Recorder;
use api::clock::Clock;
use informer::Shared;
use jiff::Timestamp;
use kube::Client;
use std::{sync::Arc, time::Duration};

/// How the controllers go about it. The defaults are those of production; tests shorten them.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long without a renewal until a node counts as lost.
    pub node_lost: Duration,
    /// How much longer than a Task's fence, beyond a tenth of it, to wait before Rerun work counts as ended.
    pub fence_slack: Duration,
    /// How much longer than its timeout and grace a Task on a lost node may take (rollback, finally, and a margin) before its
    /// outcome counts as unknown.
    pub unknown_slack: Duration,
    /// How many finished Jobs a namespace keeps; the oldest go first.
    pub max_finished: usize,
    /// How long Events are kept.
    pub event_ttl: Duration,
    /// A Job that ends within this time gets one status write in all.
    pub status_debounce: Duration,
    /// The least time between two status writes of a Job, but for changes of its phase.
    pub status_interval: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            node_lost: Duration::from_secs(40),
            fence_slack: Duration::from_secs(60),
            unknown_slack: Duration::from_secs(2100 + 60),
            max_finished: 20_000,
            event_ttl: Duration::from_secs(3600),
            status_debounce: Duration::from_secs(1),
            status_interval: Duration::from_millis(250),
        }
    }
}

/// What all controllers share.
#[derive(Clone)]
pub(crate) struct Context {
    pub client: Client,
    pub shared: Shared,
    pub options: Arc<Options>,
    pub clock: Arc<dyn Clock>,
    pub events: Recorder,
}

impl Context {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long until a time; nothing if it passed.
    pub fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or(Duration::ZERO)
    }
}
