//! Files and folders of this account, the system and the administrators alone.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Once,
};
use win32::{Folder, Kind, patiently, private, privilege::Privilege};

pub use private::{create_folder as create_private_dir, create_open_folder as create_dir, is_ours, rename};
pub use win32::path::canonical;

/// Opens a file; if it is made, its folder says who may use it.
pub fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    private::open(options, path)
}

/// Writes a whole file in the place of one that is there; its folder says who may use it.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    open_private(&mut options, path)?.write_all(bytes)
}

/// Takes a file as a lock for as long as the returned handle lives; `None` when another process holds it.
pub fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = open_private(&mut options, path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Keeps `bytes` of disk behind `from` for a file without changing its length.
pub fn reserve(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    Ok(private::reserve(file, from + bytes)?)
}

/// A folder on the way down: open, so that what it is cannot change while it is emptied.
struct Level {
    folder: Folder,
    rest: Vec<(OsString, Kind)>,
}

impl Level {
    fn of(folder: Folder) -> win32::Result<Self> {
        let rest = folder.entries()?;
        Ok(Self { folder, rest })
    }
}

/// Steps may shut us out of a folder by its access list; whoever may restore backups can delete it all the same.
fn enter_anything() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for privilege in [Privilege::Backup, Privilege::Restore] {
            let _ = privilege.enable(); // an account without it has fewer rights, which show where they are missing
        }
    });
}

/// Removes a folder with all in it, however deep and whoever may use it; links are removed, never followed. Nothing there is fine.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    enter_anything();
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is no folder to remove", path.display()),
        ));
    };
    let above = match Folder::open(parent).map_err(io::Error::from) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(named("opening", parent, e)),
        Ok(folder) => folder,
    };
    let mut at = parent.to_owned();
    // an unknown kind is tried as a folder first
    let mut levels = vec![Level {
        folder: above,
        rest: vec![(name.to_owned(), Kind::Folder)],
    }];
    while let Some(level) = levels.last_mut() {
        let Some((name, kind)) = level.rest.pop() else {
            levels.pop(); // closes it
            if let (Some(above), Some(name)) = (levels.last(), at.file_name()) {
                remove_one(&above.folder, name, &at)?;
            }
            at.pop();
            continue;
        };
        let path = at.join(&name);
        match enter(&level.folder, &name, kind, &path)? {
            Some(below) => {
                levels.push(below);
                at = path;
            }
            None => remove_one(&level.folder, &name, &path)?,
        }
    }
    Ok(())
}

/// Opens a folder to be emptied; `None` for what can be removed as it is.
fn enter(folder: &Folder, name: &OsString, kind: Kind, path: &Path) -> io::Result<Option<Level>> {
    if kind != Kind::Folder {
        return Ok(None);
    }
    let below = patiently("opening", path, || Ok(folder.folder(name)?));
    match below {
        Ok(below) => Level::of(below)
            .map(Some)
            .map_err(|e| named("listing", path, e.into())),
        // a link, a file, gone: a swap since it was listed
        Err(_) => Ok(None),
    }
}

fn remove_one(folder: &Folder, name: &std::ffi::OsStr, path: &Path) -> io::Result<()> {
    patiently("removing", path, || Ok(folder.remove(name)?))
}

fn named(doing: &str, path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{doing} {}: {error}", path.display()))
}

/// Where the agent keeps its data unless told otherwise.
pub fn default_data_dir() -> PathBuf {
    let base = std::env::var_os("ProgramData").unwrap_or_else(|| r"C:\ProgramData".into());
    PathBuf::from(base).join("Prow")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::windows::fs::OpenOptionsExt;

    /// AP-04, the part without programs that have a long path.
    #[test]
    fn a_deep_tree_goes_whatever_is_in_it() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("w");
        let mut deep = top.clone();
        for n in 0..30 {
            deep.push(format!("{n:02}-{}", "n".repeat(17)));
        }
        std::fs::create_dir_all(&deep).unwrap();
        assert!(deep.as_os_str().len() > 600);
        let file = deep.join("read-only");
        std::fs::write(&file, "x").unwrap();
        let mut permissions = file.metadata().unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&file, permissions).unwrap();
        std::fs::write(top.join("name with spaces ü"), "").unwrap();
        remove_tree(&top).unwrap();
        assert!(!top.exists() && root.path().exists());
        remove_tree(&top).unwrap();
        remove_tree(&top.join("never").join("there")).unwrap();
    }

    #[test]
    fn a_tree_deeper_than_any_stack_goes() {
        let root = tempfile::tempdir().unwrap();
        let mut deep = root.path().join("w");
        for _ in 0..400 {
            deep.push("d");
        }
        std::fs::create_dir_all(&deep).unwrap();
        let top = root.path().join("w");
        let removing = std::thread::Builder::new()
            .stack_size(64 << 10)
            .spawn(move || remove_tree(&top));
        removing.unwrap().join().unwrap().unwrap();
        assert!(!root.path().join("w").exists());
    }

    /// AL-02.
    #[test]
    fn a_held_file_is_named_and_what_is_beside_the_tree_stays() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().join("w");
        std::fs::create_dir_all(top.join("a")).unwrap();
        std::fs::write(root.path().join("precious"), "").unwrap();
        let path = top.join("a").join("held.txt");
        std::fs::write(&path, "").unwrap();
        let held = OpenOptions::new().read(true).share_mode(0).open(&path).unwrap();
        let error = remove_tree(&top).unwrap_err().to_string();
        assert!(
            error.contains("removing") && error.contains(r"w\a\held.txt"),
            "{error}"
        );
        drop(held);
        remove_tree(&top).unwrap();
        assert!(root.path().join("precious").exists());
    }

    #[test]
    fn a_lock_is_held_once_and_ends_with_its_handle() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let held = lock(&path).unwrap().unwrap();
        assert!(lock(&path).unwrap().is_none());
        drop(held);
        assert!(lock(&path).unwrap().is_some());
    }

    #[test]
    fn a_file_is_written_over() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        write_private(&path, b"longer").unwrap();
        write_private(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
    }
}
