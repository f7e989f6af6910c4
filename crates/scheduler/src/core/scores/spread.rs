//! Fewest Tasks of this Job on the node, unless the queue packs.

use super::Candidate;
use api::queue::Placement;

pub(super) fn score(candidate: &Candidate) -> i64 {
    match candidate.placement {
        Placement::Spread => -i64::from(candidate.job.running_on(candidate.node.id)),
        Placement::Pack => 0,
    }
}
