//! The least used node, or where the queue packs the most used one.

use super::Candidate;
use api::queue::Placement;

/// Shares are compared in ten-thousandths, so that equal nodes are equal.
const STEPS: f64 = 10_000.0;

pub(super) fn score(candidate: &Candidate) -> i64 {
    let used = (candidate.node.used.share(&candidate.node.allocatable) * STEPS) as i64;
    match candidate.placement {
        Placement::Spread => -used,
        Placement::Pack => used,
    }
}
