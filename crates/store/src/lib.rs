//! The versioned key-value store everything durable goes through.
//!
//! One [`Store`] holds every object of the API as bytes under a key, gives each change a [`Revision`] that only ever
//! grows, writes by compare-and-swap, and tells watchers of every change in order. It knows nothing about kinds.
//!
//! * [`Sqlite`]: the embedded default. One process, one folder, group commit, a full disk and a failed fsync survived.
//! * [`Memory`]: the same contract without a disk, for tests and tools.
//!
//! Both pass one conformance suite (`tests/conformance.rs`), and a property test compares them write by write.
//! Entry points: [`Sqlite::open`], then [`Store::scan`] followed by [`Store::watch`] from the revision it returned.

mod feed;
mod memory;
mod sqlite;
mod store;
mod watch;
mod write;

pub use ::sqlite::{LockError, OpenError};
pub use memory::Memory;
pub use sqlite::{Options, Sqlite};
pub use store::{Head, Store, StoreError};
pub use watch::{Batch, Event, WatchEnd, WatchStream};
pub use write::{Conflict, Durability, Entry, Guard, Revision, Write};
