//! Append-only journals: one record a line, each with its length and CRC, so that a torn tail is known and cut.
//!
//! A line is `<length, 8 hex> <CRC-32, 8 hex> <JSON>\n`; length and CRC are those of the JSON's bytes. The JSON carries the format's
//! version `v`, the time `at` and the record. Two files a task, each with one writer: `agent.jsonl` ([`AgentRecord`]) and `run.jsonl`
//! ([`RunRecord`]). A reader may follow a file while its writer appends ([`Tail`]).

mod records;

pub use records::{AgentRecord, List, Restart, RunRecord, StepResult, VERSION};

use crate::platform;
use api::clock::Clock;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    marker::PhantomData,
    path::{Path, PathBuf},
    sync::Arc,
};

const HEAD: usize = 18; // two numbers of 8 digits, a space after each

/// Why a journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused; a retry may help (disk full).
    #[error("{path}: {source}")]
    Io {
        /// The journal.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A broken line with good ones after it: not a torn tail but damage. A retry does not help.
    #[error("{path} is damaged at byte {offset}; good records follow, so this is not an interrupted write")]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Where the broken line begins.
        offset: u64,
    },
    /// A record this version cannot read. A retry does not help, a newer program may.
    #[error("{path}, byte {offset}: {source}")]
    Unreadable {
        /// The journal.
        path: PathBuf,
        /// Where the line begins.
        offset: u64,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// A record with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry<R> {
    /// Version of the format.
    pub v: u32,
    /// When it was written, by the host's clock.
    pub at: MicroTime,
    /// What happened.
    #[serde(flatten)]
    pub record: R,
}

/// The one writer of a journal.
pub struct Writer<R> {
    file: File,
    path: PathBuf,
    len: u64,
    clock: Arc<dyn Clock>,
    records: PhantomData<fn(R)>,
}

impl<R: Serialize + DeserializeOwned> Writer<R> {
    /// Opens or makes a journal, cuts a torn tail, and returns what it holds.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<(Self, Vec<Entry<R>>), Error> {
        let fail = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let mut file = platform::open_private(&mut options, path).map_err(fail)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        let (entries, good) = parse(path, &bytes, 0)?;
        if good < bytes.len() {
            if let Some(offset) = good_line_after(&bytes, good) {
                tracing::error!(path = %path.display(), offset, "journal damaged");
                return Err(Error::Damaged {
                    path: path.to_owned(),
                    offset: good as u64,
                });
            }
            file.set_len(good as u64).map_err(fail)?;
        }
        file.seek(SeekFrom::Start(good as u64)).map_err(fail)?;
        let writer = Self {
            file,
            path: path.to_owned(),
            len: good as u64,
            clock,
            records: PhantomData,
        };
        Ok((writer, entries))
    }

    /// Keeps `bytes` of disk for this journal, so that it can still be written when the disk is full. Not every file system can.
    pub fn reserve(&self, bytes: u64) {
        if let Err(error) = platform::reserve(&self.file, self.len, bytes) {
            tracing::debug!(path = %self.path.display(), %error, "no room reserved");
        }
    }

    /// Appends a record. What a failed write left behind is cut off again: a record is there whole or not at all.
    pub fn append(&mut self, record: &R) -> Result<(), Error>
    where
        R: Clone,
    {
        let entry = Entry {
            v: VERSION,
            at: MicroTime(self.clock.now()),
            record: record.clone(),
        };
        let line = line(&entry).map_err(|source| self.fail(source.into()))?;
        match self.file.write_all(&line) {
            Ok(()) => {
                self.len += line.len() as u64;
                Ok(())
            }
            Err(source) => {
                let _ = self.file.set_len(self.len); // shrinking needs no room; should it fail, the tail is torn and cut on open
                let _ = self.file.seek(SeekFrom::Start(self.len));
                Err(self.fail(source))
            }
        }
    }

    /// Forces everything to the disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(|source| self.fail(source))
    }

    /// Gives back reserved room that was not needed.
    pub fn release(&self) {
        let _ = self.file.set_len(self.len); // best effort: the room goes with the folder at the latest
    }

    fn fail(&self, source: io::Error) -> Error {
        Error::Io {
            path: self.path.clone(),
            source,
        }
    }
}

/// Everything a journal holds, without its torn tail; empty where there is no file.
pub fn read<R: DeserializeOwned>(path: &Path) -> Result<Vec<Entry<R>>, Error> {
    Tail::new(path).read()
}

/// Follows a journal while it is written.
pub struct Tail<R> {
    path: PathBuf,
    offset: u64,
    records: PhantomData<fn() -> R>,
}

impl<R: DeserializeOwned> Tail<R> {
    /// Follows from the beginning.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            offset: 0,
            records: PhantomData,
        }
    }

    /// What came since the last call; a line not yet whole is left for the next. None where there is no file yet.
    pub fn read(&mut self) -> Result<Vec<Entry<R>>, Error> {
        let fail = |source| Error::Io {
            path: self.path.clone(),
            source,
        };
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(fail(e)),
        };
        file.seek(SeekFrom::Start(self.offset)).map_err(fail)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(fail)?;
        let (entries, good) = parse(&self.path, &bytes, self.offset)?;
        self.offset += good as u64;
        Ok(entries)
    }
}

fn line<R: Serialize>(entry: &Entry<R>) -> Result<Vec<u8>, serde_json::Error> {
    let json = serde_json::to_vec(entry)?;
    let mut line = format!("{:08x} {:08x} ", json.len(), crc32fast::hash(&json)).into_bytes();
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

/// The whole records at the front of `bytes`, and how many bytes they take.
fn parse<R: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    start: u64,
) -> Result<(Vec<Entry<R>>, usize), Error> {
    let mut entries = Vec::new();
    let mut at = 0;
    while let Some(json) = whole(&bytes[at..]) {
        let entry = serde_json::from_slice(json).map_err(|source| Error::Unreadable {
            path: path.to_owned(),
            offset: start + at as u64,
            source,
        })?;
        entries.push(entry);
        at += HEAD + json.len() + 1;
    }
    Ok((entries, at))
}

/// The JSON of the line at the front of `bytes`, if that line is whole.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let number = |range| u32::from_str_radix(std::str::from_utf8(bytes.get(range)?).ok()?, 16).ok();
    let (len, crc) = (number(0..8)? as usize, number(9..17)?);
    let json = bytes.get(HEAD..HEAD.checked_add(len)?)?;
    (bytes.get(HEAD + len) == Some(&b'\n') && crc32fast::hash(json) == crc).then_some(json)
}

fn good_line_after(bytes: &[u8], from: usize) -> Option<usize> {
    let starts = bytes[from..].iter().enumerate().filter(|(_, b)| **b == b'\n');
    starts
        .map(|(i, _)| from + i + 1)
        .find(|at| whole(&bytes[*at..]).is_some())
}

#[cfg(test)]
mod tests;
