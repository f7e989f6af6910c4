//! Which of the nodes that fit is best: one file a score, compared in this order, higher first.

mod affinity;
mod apart;
mod even;
mod failures;
mod room;
mod spread;
mod taints;

use super::{
    job::JobState,
    signature::Signature,
    spread::Spread,
    world::{NodeState, World},
};
use api::queue::Placement;

/// What the scores look at.
pub(crate) struct Candidate<'a> {
    pub world: &'a World,
    pub node: &'a NodeState,
    pub work: &'a Signature,
    pub job: &'a JobState,
    pub placement: Placement,
}

/// A number for a node; only its order counts.
type Score = fn(&Candidate) -> i64;

static SCORES: [Score; 7] = [
    affinity::score,
    apart::score,
    taints::score,
    failures::score,
    even::score,
    spread::score,
    room::score,
];

/// The scores of a node, to be compared in order.
pub(crate) fn of(candidate: &Candidate) -> [i64; SCORES.len()] {
    SCORES.map(|score| score(candidate))
}
