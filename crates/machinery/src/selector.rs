//! Label and field selectors: parsed from query parameters or `metav1.LabelSelector` objects, then matched.

mod field;
mod label;

pub use field::{FieldRequirement, FieldSelector, field_value};
pub use label::{LabelSelector, Operator, Requirement};

use crate::status::Status;

/// A selector that cannot be understood; a retry cannot help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(String);

impl From<Invalid> for Status {
    fn from(error: Invalid) -> Self {
        Status::bad_request(error.0)
    }
}
