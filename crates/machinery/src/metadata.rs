//! What all objects share: the rules of `metadata`, and how it changes over an object's life.

mod lifecycle;
mod names;
mod rules;

pub use lifecycle::{
    Deletion, Propagation, begin_deletion, check_preconditions, finalizers, is_deleting, is_finalized,
    prepare_create, prepare_status_update, prepare_update, timestamp,
};
pub use names::{
    dns_label, dns_subdomain, generate_name, label_key, label_value, name_by_rule, path_segment,
};
pub use rules::{validate, validate_update};
