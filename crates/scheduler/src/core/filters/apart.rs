//! No Task of a Job that is to be kept apart may be near.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};

pub(crate) struct Apart;

impl Filter for Apart {
    fn cleared_by(&self) -> Clears {
        Clears::CAPACITY.or(Clears::NODE)
    }

    fn rejects<'a>(
        &self,
        work: &'a Signature,
        node: &'a NodeState,
        world: &'a World,
    ) -> Option<Rejection<'a>> {
        let term = |id: &usize| world.terms.get(*id);
        let selected = work.apart.holds.iter().filter_map(term).map(|t| &t.selected);
        let holders = work.apart.selected.iter().filter_map(term).map(|t| &t.holders);
        let near = selected.chain(holders).find(|crowd| crowd.near().has(node.id))?;
        Some(Rejection::Near(world.topologies.key(near.topology)))
    }
}
