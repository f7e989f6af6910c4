//! The node must have the shells the steps name. A node that reports no shells at all is taken to have them.

use super::{Clears, Filter, Rejection};
use crate::core::{
    signature::Signature,
    world::{NodeState, World},
};

/// How features name shells: `shell/pwsh`.
pub(crate) const SHELL_PREFIX: &str = "shell/";

pub(crate) struct Features;

impl Filter for Features {
    fn cleared_by(&self) -> Clears {
        Clears::NODE
    }

    fn rejects<'a>(&self, work: &'a Signature, node: &'a NodeState, _: &'a World) -> Option<Rejection<'a>> {
        let reports = node.features.iter().any(|f| f.starts_with(SHELL_PREFIX));
        let missing = work
            .requires
            .iter()
            .find(|f| reports && !node.features.contains(*f))?;
        Some(Rejection::Feature(missing))
    }
}
