//! The node's agent must have been heard of lately, and the node must not be cordoned.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};

pub(crate) struct Ready;

impl Filter for Ready {
    fn cleared_by(&self) -> Clears {
        Clears::NODE
    }

    fn rejects<'a>(&self, _: &'a Signature, node: &'a NodeState, _: &'a World) -> Option<Rejection<'a>> {
        if !node.ready {
            return Some(Rejection::NotReady);
        }
        node.unschedulable.then_some(Rejection::Cordoned)
    }
}
