//! Files and folders that only their owner may read.

use anyhow::{Context, Result};
use std::{fs, io::Write, path::Path};

/// Makes a folder, if it is missing, that only its owner may enter.
pub fn folder(path: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(path)
        .with_context(|| format!("the folder {} cannot be made", path.display()))
}

/// Writes a file that only its owner may read; readers see the old or the new one, never a part.
pub fn file(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    let write = || {
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(true).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}
