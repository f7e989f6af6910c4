//! Files put into the workspace, which steps write too: no link planted there leads our hand outside.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::{Component, Path},
};
use win32::{Folder, patiently, security::Descriptor};

/// A written file, by its open folder: removing it works whatever became of the path.
pub struct Written {
    folder: Folder,
    name: OsString,
}

impl Written {
    /// Removes the file; one that is gone is fine.
    pub fn remove(self) -> io::Result<()> {
        patiently("removing", Path::new(&self.name), || {
            Ok(self.folder.remove(&self.name)?)
        })
    }
}

/// Writes `root/path`, private, in the place of what is there. Folders on the way are made; a link among them, or a path that leaves
/// `root`, is an error.
pub fn write_beneath(root: &Path, path: &Path, bytes: &[u8]) -> io::Result<Written> {
    let mut parts = path
        .components()
        .filter(|c| *c != Component::CurDir)
        .map(|c| match c {
            Component::Normal(name) => Ok(name.to_owned()),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} leaves the workspace", path.display()),
            )),
        })
        .collect::<io::Result<Vec<_>>>()?;
    let name = parts.pop().ok_or(io::ErrorKind::InvalidInput)?;
    let mut folder = Folder::open(root)?;
    for part in &parts {
        folder = folder.folder_or_new(part).map_err(|error| {
            io::Error::new(
                io::ErrorKind::NotADirectory,
                format!("{} is a link or no folder: {error}", part.display()),
            )
        })?;
    }
    patiently("replacing", path, || Ok(folder.remove(&name)?))?;
    let mut file = folder.create_file(&name, &Descriptor::private()?)?;
    file.write_all(bytes)?;
    Ok(Written { folder, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_does_not_lead_outside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("w");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        for path in [
            r"..\key",
            "../key",
            r"C:\key",
            r"\key",
            r"a\..\..\key",
            r"file\key",
            "key:stream",
            r"a:b\key",
            "",
        ] {
            assert!(write_beneath(&root, Path::new(path), b"x").is_err(), "{path}");
        }
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_replaced_and_goes_even_when_its_folder_moved() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("a").join("b")).unwrap();
        std::fs::write(root.join(r"a\b\key"), "older and longer").unwrap();
        let written = write_beneath(root, Path::new("a/b/key"), b"x").unwrap();
        assert_eq!(std::fs::read(root.join(r"a\b\key")).unwrap(), b"x");
        written.remove().unwrap();
        assert!(!root.join(r"a\b\key").exists());

        if win32::system::is_wine() {
            eprintln!("not run: Wine keeps an open folder by the path it had");
            return;
        }
        let written = write_beneath(root, Path::new("c/key"), b"x").unwrap();
        std::fs::rename(root.join("c"), root.join("moved")).unwrap();
        written.remove().unwrap();
        assert!(!root.join(r"moved\key").exists());
    }
}
