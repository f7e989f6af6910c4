//! The tail of a log that is over its limit: two files beside it, filled in turn.

use crate::platform;
use std::{
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

const BATCH: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Spill {
    paths: [PathBuf; 2],
    /// Size at which the other file takes over.
    turn: u64,
    current: Option<File>,
    index: usize,
    sizes: [u64; 2],
    cut: u64,
}

impl Spill {
    pub(super) fn new(log: &Path, turn: u64) -> Self {
        Self {
            paths: ["tail-a", "tail-b"].map(|name| log.with_extension(name)),
            turn,
            ..Self::default()
        }
    }

    pub(super) fn is_used(&self) -> bool {
        self.current.is_some()
    }

    /// How many bytes are gone for good.
    pub(super) fn cut(&self) -> u64 {
        self.cut
    }

    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.current.is_none() {
            self.start(self.index)?;
        } else if self.sizes[self.index] >= self.turn {
            self.start(1 - self.index)?;
        }
        if let Some(file) = &mut self.current {
            file.write_all(line)?;
            self.sizes[self.index] += line.len() as u64;
        }
        Ok(())
    }

    fn start(&mut self, index: usize) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = platform::open_private(&mut options, &self.paths[index])?;
        self.cut += self.sizes[index];
        self.sizes[index] = 0;
        self.index = index;
        self.current = Some(file);
        Ok(())
    }

    /// Hands over the kept lines, older first, some at a time; the files go.
    pub(super) fn take(self, mut give: impl FnMut(&[u8])) -> io::Result<()> {
        if self.current.is_none() {
            return Ok(());
        }
        for index in [1 - self.index, self.index] {
            if self.sizes[index] == 0 {
                continue;
            }
            let mut file = BufReader::new(File::open(&self.paths[index])?);
            let mut lines = Vec::new();
            while file.read_until(b'\n', &mut lines)? > 0 {
                if lines.len() >= BATCH {
                    give(&lines);
                    lines.clear();
                }
            }
            give(&lines);
            std::fs::remove_file(&self.paths[index])?;
        }
        Ok(())
    }
}
