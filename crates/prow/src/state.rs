//! The data folder of a server on this machine: where things lie in it, and whether a server uses it now.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// Where `prow dev` keeps its data unless told otherwise.
pub fn default_data_dir() -> Option<PathBuf> {
    if cfg!(windows) {
        return std::env::var_os("LOCALAPPDATA").map(|base| PathBuf::from(base).join("Prow"));
    }
    std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .filter(|base| base.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".local/share")))
        .map(|base| base.join("prow"))
}

/// The administrator's kubeconfig.
pub fn kubeconfig(data: &Path) -> PathBuf {
    data.join("kubeconfig")
}

fn lock_file(data: &Path) -> PathBuf {
    data.join("prow.lock")
}

/// Takes the folder for this process; `None` if another one has it. The lock ends with the process, however that ends.
pub fn lock(data: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(lock_file(data))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whether a server uses the folder now.
pub fn is_locked(data: &Path) -> bool {
    File::open(lock_file(data))
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_server_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_locked(dir.path()));
        let lock = super::lock(dir.path()).unwrap().unwrap();
        assert!(is_locked(dir.path()));
        assert!(super::lock(dir.path()).unwrap().is_none());
        drop(lock);
        assert!(!is_locked(dir.path()));
    }
}
