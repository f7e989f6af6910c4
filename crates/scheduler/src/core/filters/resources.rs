//! The node must have a slot and everything the work requests free.

use super::{Clears, Filter, Rejection};
use crate::core::{
    amounts::SLOT,
    signature::Signature,
    world::{NodeState, World},
};

pub(crate) struct Resources;

impl Filter for Resources {
    fn cleared_by(&self) -> Clears {
        Clears::CAPACITY.or(Clears::NODE)
    }

    fn rejects<'a>(&self, work: &'a Signature, node: &'a NodeState, _: &'a World) -> Option<Rejection<'a>> {
        if node.used.get(SLOT) >= node.slots(work.emergency) {
            return Some(Rejection::NoSlot);
        }
        work.requests
            .iter()
            .filter(|(number, _)| *number != SLOT)
            .find_map(|(number, amount)| {
                let wanted = node.used.get(number).saturating_add(amount);
                let missing = wanted.saturating_sub(node.allocatable.get(number));
                (amount > 0 && missing > 0).then_some(Rejection::Resource(number, missing))
            })
    }
}
