//! A namespace may run on a node only if a Target that holds the node grants it.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};

pub(crate) struct Access;

impl Filter for Access {
    fn cleared_by(&self) -> Clears {
        Clears::TARGET.or(Clears::NAMESPACE).or(Clears::NODE)
    }

    fn rejects<'a>(
        &self,
        work: &'a Signature,
        node: &'a NodeState,
        world: &'a World,
    ) -> Option<Rejection<'a>> {
        let labels = world.namespace_labels(&work.namespace);
        let granted = node
            .targets
            .iter()
            .filter_map(|name| world.targets.get(name))
            .any(|target| target.spec.grants(labels));
        (!granted).then_some(Rejection::NoAccess(&work.namespace))
    }
}
