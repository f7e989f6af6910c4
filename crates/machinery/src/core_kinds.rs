//! Kubernetes' own kinds, served as Kubernetes serves them.

use crate::kind::Kind;

/// All of them.
pub fn all() -> Vec<Kind> {
    todo!()
}

/// One by its plural name.
pub fn by_plural(plural: &str) -> Option<Kind> {
    all().into_iter().find(|k| k.plural == plural)
}
