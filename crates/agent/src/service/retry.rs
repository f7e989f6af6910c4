//! Waiting between tries: longer each time, and never all agents at once.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);

/// Waits that double from 200 ms up to a cap, each by chance between half and all of it.
#[derive(Clone, Debug)]
pub struct Backoff {
    next: Duration,
    cap: Duration,
}

impl Backoff {
    /// Waits up to `cap`.
    pub fn new(cap: Duration) -> Self {
        Self {
            next: FIRST.min(cap),
            cap,
        }
    }

    /// How long to wait before the next try.
    pub fn delay(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(self.cap);
        between(now / 2, now)
    }

    /// Waits before the next try.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.delay()).await;
    }

    /// The last try worked: the next failure waits shortly again.
    pub fn reset(&mut self) {
        self.next = FIRST.min(self.cap);
    }
}

/// A duration by chance; the middle where the system has no random bytes to give.
pub fn between(low: Duration, high: Duration) -> Duration {
    let share = getrandom::u32().map_or(0.5, |n| f64::from(n) / f64::from(u32::MAX));
    low + high.saturating_sub(low).mul_f64(share)
}

/// A random name of 16 hex digits.
pub fn random_id() -> Result<String, getrandom::Error> {
    getrandom::u64().map(|n| format!("{n:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_start_over_after_success() {
        let cap = Duration::from_secs(2);
        let mut backoff = Backoff::new(cap);
        let waits: Vec<_> = (0..8).map(|_| backoff.delay()).collect();
        assert!(waits[0] <= FIRST && waits[0] >= FIRST / 2);
        assert!(waits[7] <= cap && waits[7] >= cap / 2);
        backoff.reset();
        assert!(backoff.delay() <= FIRST);
    }
}
