//! One more Task of the Job must not make a required spread too uneven.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};

pub(crate) struct Spread;

impl Filter for Spread {
    fn cleared_by(&self) -> Clears {
        Clears::CAPACITY.or(Clears::NODE)
    }

    fn rejects<'a>(
        &self,
        work: &'a Signature,
        node: &'a NodeState,
        world: &'a World,
    ) -> Option<Rejection<'a>> {
        work.spread
            .iter()
            .filter(|spread| spread.required)
            .find_map(|spread| {
                let key = world.topologies.key(spread.topology);
                match world.topologies.value(spread.topology, node.id) {
                    None => Some(Rejection::NoTopology(key)),
                    Some(value) if spread.skew(value) > spread.max_skew => Some(Rejection::Skewed(key)),
                    Some(_) => None,
                }
            })
    }
}
