//! Files put into the workspace, which steps write too: no link planted there leads our hand outside.

use rustix::{
    fs::{AtFlags, Mode, OFlags, fchmod, mkdirat, open, openat, unlinkat},
    io::Errno,
};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Component, Path},
};

/// A written file, by its open folder: removing it works whatever became of the path.
pub struct Written {
    folder: OwnedFd,
    name: OsString,
}

impl Written {
    /// Removes the file; one that is gone is fine.
    pub fn remove(self) -> io::Result<()> {
        match unlinkat(&self.folder, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

/// Writes `root/path` readable by this account alone, in the place of what is there. Folders on the way are made; a link among them,
/// or a path that leaves `root`, is an error.
pub fn write_beneath(root: &Path, path: &Path, bytes: &[u8]) -> io::Result<Written> {
    let folder_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
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
    let mut folder = open(root, folder_flags, Mode::empty())?;
    for part in &parts {
        match mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        folder = openat(&folder, part, folder_flags, Mode::empty()).map_err(|e| match e {
            Errno::NOTDIR | Errno::LOOP => io::Error::new(
                io::ErrorKind::NotADirectory,
                format!("{} is a link or no folder", part.display()),
            ),
            e => e.into(),
        })?;
    }
    match unlinkat(&folder, &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(e) => return Err(e.into()),
    }
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&folder, &name, new, Mode::from_raw_mode(0o600))?;
    fchmod(&file, Mode::from_raw_mode(0o600))?;
    File::from(file).write_all(bytes)?;
    Ok(Written { folder, name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_planted_link_does_not_lead_outside() {
        let folder = tempfile::tempdir().unwrap();
        let (root, precious) = (folder.path().join("w"), folder.path().join("precious"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&precious).unwrap();
        symlink(&precious, root.join("tls")).unwrap();
        assert!(write_beneath(&root, Path::new("tls/key"), b"x").is_err());
        assert!(write_beneath(&root, Path::new("../precious/key"), b"x").is_err());
        assert!(write_beneath(&root, Path::new("/etc/x"), b"x").is_err());

        std::fs::write(precious.join("file"), "whole").unwrap();
        symlink(precious.join("file"), root.join("key")).unwrap();
        write_beneath(&root, Path::new("key"), b"new").unwrap();
        assert_eq!(std::fs::read(precious.join("file")).unwrap(), b"whole");
        assert_eq!(std::fs::read(root.join("key")).unwrap(), b"new");
        assert_eq!(precious.read_dir().unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_private_and_goes_even_when_its_folder_moved() {
        let folder = tempfile::tempdir().unwrap();
        let written = write_beneath(folder.path(), Path::new("a/b/key"), b"x").unwrap();
        let path = folder.path().join("a/b/key");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::rename(folder.path().join("a"), folder.path().join("moved")).unwrap();
        written.remove().unwrap();
        assert!(!folder.path().join("moved/b/key").exists());
    }
}
