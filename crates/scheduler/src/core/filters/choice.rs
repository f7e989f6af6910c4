//! The node must be one the Job names, and in the Target it names.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};

pub(crate) struct Choice;

impl Filter for Choice {
    fn cleared_by(&self) -> Clears {
        Clears::TARGET.or(Clears::NODE)
    }

    fn rejects<'a>(
        &self,
        work: &'a Signature,
        node: &'a NodeState,
        world: &'a World,
    ) -> Option<Rejection<'a>> {
        if !work.chooser.names_allow(&node.name) {
            return Some(Rejection::NotNamed);
        }
        let target = work.chooser.target()?;
        if !world.targets.contains_key(target) {
            return Some(Rejection::NoSuchTarget(target));
        }
        let held = node.targets.iter().any(|t| t == target);
        (!held).then_some(Rejection::NotInTarget(target))
    }
}
