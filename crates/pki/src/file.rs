//! Files that appear whole or not at all, and those only their owner may read.

use crate::Error;
use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::Path,
};

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Its owner (Unix 0600; on Windows the folder's access list says so).
    Owner,
    /// Everybody.
    All,
}

/// Writes a file beside its place, syncs it and renames it: a crash leaves the old file or the new one.
pub(crate) fn write(path: &Path, bytes: &[u8], readers: Readers) -> Result<(), Error> {
    let beside = path.with_extension("new");
    let failed = |source| Error::File {
        path: path.to_owned(),
        source,
    };
    let attempt = || {
        match fs::remove_file(&beside) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = imp::create(&beside, readers)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        imp::rename(&beside, path)?;
        imp::sync_folder(path)
    };
    attempt().map_err(failed)
}

/// Reads a file; `None` if there is none.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::File {
            path: path.to_owned(),
            source,
        }),
    }
}

/// Makes a folder only its owner may enter, and its parents.
pub(crate) fn folder(path: &Path) -> Result<(), Error> {
    imp::folder(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })
}

#[cfg(unix)]
mod imp {
    use super::*;
    use std::{
        io,
        os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    };

    pub(super) fn create(path: &Path, readers: Readers) -> io::Result<File> {
        let mode = if readers == Readers::Owner { 0o600 } else { 0o644 };
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)
    }

    pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
        path.parent()
            .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }

    pub(super) fn folder(path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
    }
}

#[cfg(windows)]
mod imp {
    use super::*;
    use std::io;

    pub(super) fn create(path: &Path, _readers: Readers) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(path)
    }

    pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
        win32::private::rename(from, to)
    }

    pub(super) fn sync_folder(_path: &Path) -> io::Result<()> {
        Ok(()) // the file system logs names itself
    }

    pub(super) fn folder(path: &Path) -> io::Result<()> {
        win32::private::create_folder(path)
    }
}
