//! The host goes down: what runs is told to end at once, with as much of its grace as there is time for.
//!
//! ```text
//! begin ──► stop order to all runners: min(grace, what is left − RESERVE)
//!       ──► RESERVE before the end: forced, so that neither rollback nor finally hold the host up
//!       ──► runners gone, their results synced by themselves; LAST before the end whatever is left is left
//! ```

use crate::{layout::TaskDir, runner::Identity};
use api::task::Stop;
use std::time::Duration;
use tokio::{sync::watch, time::Instant};

/// Kept back of the time that is left, for steps to be ended by force and results to be written.
const RESERVE: Duration = Duration::from_secs(10);
/// Kept back for the agent's own journals.
const LAST: Duration = Duration::from_secs(3);
/// Between looks at whether the runners are gone; nobody tells of all of them at once.
const LOOK: Duration = Duration::from_millis(100);

/// Whether the host goes down, and when our time is over.
#[derive(Debug)]
pub struct Departure(watch::Sender<Option<Instant>>);

impl Default for Departure {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Departure {
    /// Whether it goes down: nothing new is begun any more.
    pub fn has_begun(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// For one task: the orders that follow from it.
    pub fn orders(&self, grace_seconds: i64) -> Orders {
        Orders {
            end: self.0.subscribe(),
            grace_seconds,
            told: Told::Nothing,
        }
    }

    /// Begins it, and waits until all runners have ended or there is no time left. `within` is the time until the host stops waiting.
    pub async fn depart(&self, within: Duration, tasks: &[TaskDir]) {
        let end = Instant::now() + within;
        let runners: Vec<Identity> = tasks.iter().filter_map(living_runner).collect();
        tracing::warn!(
            runners = runners.len(),
            seconds = within.as_secs(),
            "the host goes down; ending what runs"
        );
        self.0.send_replace(Some(end));
        let gone = async {
            while runners.iter().any(Identity::is_alive) {
                tokio::time::sleep(LOOK).await;
            }
        };
        let last = end.checked_sub(LAST).unwrap_or(end);
        match tokio::time::timeout_at(last, gone).await {
            Ok(()) => tracing::info!("all that ran has ended"),
            Err(_) => tracing::warn!("not all that ran has ended in time"),
        }
    }
}

fn living_runner(dir: &TaskDir) -> Option<Identity> {
    let local = super::recovery::Local {
        agent: crate::journal::read(&dir.agent_journal()).ok()?,
        run: crate::journal::read(&dir.run_journal()).ok()?,
        alive: false,
    };
    local.runner().filter(|runner| runner.is_alive()).cloned()
}

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    ToEnd,
    ToEndNow,
}

/// What one task is told.
#[derive(Debug)]
pub struct Orders {
    end: watch::Receiver<Option<Instant>>,
    grace_seconds: i64,
    told: Told,
}

impl Orders {
    /// The next order; pending for as long as there is none.
    pub async fn next(&mut self) -> Stop {
        let Ok(end) = self.end.wait_for(Option::is_some).await.map(|end| *end) else {
            return std::future::pending().await;
        };
        let end = end.unwrap_or_else(Instant::now);
        let reserve = end.checked_sub(RESERVE).unwrap_or(end);
        match self.told {
            Told::Nothing => {
                self.told = Told::ToEnd;
                let left = reserve.saturating_duration_since(Instant::now()).as_secs();
                self.stop(self.grace_seconds.min(left.cast_signed()), false)
            }
            Told::ToEnd => {
                tokio::time::sleep_until(reserve).await;
                self.told = Told::ToEndNow;
                self.stop(0, true)
            }
            Told::ToEndNow => std::future::pending().await,
        }
    }

    fn stop(&self, grace_seconds: i64, force: bool) -> Stop {
        Stop {
            reason: "Interrupted".into(),
            message: "the host was shut down or restarted".into(),
            grace_seconds,
            force,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AL-05.
    #[tokio::test(start_paused = true)]
    async fn the_grace_leaves_time_to_end_by_force() {
        let departure = Departure::default();
        let (mut short, mut long) = (departure.orders(20), departure.orders(600));
        let waiting = tokio::time::timeout(Duration::from_secs(3600), short.next());
        assert!(waiting.await.is_err(), "nothing is told while the host stays");
        assert!(!departure.has_begun());

        let began = Instant::now();
        departure.0.send_replace(Some(began + Duration::from_secs(120)));
        let (short, first) = (short.next().await, long.next().await);
        assert_eq!((short.grace_seconds, short.force), (20, false));
        assert_eq!((first.grace_seconds, first.force), (110, false));
        assert_eq!(first.reason, "Interrupted");
        let second = long.next().await;
        assert_eq!((second.grace_seconds, second.force), (0, true));
        assert_eq!(began.elapsed().as_secs(), 110);
    }

    #[tokio::test(start_paused = true)]
    async fn with_hardly_any_time_all_is_ended_at_once() {
        let departure = Departure::default();
        let mut orders = departure.orders(600);
        let began = Instant::now();
        departure.0.send_replace(Some(began + Duration::from_secs(5)));
        assert_eq!(orders.next().await.grace_seconds, 0);
        assert!(orders.next().await.force);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
