//! Disks.

use crate::{Error, Result, wide::wide};
use std::{
    ffi::OsString,
    path::{Component, Path, Prefix},
    ptr,
};
use windows_sys::Win32::Storage::FileSystem::{GetDiskFreeSpaceExW, GetDriveTypeW};

/// Size of the volume a folder is on, and what is free of it for this account, in bytes.
pub fn space(folder: &Path) -> Result<(u64, u64)> {
    let mut path = folder.as_os_str().to_owned();
    path.push(r"\"); // asked for a share
    let path = wide(path);
    let (mut free, mut size) = (0, 0);
    // SAFETY: the path ends with a zero; `free` and `size` take the results.
    match unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &mut free, &mut size, ptr::null_mut()) } {
        0 => Err(Error::last("GetDiskFreeSpaceExW")),
        _ => Ok((size, free)),
    }
}

/// Whether an absolute path leads over the network: a share, or a drive that stands for one.
pub fn is_network(path: &Path) -> bool {
    const DRIVE_REMOTE: u32 = 4;
    let Some(Component::Prefix(prefix)) = path.components().next() else {
        return false;
    };
    match prefix.kind() {
        Prefix::UNC(..) | Prefix::VerbatimUNC(..) => true,
        Prefix::Disk(letter) | Prefix::VerbatimDisk(letter) => {
            let root = wide(OsString::from(format!(r"{}:\", char::from(letter))));
            // SAFETY: the path ends with a zero.
            unsafe { GetDriveTypeW(root.as_ptr()) == DRIVE_REMOTE }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_larger_than_what_is_free_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let (size, free) = space(folder.path()).unwrap();
        assert!(size > 0 && free <= size);
        assert!(space(&folder.path().join("none")).is_err());
    }

    /// AP-08, the part that decides.
    #[test]
    fn shares_are_told_from_disks() {
        assert!(is_network(Path::new(r"\\files\share\job")));
        assert!(is_network(Path::new(r"\\?\UNC\files\share\job")));
        assert!(!is_network(Path::new(r"C:\job")));
        assert!(!is_network(Path::new(r"\\?\C:\job")));
        assert!(!is_network(Path::new(r"job")));
    }
}
