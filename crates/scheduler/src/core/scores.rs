//! Which of the nodes that fit is best: one file a score, compared in this order, higher first.

mod affinity;
mod failures;
mod room;
mod spread;
mod taints;

use super::{
    job::JobState,
    signature::Signature,
    world::{NodeId, NodeState},
};
use api::queue::Placement;

/// What the scores look at.
pub(crate) struct Candidate<'a> {
    pub id: NodeId,
    pub node: &'a NodeState,
    pub work: &'a Signature,
    pub job: &'a JobState,
    pub placement: Placement,
}

/// A number for a node; only its order counts.
type Score = fn(&Candidate) -> i64;

static SCORES: [Score; 5] = [
    affinity::score,
    taints::score,
    failures::score,
    spread::score,
    room::score,
];

/// The scores of a node, to be compared in order.
pub(crate) fn of(candidate: &Candidate) -> [i64; SCORES.len()] {
    SCORES.map(|score| score(candidate))
}
