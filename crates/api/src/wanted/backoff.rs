//! Waits between attempts: computed from what is stored, never stored themselves.

use super::index::Key;
use crate::{duration, retry::Backoff};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The longest wait a rejection imposes.
const LONGEST_REJECTION: u64 = 300;

/// The wait before the repeat number `n` (0 is the first), `duration * factor^n` up to `cap`, give or take `jitter`. The jitter is
/// the same whenever and wherever it is computed for this Job, index and attempt.
pub(super) fn retry(backoff: &Backoff, n: u32, job_uid: &str, key: &Key, attempt: u32) -> Duration {
    let seconds = |text: &str| duration::parse(text).map(|d| d.as_secs_f64()).unwrap_or(0.0);
    let exponent = i32::try_from(n).unwrap_or(i32::MAX);
    let grown = seconds(&backoff.duration) * backoff.factor.max(1.0).powi(exponent);
    let wait = grown.min(seconds(&backoff.cap));
    let spread = 2.0 * unit(job_uid, key, attempt) - 1.0;
    let jittered = wait * (1.0 + backoff.jitter.clamp(0.0, 1.0) * spread);
    Duration::try_from_secs_f64(jittered).unwrap_or(Duration::ZERO)
}

/// How long a node is kept from an index it rejected for the `n`th time (0 is the first).
pub(super) fn rejection(n: u32) -> Duration {
    Duration::from_secs(1u64.checked_shl(n).unwrap_or(u64::MAX).min(LONGEST_REJECTION))
}

/// A number in [0, 1) that depends on nothing but its arguments.
fn unit(job_uid: &str, key: &Key, attempt: u32) -> f64 {
    let mut hash = Sha256::new();
    hash.update(job_uid);
    match key {
        Key::Index(index) => hash.update(index.to_be_bytes()),
        Key::Node(node) => hash.update(node.as_bytes()),
    }
    hash.update(attempt.to_be_bytes());
    let digest = hash.finalize();
    let bits = digest
        .iter()
        .take(6)
        .fold(0u64, |n, byte| n << 8 | u64::from(*byte));
    bits as f64 / (1u64 << 48) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_stay_within_the_jitter() {
        let backoff = Backoff::default();
        for (n, plain) in [
            (0, 10.0),
            (1, 20.0),
            (2, 40.0),
            (4, 160.0),
            (5, 300.0),
            (1_000_000, 300.0),
        ] {
            for attempt in 0..20 {
                let wait = retry(&backoff, n, "uid", &Key::Index(3), attempt).as_secs_f64();
                assert!((plain * 0.8..=plain * 1.2).contains(&wait), "{n}: {wait}");
            }
        }
    }

    #[test]
    fn the_jitter_differs_between_indexes_and_never_between_askings() {
        let of = |index| retry(&Backoff::default(), 0, "uid", &Key::Index(index), 1);
        assert_eq!(of(1), of(1));
        let distinct: std::collections::HashSet<_> = (0..100).map(of).collect();
        assert!(distinct.len() > 90);
    }

    #[test]
    fn rejections_double_up_to_five_minutes() {
        assert_eq!(rejection(0).as_secs(), 1);
        assert_eq!(rejection(3).as_secs(), 8);
        assert_eq!(rejection(9).as_secs(), 300);
        assert_eq!(rejection(4_000_000).as_secs(), 300);
    }
}
