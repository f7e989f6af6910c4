//! `prow-agent diagnose`: a zip for whoever is to find out what is wrong.

use agent::service::diagnose::{self, Part};
use anyhow::{Context, Result};
use api::clock::{Clock, SystemClock};
use clap::Args;
use std::{
    fs::File,
    io::{Seek, Write},
    path::{Path, PathBuf},
    sync::Arc,
};
use zip::{ZipWriter, write::SimpleFileOptions};

/// Flags of `diagnose`.
#[derive(Args)]
pub struct Diagnose {
    /// The agent's data folder
    #[arg(long, env = "PROW_AGENT_DATA_DIR", default_value_os_t = agent::platform::default_data_dir())]
    data_dir: PathBuf,
    /// The server to ask, https://HOST:PORT; the one of agent.yaml if left out
    #[arg(long, env = "PROW_SERVER")]
    server: Option<String>,
    /// The file to write; prow-agent-TIME.zip in the current folder if left out
    #[arg(long, short)]
    output: Option<PathBuf>,
}

impl Diagnose {
    /// Writes it and says where and what is in it.
    pub fn run(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start")?;
        let gathered = diagnose::gather(&self.data_dir, self.server.as_deref(), Arc::new(SystemClock));
        let parts = runtime.block_on(gathered)?;
        let path = self.output.unwrap_or_else(|| {
            let now = SystemClock.now().strftime("%Y%m%d-%H%M%S");
            format!("prow-agent-{now}.zip").into()
        });
        write(&path, &parts).with_context(|| format!("{} cannot be written", path.display()))?;
        println!("{}", path.display());
        eprintln!(
            "versions, settings, journals, recent log, what the server says of the node; no keys, no manifests, no output of steps. \
             Look through it before you pass it on."
        );
        Ok(())
    }
}

fn write(path: &Path, parts: &[Part]) -> Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true); // what is there is not written over
    let file = agent::platform::open_private(&mut options, path)?;
    archive(file, parts)?.sync_all()?;
    Ok(())
}

fn archive<W: Write + Seek>(to: W, parts: &[Part]) -> Result<W> {
    let mut archive = ZipWriter::new(to);
    for part in parts {
        archive.start_file(&part.name, SimpleFileOptions::default())?;
        archive.write_all(&part.bytes)?;
    }
    Ok(archive.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read};

    #[test]
    fn what_is_put_in_comes_out() {
        let part = |name: &str, text: &str| Part {
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
        };
        let long = "x".repeat(100_000);
        let parts = [part("a.txt", "grün"), part("tasks/1/b", ""), part("c", &long)];
        let bytes = archive(Cursor::new(Vec::new()), &parts).unwrap().into_inner();
        assert!(bytes.len() < 5_000, "it is compressed");
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        for part in &parts {
            let mut back = Vec::new();
            archive
                .by_name(&part.name)
                .unwrap()
                .read_to_end(&mut back)
                .unwrap();
            assert_eq!(back, part.bytes);
        }
        assert_eq!(archive.len(), 3);
    }
}
