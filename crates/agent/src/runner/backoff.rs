//! How long to wait before a step is tried again.

use api::{duration, retry::Backoff};
use std::time::Duration;

/// The wait before the next try, after `failed` tries; `random` is from 0 to 1.
pub(super) fn wait(backoff: &Backoff, failed: i32, random: f64) -> Duration {
    let read = |text: &str, or: u64| {
        duration::parse(text)
            .unwrap_or(Duration::from_secs(or))
            .as_secs_f64()
    };
    let grown = read(&backoff.duration, 10) * backoff.factor.max(1.0).powi(failed.saturating_sub(1).max(0));
    let capped = grown.min(read(&backoff.cap, 300));
    let jittered = capped * (1.0 + backoff.jitter.clamp(0.0, 1.0) * (random * 2.0 - 1.0));
    Duration::try_from_secs_f64(jittered).unwrap_or(Duration::from_secs(300))
}

/// A random number from 0 to 1 by the system; a half where it has none.
pub(super) fn random() -> f64 {
    getrandom::u32().map_or(0.5, |n| f64::from(n) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_cap_and_stray_by_the_jitter() {
        let backoff = Backoff {
            duration: "10s".into(),
            factor: 2.0,
            cap: "1m".into(),
            jitter: 0.5,
        };
        let seconds = |failed, random| wait(&backoff, failed, random).as_secs_f64();
        assert_eq!(
            [1, 2, 3, 4, 1000].map(|n| seconds(n, 0.5)),
            [10.0, 20.0, 40.0, 60.0, 60.0]
        );
        assert_eq!((seconds(1, 0.0), seconds(1, 1.0)), (5.0, 15.0));
    }
}
