//! Kinds of ours: a [`Kind`] made from the type's CRD, with a strategy that goes through the type.

use crate::kind::Kind;
use api::Resource;

/// The kind of `T`.
pub fn kind<T: Resource>() -> Kind {
    todo!()
}
