//! Files and folders of this account alone.

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Makes a folder that this account alone can enter, its parents too, or narrows one that is there.
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let meta = path.symlink_metadata()?;
    if meta.is_dir() && meta.mode() & 0o077 != 0 && is_ours(path)? {
        std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Makes a folder that others may enter; one that is there is left as it is.
pub fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// Whether `path` is a folder, no link, of this account.
pub fn is_ours(path: &Path) -> io::Result<bool> {
    let meta = path.symlink_metadata()?;
    Ok(meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw())
}

/// Opens a file with the given options; if it is made, for this account alone.
pub fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

/// Writes a whole file for this account alone, in the place of one that is there.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    open_private(&mut options, path)?.write_all(bytes)
}

/// Takes a file as a lock for as long as the returned handle lives; `None` when another process holds it.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    let file = open_private(&mut options, path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Keeps `bytes` of disk behind `from` for a file without changing its length.
pub fn reserve(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::KEEP_SIZE, from, bytes)?)
}

/// Renames a file, in the place of one that is there.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)
}

/// The one spelling of a path that is there: absolute, links followed.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Where the agent keeps its data unless told otherwise.
pub fn default_data_dir() -> PathBuf {
    "/var/lib/prow".into()
}

/// Removes a folder with all in it; links are removed, never followed. Nothing there is fine. Folders that may not be written are
/// made writable first.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            std::fs::remove_dir_all(path)
        }
        other => other,
    }
}

fn open_up(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
        for entry in path.read_dir()? {
            open_up(&entry?.path())?;
        }
    }
    Ok(())
}
