//! `topologySpreadConstraints`: the values of the label that have fewest of this Job's Tasks. Nodes without the label come last.

use super::Candidate;

pub(super) fn score(candidate: &Candidate) -> i64 {
    let world = candidate.world;
    let skew = |spread: &super::Spread| {
        let value = world.topologies.value(spread.topology, candidate.node.id);
        value.map_or(i64::from(u32::MAX), |value| i64::from(spread.skew(value)))
    };
    -candidate.work.spread.iter().map(skew).sum::<i64>()
}
