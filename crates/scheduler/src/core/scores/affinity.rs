//! Preferred node affinity: the weights of the preferences a node meets.

use super::Candidate;

pub(super) fn score(candidate: &Candidate) -> i64 {
    let node = candidate.node;
    candidate
        .work
        .preferred
        .iter()
        .filter(|p| p.preference.matches(&node.name, &node.labels))
        .map(|p| i64::from(p.weight))
        .sum()
}
