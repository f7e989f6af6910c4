//! The node's agent must have been heard of lately, and the node must not be cordoned, but for the very Job that asks.

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

    fn rejects<'a>(&self, work: &'a Signature, node: &'a NodeState, _: &'a World) -> Option<Rejection<'a>> {
        if !node.ready {
            return Some(Rejection::NotReady);
        }
        let own = work.disruptive.is_some() && work.disruptive == node.cordoned_for;
        (node.unschedulable && !own).then_some(Rejection::Cordoned)
    }
}
