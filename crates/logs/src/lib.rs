//! Task logs: for each step of each Task one run of bytes that only grows at its end.
//!
//! Whoever writes offers a range with its start; it is taken only if it starts where the log ends, and the answer is
//! always where the log ends now. So a repeated, overlapping or late offer does no harm, and after any restart the writer
//! asks and goes on from there. The bytes are stored as they come; what is in them (CRI lines, masked) is the writer's
//! affair.
//!
//! * [`Logs`]: the contract.
//! * [`Sqlite`]: the embedded default, `logs.db` in the server's data folder.

mod growth;
mod logs;
mod sqlite;

pub use crate::logs::{Log, LogError, Logs};
pub use ::sqlite::{LockError, OpenError};
pub use sqlite::{Options, Sqlite};
