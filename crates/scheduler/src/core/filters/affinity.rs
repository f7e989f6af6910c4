//! The node must meet the required node affinity.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};

pub(crate) struct Affinity;

impl Filter for Affinity {
    fn cleared_by(&self) -> Clears {
        Clears::NODE
    }

    fn rejects<'a>(&self, work: &'a Signature, node: &'a NodeState, _: &'a World) -> Option<Rejection<'a>> {
        let met = work.chooser.affinity_allows(&node.name, &node.labels);
        (!met).then_some(Rejection::Affinity)
    }
}
