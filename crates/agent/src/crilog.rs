//! The log of a step: CRI lines, `<RFC3339Nano> stdout|stderr F|P <bytes>\n`, payload raw (Kubernetes' CRI logging format).
//!
//! - A line over 16 KiB is written in pieces marked `P`, the last one `F`. [`Log::flush`] writes an unfinished line as a `P` piece, so
//!   a prompt is seen before its line ends.
//! - Beyond half the limit further lines go to two spill files in turn, so that at the end the tail can follow the head; what was cut
//!   between them is stated in a line of our own. The log itself only ever grows.
//! - When the disk is full the step goes on; what could not be written is counted, and stated as soon as there is room again.

mod spill;

use crate::platform;
use api::clock::Clock;
use spill::Spill;
use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::Path,
    sync::Arc,
};

/// Longest payload of one line.
pub const PIECE: usize = 16 << 10;
const LAST_LINES: usize = 10;
const LAST_LINE_BYTES: usize = 300;

/// Which of a step's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// An unfinished line.
#[derive(Default)]
struct Open {
    bytes: Vec<u8>,
    /// Whether a `P` piece of it was written, so that an `F` must follow.
    begun: bool,
}

/// The log of one step, over all its tries. What comes in must be masked.
pub struct Log {
    file: File,
    written: u64,
    head: u64,
    spill: Spill,
    open: [Open; 2],
    last: VecDeque<String>,
    lost: u64,
    clock: Arc<dyn Clock>,
}

impl Log {
    /// Opens or makes a log of at most about `limit` bytes.
    pub fn open(path: &Path, limit: u64, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let mut file = platform::open_private(&mut options, path)?;
        let written = file.seek(SeekFrom::End(0))?;
        Ok(Self {
            file,
            written,
            head: limit / 2,
            spill: Spill::new(path, limit / 4),
            open: Default::default(),
            last: VecDeque::new(),
            lost: 0,
            clock,
        })
    }

    /// Appends output of a stream.
    pub fn write(&mut self, stream: Stream, mut bytes: &[u8]) {
        let mut lines = Vec::with_capacity(bytes.len() + 64);
        let head = self.line_head(stream);
        let mut open = std::mem::take(&mut self.open[stream as usize]);
        while !bytes.is_empty() {
            let end = bytes.iter().position(|b| *b == b'\n');
            let room = PIECE - open.bytes.len();
            match end.filter(|end| *end <= room) {
                Some(end) => {
                    open.bytes.extend_from_slice(&bytes[..end]);
                    bytes = &bytes[end + 1..];
                    self.remember(&open.bytes);
                    piece(&mut lines, &head, "F", &open.bytes);
                    open = Open::default();
                }
                None => {
                    let taken = room.min(bytes.len());
                    open.bytes.extend_from_slice(&bytes[..taken]);
                    bytes = &bytes[taken..];
                    if open.bytes.len() == PIECE && !bytes.is_empty() {
                        piece(&mut lines, &head, "P", &open.bytes);
                        open.bytes.clear();
                        open.begun = true;
                    }
                }
            }
        }
        self.open[stream as usize] = open;
        self.append(&lines);
    }

    /// Whether there is an unfinished line that nobody has seen yet.
    pub fn has_unseen(&self) -> bool {
        self.open.iter().any(|o| !o.bytes.is_empty())
    }

    /// Shows unfinished lines.
    pub fn flush(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let head = self.line_head(stream);
            let open = &mut self.open[stream as usize];
            if !open.bytes.is_empty() {
                let mut lines = Vec::new();
                piece(&mut lines, &head, "P", &open.bytes);
                open.bytes.clear();
                open.begun = true;
                self.append(&lines);
            }
        }
    }

    /// Ends unfinished lines: the process they came from is gone.
    pub fn end_lines(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let head = self.line_head(stream);
            let open = std::mem::take(&mut self.open[stream as usize]);
            if open.begun || !open.bytes.is_empty() {
                let mut lines = Vec::new();
                self.remember(&open.bytes);
                piece(&mut lines, &head, "F", &open.bytes);
                self.append(&lines);
            }
        }
    }

    /// A line of our own, on stderr, marked as such.
    pub fn note(&mut self, text: &str) {
        self.end_lines();
        let mut lines = Vec::new();
        let text = format!("prow: {}", text.replace('\n', " "));
        piece(&mut lines, &self.line_head(Stream::Stderr), "F", text.as_bytes());
        self.append(&lines);
    }

    /// Ends the log: its tail follows its head. Returns its size in bytes.
    pub fn finish(&mut self) -> u64 {
        self.end_lines();
        let spill = std::mem::take(&mut self.spill);
        if spill.cut() > 0 {
            let text = format!(
                "prow: {} bytes were cut here: the log of a step is limited",
                spill.cut()
            );
            let mut lines = Vec::new();
            piece(&mut lines, &self.line_head(Stream::Stderr), "F", text.as_bytes());
            self.put(&lines);
        }
        if let Err(error) = spill.take(|lines| self.put(lines)) {
            self.put_lost(0, &error);
        }
        self.written
    }

    /// The last lines of the step's own output, for people.
    pub fn last_lines(&self) -> impl Iterator<Item = &str> {
        self.last.iter().map(String::as_str)
    }

    /// Forgets the last lines: another try begins.
    pub fn forget_lines(&mut self) {
        self.last.clear();
    }

    fn line_head(&self, stream: Stream) -> String {
        let now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%9fZ");
        format!("{now} {} ", stream.name())
    }

    fn remember(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        let shown = &line[..line.len().min(LAST_LINE_BYTES)];
        let plain = String::from_utf8_lossy(shown);
        self.last
            .push_back(plain.chars().filter(|c| !c.is_control() || *c == '\t').collect());
    }

    fn append(&mut self, lines: &[u8]) {
        if self.spill.is_used() || self.written + lines.len() as u64 > self.head {
            for line in lines.split_inclusive(|b| *b == b'\n') {
                if !self.spill.is_used() && self.written + line.len() as u64 <= self.head {
                    self.put(line);
                } else if let Err(error) = self.spill.append(line) {
                    self.put_lost(line.len() as u64, &error);
                }
            }
        } else {
            self.put(lines);
        }
    }

    /// Writes to the log itself: all of it or nothing.
    fn put(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        let mut stated = Vec::new();
        if self.lost > 0 {
            let text = format!(
                "prow: {} bytes of the log were lost: the disk was full",
                self.lost
            );
            piece(&mut stated, &self.line_head(Stream::Stderr), "F", text.as_bytes());
        }
        stated.extend_from_slice(lines);
        match self.file.write_all(&stated) {
            Ok(()) => {
                self.written += stated.len() as u64;
                self.lost = 0;
            }
            Err(error) => {
                let _ = self.file.set_len(self.written); // shrinking needs no room
                let _ = self.file.seek(SeekFrom::Start(self.written));
                self.put_lost(lines.len() as u64, &error);
            }
        }
    }

    fn put_lost(&mut self, bytes: u64, error: &io::Error) {
        if self.lost == 0 {
            tracing::error!(%error, "the log of a step cannot be written");
        }
        self.lost += bytes;
    }
}

fn piece(out: &mut Vec<u8>, head: &str, tag: &str, payload: &[u8]) {
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(tag.as_bytes());
    out.push(b' ');
    out.extend_from_slice(payload);
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
