//! What the API server asks of each of our kinds beside its schema.

use crate::{field::Errors, identity::Identity};
use serde::{Serialize, de::DeserializeOwned};

/// A kind of ours. Names, columns, selectable fields and schema come from its CRD; this is the rest.
pub trait Resource:
    kube::CustomResourceExt + Serialize + DeserializeOwned + Clone + Send + Sync + 'static
{
    /// Whether names must be DNS labels (at most 63 characters, no dots), as parts of other names are made of them.
    const LABEL_NAME: bool = false;

    /// Makes a new object ready to be stored: finalizers, who asked. Runs before validation.
    fn prepare_create(&mut self, _user: &Identity) {}

    /// Makes a changed object ready: keeps what clients may not change or drop.
    fn prepare_update(&mut self, _old: &Self) {}

    /// All mistakes of the object as it stands.
    fn validate(&self) -> Errors;

    /// All mistakes of the change from `old`: immutable fields. The result of [`Resource::validate`] is separate.
    fn validate_update(&self, _old: &Self) -> Errors {
        Errors::new()
    }

    /// All mistakes of a status change; a terminal phase never changes.
    fn validate_status(&self, _old: &Self) -> Errors {
        Errors::new()
    }

    /// What the user should know though it is no mistake.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}
