//! What a SQLite error means for whoever asked.

use rusqlite::{Error, ErrorCode, ffi};

/// Why a database could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No space left. The transaction was undone; a retry helps once there is space.
    #[error("no space left: {0}")]
    Full(String),
    /// A write or an fsync failed, now or earlier. Nothing is written any more until the process is started again,
    /// which repairs the files.
    #[error("writing to the disk failed: {0}")]
    Broken(String),
    /// The database is closed.
    #[error("the database is closed")]
    Closed,
    /// Anything else; the transaction was undone. A retry may help.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Sorts out an error met while writing.
    pub(crate) fn of_write(error: &Error) -> Self {
        match error {
            Error::SqliteFailure(
                ffi::Error {
                    code: ErrorCode::DiskFull,
                    ..
                },
                _,
            ) => Self::Full(error.to_string()),
            // The index of the WAL could not grow: its file is extended before it is used, so this too is a full disk.
            Error::SqliteFailure(e, _) if e.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
                Self::Full(error.to_string())
            }
            Error::SqliteFailure(
                ffi::Error {
                    code: ErrorCode::SystemIoFailure,
                    ..
                },
                _,
            ) => Self::Broken(error.to_string()),
            _ => Self::Other(error.to_string()),
        }
    }

    /// Sorts out an error met while reading, which never stops the writes.
    pub(crate) fn of_read(error: &Error) -> Self {
        Self::Other(error.to_string())
    }
}
