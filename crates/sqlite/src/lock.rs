//! The lock file that keeps a second process off a database.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// A held lock; released when dropped, or by the system when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Why a database could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process (or another part of this one) has the database open. Stop it, or use another folder.
    #[error("{} is in use by process {holder}: stop it or use another data folder", path.display())]
    InUse {
        /// The lock file.
        path: PathBuf,
        /// The process id the holder wrote into it; `unknown` if it could not be read.
        holder: String,
    },
    /// The lock file could not be made. Check the folder and its permissions.
    #[error("cannot lock {}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

impl Lock {
    /// Takes the lock at `path`, without waiting.
    pub(crate) fn take(path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        // Not truncated on open: the holder's process id must stay readable for those who are refused.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                let read = file.read_to_string(&mut holder);
                let known = read.is_ok() && !holder.trim().is_empty();
                let holder = if known {
                    holder.trim().to_owned()
                } else {
                    "unknown".to_owned()
                };
                return Err(LockError::InUse {
                    path: path.to_owned(),
                    holder,
                });
            }
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        // The process id is for the message only, so a full disk must not keep the server from starting.
        let note = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        if let Err(error) = note {
            tracing::warn!(path = %path.display(), %error, "could not note the process id in the lock file");
        }
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_holder_is_refused_and_told_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.lock");
        let held = Lock::take(&path).unwrap();
        let refused = Lock::take(&path).unwrap_err();
        assert!(
            matches!(&refused, LockError::InUse { holder, .. } if *holder == std::process::id().to_string())
        );
        drop(held);
        Lock::take(&path).unwrap();
    }
}
