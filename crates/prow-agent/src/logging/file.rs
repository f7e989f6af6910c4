//! The agent's words in its data folder: `agent.log`, and before it `agent.log.1`; never more than both together.
//!
//! A Windows service has no stream that anybody reads, and `prow-agent diagnose` takes them from here everywhere.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

/// Beyond so many bytes a file is put aside and a new one begun.
const LIMIT: u64 = 4 << 20;

/// The file that is written to.
pub struct LogFile {
    path: PathBuf,
    limit: u64,
    open: Mutex<Option<(File, u64)>>,
}

impl LogFile {
    /// Goes on with the log of a data folder, which is there and private.
    pub fn open(data: &Path) -> io::Result<Self> {
        Self::with_limit(data, LIMIT)
    }

    fn with_limit(data: &Path, limit: u64) -> io::Result<Self> {
        let path = data.join("agent.log");
        let open = Mutex::new(Some(append(&path)?));
        Ok(Self { path, limit, open })
    }

    fn put_aside(&self, open: &mut Option<(File, u64)>) -> io::Result<()> {
        *open = None; // Windows renames no file that is open
        agent::platform::rename(&self.path, &self.path.with_extension("log.1"))?;
        *open = Some(append(&self.path)?);
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    let file = agent::platform::open_private(&mut options, path)?;
    let len = file.metadata()?.len();
    Ok((file, len))
}

/// Lines are written whole: the subscriber hands over one at a time.
impl Write for &LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.as_ref().is_some_and(|(_, len)| *len >= self.limit) {
            self.put_aside(&mut open)?;
        }
        let (file, len) = match &mut *open {
            Some(open) => open,
            None => open.insert(append(&self.path)?), // it could not be put aside: it grows on
        };
        file.write_all(line)?;
        *len += line.len() as u64;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_files_are_kept_and_neither_grows_far_over_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let log = LogFile::with_limit(folder.path(), 20).unwrap();
        for n in 0..9 {
            (&log).write_all(format!("line {n}...\n").as_bytes()).unwrap();
        }
        assert_eq!(text("agent.log"), "line 8...\n");
        assert_eq!(text("agent.log.1"), "line 6...\nline 7...\n");
        drop(log);
        let log = LogFile::with_limit(folder.path(), 20).unwrap();
        (&log).write_all(b"again\n").unwrap();
        assert_eq!(
            text("agent.log"),
            "line 8...\nagain\n",
            "an agent goes on with it"
        );
        assert_eq!(folder.path().read_dir().unwrap().count(), 2);
    }
}
