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
        node.lacks(&node.used, work)
            .map(|(number, missing)| match number {
                SLOT => Rejection::NoSlot,
                _ => Rejection::Resource(number, missing),
            })
    }
}
