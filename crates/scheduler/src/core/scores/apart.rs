//! Preferred anti-affinity: fewest Tasks of Jobs that the work would rather keep apart from, by weight.

use super::Candidate;

pub(super) fn score(candidate: &Candidate) -> i64 {
    let world = candidate.world;
    let against = |(weight, id): &(i32, usize)| {
        let crowd = &world.terms.get(*id)?.selected;
        let value = world.topologies.value(crowd.topology, candidate.node.id)?;
        Some(i64::from(*weight) * i64::from(crowd.with(value)))
    };
    -candidate
        .work
        .apart
        .prefers
        .iter()
        .filter_map(against)
        .sum::<i64>()
}
