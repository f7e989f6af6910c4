//! Fewest failures of this Job on the node: where it failed before it will rather fail again.

use super::Candidate;

pub(super) fn score(candidate: &Candidate) -> i64 {
    -i64::from(candidate.job.failures_on(candidate.node.id))
}
