//! The node must have every label of `nodeSelector`.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};

pub(crate) struct Selector;

impl Filter for Selector {
    fn cleared_by(&self) -> Clears {
        Clears::NODE
    }

    fn rejects<'a>(&self, work: &'a Signature, node: &'a NodeState, _: &'a World) -> Option<Rejection<'a>> {
        let (key, value) = work.chooser.unmet_label(&node.labels)?;
        Some(Rejection::Label(key, value))
    }
}
