//! Fewest PreferNoSchedule taints that are not tolerated.

use super::Candidate;
use api::placement::Effect;

pub(super) fn score(candidate: &Candidate) -> i64 {
    let tolerated = |taint| candidate.work.tolerations.iter().any(|t| t.tolerates(taint));
    let against = candidate
        .node
        .taints
        .iter()
        .filter(|t| t.effect == Effect::PreferNoSchedule && !tolerated(t))
        .count();
    -i64::try_from(against).unwrap_or(i64::MAX)
}
