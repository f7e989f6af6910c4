//! Files and folders that only their owner may read; on Windows also the system and the administrators.

use anyhow::{Context, Result};
use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// Makes a folder, if it is missing, that only its owner may enter.
pub fn folder(path: &Path) -> Result<()> {
    imp::folder(path).with_context(|| format!("the folder {} cannot be made", path.display()))
}

/// Writes a file that only its owner may read; readers see the old or the new one, never a part.
pub fn file(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    let write = || {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).write(true);
        let mut file = imp::open(&mut options, &new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        imp::rename(&new, path)
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(unix)]
mod imp {
    use super::*;
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};

    pub(super) fn folder(path: &Path) -> io::Result<()> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
    }

    pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
        options.mode(0o600).open(path)
    }

    pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }
}

#[cfg(windows)]
mod imp {
    use super::*;

    pub(super) use win32::private::{create_folder as folder, rename};

    /// The folder says who may read it.
    pub(super) fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
        win32::private::open(options, path)
    }
}
