//! Where the programs under test are.

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

/// `prow` or `prow-agent`: in `$PROW_BIN`, else beside the folder of the running test.
pub fn program(name: &str) -> Result<PathBuf> {
    let folder = match std::env::var_os("PROW_BIN") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let test = std::env::current_exe().context("the test's own path is not known")?;
            // target/<profile>/deps/<test>, or target/<profile>/<bench>
            let folder = test.parent().context("the test has no folder")?;
            let deps = folder.ends_with("deps");
            (if deps { folder.parent() } else { Some(folder) })
                .context("the test has no folder")?
                .to_owned()
        }
    };
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    ensure!(
        path.exists(),
        "{} is missing: build it first with `cargo build -p {name}`",
        path.display()
    );
    Ok(path)
}
