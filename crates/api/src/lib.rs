//! The kinds of Prow.Windows as Rust types, with their defaults and semantic validation. Pure: no I/O, no async.

// printer columns repeat `type_` and `priority`, which is no mistake
#![allow(clippy::duplicated_attributes)]

/// Accessors for texts of an object's metadata that the server always sets: empty where they are not there yet.
macro_rules! metadata_texts {
    ($kind:ty: $($field:ident),+) => {
        impl $kind {
            $(
                #[doc = concat!("`metadata.", stringify!($field), "`, or empty.")]
                pub fn $field(&self) -> &str {
                    self.metadata.$field.as_deref().unwrap_or_default()
                }
            )+
        }
    };
}

pub mod amount;
pub mod clock;
pub mod crd;
pub mod data;
pub mod duration;
pub mod enrolment;
pub mod exit_code;
pub mod expr;
pub mod field;
pub mod identity;
pub mod job;
pub mod names;
pub mod node;
pub mod placement;
pub mod quantity;
pub mod queue;
pub mod reference;
pub mod resource;
pub mod retry;
pub mod selector;
pub mod step;
pub mod strategy;
pub mod target;
pub mod task;
pub mod validate;
pub mod wanted;
pub mod work;

pub use job::{Job, JobSpec, JobStatus};
pub use node::{Node, NodeSpec, NodeStatus};
pub use queue::{Queue, QueueSpec, QueueStatus};
pub use resource::Resource;
pub use target::{Target, TargetSpec, TargetStatus};
pub use task::{Task, TaskSpec, TaskStatus};

/// API group of all our kinds.
pub const GROUP: &str = "prow.windows";
/// Version of all our kinds.
pub const VERSION: &str = "v1";
/// Keeps Jobs and Tasks until process trees are gone and results counted.
pub const TRACKING_FINALIZER: &str = "prow.windows/tracking";

/// Whether a field of a list's item holds its default and so is not written: `kubectl apply` compares lists as a whole, and a
/// default written into an item would make every apply of an unchanged manifest a change.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
