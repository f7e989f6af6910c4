//! Paths: longer than 260 characters for our own calls, short again for everybody else.

use std::{
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf, Prefix},
};

/// The path in the form that knows no limit of 260 characters (`\\?\`), for our own calls only: few programs can live with it.
pub fn long(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut parts = path.components();
    let Some(Component::Prefix(prefix)) = parts.next() else {
        return Ok(path);
    };
    let rest = parts.as_path();
    Ok(match prefix.kind() {
        Prefix::Disk(_) => {
            let mut long = OsString::from(r"\\?\");
            long.push(path);
            long.into()
        }
        Prefix::UNC(server, share) => {
            let mut long = OsString::from(r"\\?\UNC\");
            long.push(server);
            long.push(r"\");
            long.push(share);
            long.push(rest);
            long.into()
        }
        _ => path,
    })
}

/// The path without a `\\?\` in front, where it can go without: programs are given such.
pub fn plain(path: &Path) -> PathBuf {
    let mut parts = path.components();
    let Some(Component::Prefix(prefix)) = parts.next() else {
        return path.to_owned();
    };
    let rest = parts.as_path();
    match prefix.kind() {
        Prefix::VerbatimDisk(letter) => {
            let mut plain = OsString::from(format!("{}:", char::from(letter)));
            plain.push(rest);
            plain.into()
        }
        Prefix::VerbatimUNC(server, share) => {
            let mut plain = OsString::from(r"\\");
            plain.push(server);
            plain.push(r"\");
            plain.push(share);
            plain.push(rest);
            plain.into()
        }
        _ => path.to_owned(),
    }
}

/// The one spelling of a path that is there: absolute, links followed, names as they are written on the disk, no `\\?\`.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map(|path| plain(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_plain_are_the_two_spellings_of_one_path() {
        for (short, verbatim) in [
            (r"C:\a\b", r"\\?\C:\a\b"),
            (r"C:\", r"\\?\C:\"),
            (r"\\files\share\job", r"\\?\UNC\files\share\job"),
        ] {
            assert_eq!(long(Path::new(short)).unwrap(), Path::new(verbatim));
            assert_eq!(plain(Path::new(verbatim)), Path::new(short));
            assert_eq!(plain(Path::new(short)), Path::new(short));
        }
        assert_eq!(
            long(Path::new(r"C:\a\.\b\..\c")).unwrap(),
            Path::new(r"\\?\C:\a\c")
        );
    }

    #[test]
    fn the_canonical_path_is_one_that_programs_understand() {
        let folder = tempfile::tempdir().unwrap();
        let path = canonical(folder.path()).unwrap();
        assert!(path.is_absolute() && path.is_dir());
        assert!(
            !path.as_os_str().to_string_lossy().starts_with(r"\\?\"),
            "{}",
            path.display()
        );
    }
}
