//! SQLite as the embedded databases of the server use it: `store.db` and `logs.db`.
//!
//! What they share, and what is easy to get wrong, is here once:
//!
//! * [`Database::open`] takes a lock file, so a second process is refused (`lock`); repairs what a failed fsync left
//!   behind (`repair`); opens in WAL mode with `synchronous=FULL`, so a commit that returned is on disk.
//! * [`Writer::transact`] is the one way to write. A full disk ([`Failure::Full`]) undoes the transaction and may be
//!   retried. A failed write or fsync ([`Failure::Broken`]) stops all writes for good: the kernel has marked the pages
//!   clean, so neither a retry nor a reopened file would show what the disk holds.
//! * [`Database::read`] runs queries on a few read connections off the async threads (`readers`).
//! * Checkpoints run on a thread of their own (`checkpoint`), so no commit pays for one.
//!
//! What does not belong here: any table.

mod checkpoint;
mod connection;
mod database;
mod failure;
mod lock;
mod readers;
mod repair;

pub use database::{Database, OpenError, Schema, Writer};
pub use failure::Failure;
pub use lock::LockError;
