//! Observations of heartbeats: for how long *we* watched without seeing one.
//!
//! A new leader starts with none. A watch that was interrupted, or a pause of our own, makes them worthless: all begin anew.

use std::{collections::HashMap, time::Duration};
use tokio::time::Instant;

/// A pause between two ticks of more than this means that we did not watch.
const OWN_GAP: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Watching {
    /// How long without a renewal is lost.
    limit: Duration,
    seen: HashMap<String, Seen>,
    /// When the present observations began.
    since: Instant,
    last_tick: Instant,
    interruptions: u64,
}

#[derive(Debug)]
struct Seen {
    version: String,
    /// When a renewal was seen last; not a renewal is what the Lease already said when watching began.
    renewed: Option<Instant>,
}

impl Watching {
    pub fn new(limit: Duration, interruptions: u64, now: Instant) -> Self {
        Self {
            limit,
            seen: HashMap::new(),
            since: now,
            last_tick: now,
            interruptions,
        }
    }

    /// A Lease was shown. Only a version that differs from the one before is a renewal.
    pub fn renewed(&mut self, node: &str, version: &str, now: Instant) {
        match self.seen.get_mut(node) {
            Some(seen) if seen.version == version => {}
            Some(seen) => {
                seen.version = version.to_owned();
                seen.renewed = Some(now);
            }
            None => {
                let seen = Seen {
                    version: version.to_owned(),
                    // a Lease that appears while we watch is the first heartbeat of its node
                    renewed: (self.since != now).then_some(now),
                };
                self.seen.insert(node.to_owned(), seen);
            }
        }
    }

    /// Must be called often; notices when it was not.
    pub fn tick(&mut self, interruptions: u64, now: Instant) {
        let gap = now.duration_since(self.last_tick);
        if gap > OWN_GAP || interruptions != self.interruptions {
            tracing::info!(?gap, "observations of nodes begin anew");
            self.since = now;
            self.interruptions = interruptions;
            self.seen.values_mut().for_each(|seen| seen.renewed = None);
        }
        self.last_tick = now;
    }

    /// For how long we watched without seeing a renewal.
    pub fn silence(&self, node: &str, now: Instant) -> Duration {
        let renewed = self.seen.get(node).and_then(|seen| seen.renewed);
        now.duration_since(renewed.unwrap_or(self.since).max(self.since))
    }

    pub fn is_lost(&self, node: &str, now: Instant) -> bool {
        self.silence(node, now) >= self.limit
    }

    /// Whether a renewal was seen since observations began.
    pub fn was_heard(&self, node: &str) -> bool {
        self.seen.get(node).is_some_and(|seen| seen.renewed.is_some())
    }

    /// The version of the Lease that was seen last.
    pub fn version(&self, node: &str) -> Option<&str> {
        self.seen.get(node).map(|seen| seen.version.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(40);

    struct Clock(Instant);

    impl Clock {
        fn at(&self, seconds: u64) -> Instant {
            self.0 + Duration::from_secs(seconds)
        }
    }

    /// Ticks every second from one time to another.
    fn ticks(watching: &mut Watching, clock: &Clock, from: u64, to: u64) {
        (from..=to).for_each(|s| watching.tick(watching.interruptions, clock.at(s)));
    }

    fn start() -> (Watching, Clock) {
        let clock = Clock(Instant::now());
        let mut watching = Watching::new(LIMIT, 0, clock.at(0));
        watching.renewed("n", "1", clock.at(0));
        (watching, clock)
    }

    #[test]
    fn silence_counts_from_the_last_renewal_we_saw() {
        let (mut watching, clock) = start();
        ticks(&mut watching, &clock, 1, 30);
        watching.renewed("n", "2", clock.at(30));
        ticks(&mut watching, &clock, 31, 69);
        assert!(!watching.is_lost("n", clock.at(69)));
        assert!(watching.is_lost("n", clock.at(70)));
    }

    #[test]
    fn the_same_lease_shown_again_is_no_renewal() {
        let (mut watching, clock) = start();
        ticks(&mut watching, &clock, 1, 39);
        watching.renewed("n", "1", clock.at(39));
        assert!(watching.is_lost("n", clock.at(40)));
        assert!(!watching.was_heard("n"));
    }

    #[test]
    fn one_pause_of_ours_declares_nobody_lost() {
        let (mut watching, clock) = start();
        ticks(&mut watching, &clock, 1, 10);
        watching.tick(0, clock.at(600));
        assert!(!watching.is_lost("n", clock.at(600)));
        ticks(&mut watching, &clock, 601, 640);
        assert!(watching.is_lost("n", clock.at(640)), "but silence counts again");
    }

    #[test]
    fn an_interrupted_watch_begins_anew() {
        let (mut watching, clock) = start();
        ticks(&mut watching, &clock, 1, 39);
        watching.tick(1, clock.at(40));
        assert!(!watching.is_lost("n", clock.at(41)));
    }

    #[test]
    fn a_node_we_never_heard_of_is_lost_only_after_we_watched_long_enough() {
        let (watching, clock) = start();
        assert!(!watching.is_lost("other", clock.at(39)));
        assert!(watching.is_lost("other", clock.at(40)));
    }
}
