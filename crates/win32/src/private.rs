//! Files and folders of our own account, the system and the administrators alone.
//!
//! Files need no list of their own: what is made in a private folder inherits its list.

use crate::{
    Error, Result,
    folder::Folder,
    patience::patiently,
    security::{Descriptor, is_narrow, is_trusted_owner},
};
use std::{
    fs::{File, OpenOptions},
    io,
    os::windows::io::{AsHandle, AsRawHandle},
    path::Path,
};
use windows_sys::Win32::{
    Foundation::ERROR_ALREADY_EXISTS,
    Storage::FileSystem::{FILE_ALLOCATION_INFO, FileAllocationInfo, SetFileInformationByHandle},
};

/// Makes a private folder and its parents; narrows one that is there and whose owner is to be trusted.
pub fn create_folder(path: &Path) -> io::Result<()> {
    let private = Descriptor::private_folder()?;
    if make(path, &private)? {
        return Ok(());
    }
    let folder = Folder::open_to_stamp(path)?;
    if is_trusted_owner(&folder)? && !is_narrow(&folder)? {
        private.stamp(&folder)?;
    }
    Ok(())
}

/// Makes a folder that others may enter and list, but whose content is private; one that is there is left as it is.
pub fn create_open_folder(path: &Path) -> io::Result<()> {
    make(path, &Descriptor::open_folder()?).map(|_| ())
}

/// Makes a folder; parents that are missing are private. Tells whether it was made.
fn make(path: &Path, descriptor: &Descriptor) -> io::Result<bool> {
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty() && !p.exists()) {
        make(parent, &Descriptor::private_folder()?)?;
    }
    match Folder::create(path, descriptor) {
        Ok(()) => Ok(true),
        Err(error) if error.code == ERROR_ALREADY_EXISTS => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a path is a folder, no link, whose owner is to be trusted.
pub fn is_ours(path: &Path) -> io::Result<bool> {
    use windows_sys::Win32::Foundation::{ERROR_DIRECTORY, ERROR_STOPPED_ON_SYMLINK};
    match Folder::open(path) {
        Ok(folder) => Ok(is_trusted_owner(&folder)?),
        Err(error) if matches!(error.code, ERROR_STOPPED_ON_SYMLINK | ERROR_DIRECTORY) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a file in a private folder.
pub fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    patiently("opening", path, || options.open(path))
}

/// Renames a file, in the place of one that is there.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    patiently("renaming to", to, || std::fs::rename(from, to))
}

/// Keeps disk for a file up to `size` bytes, without changing its length; it lasts until the file is closed.
pub fn reserve(file: &File, size: u64) -> Result<()> {
    let io = |e: io::Error| {
        Error::of(
            "GetFileSizeEx",
            e.raw_os_error().unwrap_or_default().cast_unsigned(),
        )
    };
    let size = size.max(file.metadata().map_err(io)?.len()); // less than its length would cut it
    let info = FILE_ALLOCATION_INFO {
        AllocationSize: i64::try_from(size).unwrap_or(i64::MAX),
    };
    let len = u32::try_from(size_of_val(&info)).unwrap_or_default();
    // SAFETY: the handle is open, `len` is the size of `info`.
    let set = unsafe {
        SetFileInformationByHandle(
            file.as_handle().as_raw_handle(),
            FileAllocationInfo,
            (&raw const info).cast(),
            len,
        )
    };
    match set {
        0 => Err(Error::last("SetFileInformationByHandle")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::windows::fs::OpenOptionsExt;

    #[test]
    fn a_private_folder_is_made_with_its_parents_and_taken_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a").join("b");
        create_folder(&path).unwrap();
        create_folder(&path).unwrap();
        assert!(is_ours(&path).unwrap());
        std::fs::write(root.path().join("file"), "").unwrap();
        assert!(!is_ours(&root.path().join("file")).unwrap());
        assert!(create_folder(&root.path().join("file")).is_err());
        assert!(is_ours(&root.path().join("none")).is_err());
    }

    /// AL-02.
    #[test]
    fn a_scanner_that_holds_a_file_only_delays_us() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("new"), root.path().join("old"));
        std::fs::write(&from, "new").unwrap();
        std::fs::write(&to, "old").unwrap();
        let scanner = OpenOptions::new().read(true).share_mode(0).open(&to).unwrap();
        let (taken, wait) = std::sync::mpsc::channel();
        let renaming = std::thread::spawn(move || {
            taken.send(()).unwrap();
            rename(&from, &to).map(|()| to)
        });
        wait.recv().unwrap();
        drop(scanner);
        let to = renaming.join().unwrap().unwrap();
        assert_eq!(std::fs::read(to).unwrap(), b"new");
    }

    /// AL-02.
    #[test]
    fn one_that_never_lets_go_is_named() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("held");
        std::fs::write(&path, "").unwrap();
        let _scanner = OpenOptions::new().read(true).share_mode(0).open(&path).unwrap();
        let error = open(OpenOptions::new().write(true), &path)
            .unwrap_err()
            .to_string();
        assert!(error.contains("opening") && error.contains("held"), "{error}");
    }

    #[test]
    fn room_is_kept_without_a_change_of_length() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal");
        std::fs::write(&path, "12345").unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let _ = reserve(&file, 2); // not every file system can; none may cut the file
        let _ = reserve(&file, 1 << 20);
        assert_eq!(file.metadata().unwrap().len(), 5);
    }
}
