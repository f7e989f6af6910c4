//! Every NoSchedule and NoExecute taint of the node must be tolerated.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};
use api::selector::repelling;

pub(crate) struct Taints;

impl Filter for Taints {
    fn cleared_by(&self) -> Clears {
        Clears::NODE
    }

    fn rejects<'a>(&self, work: &'a Signature, node: &'a NodeState, _: &'a World) -> Option<Rejection<'a>> {
        let taint = repelling(&node.taints, &work.tolerations)?;
        Some(Rejection::Taint(&taint.key, &taint.value))
    }
}
