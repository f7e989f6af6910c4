//! The static files by which shells run a step's script.
//!
//! Where the same file lies beside our program it is used from there: administrators can then allow it by its path, its hash or a
//! signature they put at its end. Else it is written into the step's folder.

use super::Host;
use crate::platform;
use std::path::{Path, PathBuf};

/// A static file.
pub(super) struct Wrapper {
    pub name: &'static str,
    pub text: &'static str,
}

impl Wrapper {
    /// Where it lies, which is in `folder` if not installed.
    pub fn place(&self, host: &Host<'_>, folder: &Path) -> Result<PathBuf, String> {
        let installed = host.installed.as_ref().map(|folder| folder.join(self.name));
        if let Some(path) = installed
            && std::fs::read(&path).is_ok_and(|found| found.starts_with(self.text.as_bytes()))
        {
            return Ok(path);
        }
        let path = folder.join(self.name);
        platform::write_private(&path, self.text.as_bytes())
            .map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codepage::Pages;

    const WRAPPER: Wrapper = Wrapper {
        name: "prow-x.ps1",
        text: "exit 0\n",
    };

    #[test]
    fn the_installed_file_is_used_if_it_is_ours() {
        let (installed, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let host = Host {
            windows: true,
            pages: Pages::default(),
            installed: Some(installed.path().to_owned()),
            find: &|name| Err(name.to_owned()),
        };
        let place = || WRAPPER.place(&host, folder.path()).unwrap();
        let (ours, theirs) = (
            folder.path().join(WRAPPER.name),
            installed.path().join(WRAPPER.name),
        );
        assert_eq!(place(), ours, "none is installed");
        assert_eq!(std::fs::read_to_string(&ours).unwrap(), WRAPPER.text);
        for (text, expected) in [
            ("exit 1\n", &ours),
            ("exit 0\n# SIG # Begin signature block\n", &theirs),
        ] {
            std::fs::write(&theirs, text).unwrap();
            assert_eq!(&place(), expected, "{text}");
        }
    }
}
