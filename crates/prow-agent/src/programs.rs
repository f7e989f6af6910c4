//! Where installed programs lie: versions side by side, and the copies that runners are started from.
//!
//! ```text
//! <root>/                             C:\Program Files\Prow · /opt/prow
//!   <version>/prow-agent              what the service runs; never changed once it is there
//!   runner/<version>/prow-agent       what runners run, for as long as one lives
//! ```
//!
//! A runner may outlive the version that started it, and a running program can neither be replaced nor removed on Windows: an installer
//! that owned it would ask for a restart of the host. So the agent makes the copies itself and removes them itself.

use anyhow::Context;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// Name of the program's file.
pub const PROGRAM: &str = if cfg!(windows) {
    "prow-agent.exe"
} else {
    "prow-agent"
};
const RUNNER: &str = "runner";

/// The folder of all versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs(PathBuf);

impl Programs {
    /// In a folder, which need not exist.
    pub fn in_folder(root: PathBuf) -> Self {
        Self(root)
    }

    /// Those that a version in `<root>/<version>/` belongs to.
    pub fn of(program: &Path) -> anyhow::Result<Self> {
        let root = program.parent().and_then(Path::parent);
        let root =
            root.with_context(|| format!("{} is not in a folder of its version", program.display()))?;
        Ok(Self(root.to_owned()))
    }

    /// Adds a version; the path of its program. Another build of the same version gets a folder of its own.
    pub fn add(&self, program: &Path, version: &str) -> anyhow::Result<PathBuf> {
        let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let plain = self.0.join(version).join(PROGRAM);
        let there = match std::fs::read(&plain) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => plain,
            Ok(old) if old == bytes => plain,
            _ => {
                let hash: String = Sha256::digest(&bytes)[..4]
                    .iter()
                    .map(|b| format!("{b:02x}"))
                    .collect();
                self.0.join(format!("{version}-{hash}")).join(PROGRAM)
            }
        };
        place(&bytes, &there)?;
        Ok(there)
    }

    /// The copy of an installed program that runners are started from; made if it is not there.
    pub fn runner(&self, program: &Path) -> anyhow::Result<PathBuf> {
        let version = program.parent().and_then(Path::file_name);
        let version = version.with_context(|| format!("{} is in no folder", program.display()))?;
        let copy = self.0.join(RUNNER).join(version).join(PROGRAM);
        let bytes = std::fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        place(&bytes, &copy)?;
        Ok(copy)
    }

    /// Removes the copies for runners that nobody runs, but those in `used`. One that cannot be removed stays for the next time.
    pub fn clean(&self, used: &[PathBuf]) -> Vec<PathBuf> {
        let copies = folders(&self.0.join(RUNNER));
        copies
            .into_iter()
            .filter(|folder| !in_use(folder, used) && remove(folder).is_ok())
            .collect()
    }

    /// Removes everything but what is in `used` or still runs; what had to stay.
    pub fn remove(&self, used: &[PathBuf]) -> Vec<PathBuf> {
        let all = folders(&self.0.join(RUNNER)).into_iter().chain(folders(&self.0));
        let stay =
            |folder: &PathBuf| !folder.ends_with(RUNNER) && (in_use(folder, used) || remove(folder).is_err());
        let left: Vec<_> = all.filter(stay).collect();
        if left.is_empty() {
            for folder in [self.0.join(RUNNER), self.0.clone()] {
                let _ = std::fs::remove_dir(folder); // something of somebody else's may be in it
            }
        }
        left
    }
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

fn in_use(folder: &Path, used: &[PathBuf]) -> bool {
    used.iter().any(|program| program.parent() == Some(folder))
}

/// Removes a version: the program first, which fails while it runs, and only then its folder.
fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(PROGRAM)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    std::fs::remove_dir(folder)
}

/// Puts a program where it belongs, whole or not at all. One that is there already is left alone: it may be running.
fn place(bytes: &[u8], program: &Path) -> anyhow::Result<()> {
    if std::fs::read(program).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let put = || {
        std::fs::create_dir_all(program.parent().unwrap_or(program))?;
        let part = program.with_extension("part");
        std::fs::write(&part, bytes)?;
        executable(&part)?;
        File::options().write(true).open(&part)?.sync_all()?;
        std::fs::rename(&part, program)
    };
    put().with_context(|| format!("cannot write {}", program.display()))
}

#[cfg(unix)]
fn executable(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
}

#[cfg(windows)]
fn executable(_file: &Path) -> io::Result<()> {
    Ok(()) // its name says it
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("built");
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn versions_lie_side_by_side_and_none_is_ever_changed() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::in_folder(folder.path().join("Prow"));
        let one = programs.add(&built(folder.path(), "one"), "1.0.0").unwrap();
        assert_eq!(programs.add(&built(folder.path(), "one"), "1.0.0").unwrap(), one);
        let two = programs.add(&built(folder.path(), "two"), "2.0.0").unwrap();
        let other = programs
            .add(&built(folder.path(), "another build"), "1.0.0")
            .unwrap();
        assert_eq!(
            other,
            programs
                .add(&built(folder.path(), "another build"), "1.0.0")
                .unwrap()
        );
        assert_eq!(std::fs::read_to_string(&one).unwrap(), "one");
        assert_eq!(std::fs::read_to_string(&two).unwrap(), "two");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "another build");
        assert_eq!(Programs::of(&other).unwrap(), programs);
    }

    #[test]
    fn copies_for_runners_go_when_no_runner_uses_them() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::in_folder(folder.path().join("Prow"));
        let versions = ["1", "2", "3"].map(|v| programs.add(&built(folder.path(), v), v).unwrap());
        let copies = versions.clone().map(|program| programs.runner(&program).unwrap());
        assert_eq!(programs.runner(&versions[0]).unwrap(), copies[0]);
        let gone = programs.clean(&[copies[1].clone(), copies[2].clone()]);
        assert_eq!(gone, [copies[0].parent().unwrap()]);
        assert!(!copies[0].exists() && copies[1].exists() && versions[0].exists());
        let left = programs.remove(&[copies[1].clone()]);
        assert_eq!(left, [copies[1].parent().unwrap()]);
        assert!(!versions[1].exists());
        assert!(programs.remove(&[]).is_empty() && !folder.path().join("Prow").exists());
    }
}
