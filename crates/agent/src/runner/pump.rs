//! From a step's pipes to its log: mask, decode, cut into lines.
//!
//! A pipe may stay open after the step's process ended, held by something it left behind, so the end of a step does not wait for the
//! end of its pipes: it waits until they have been quiet for a moment, which also takes every byte a quick program wrote (IO-01).

use super::{clean::Cleaner, link::Link, outputs};
use crate::{
    codepage::Pages,
    crilog::{Log, Stream},
    mask::Patterns,
    platform::{Output, Started},
};
use api::step::OutputEncoding;
use std::{
    future::poll_fn,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::{mpsc, oneshot},
    time::Instant,
};

/// An unfinished line is shown after so long.
const SHOW: Duration = Duration::from_millis(100);
/// A pipe that was quiet for so long after the step's end is done, …
const QUIET: Duration = Duration::from_millis(200);
/// … and so is one that never is.
const LONGEST_DRAIN: Duration = Duration::from_secs(3);
const CHUNK: usize = 64 << 10;

/// The masks of a task: they grow while it runs and serve all its steps.
#[derive(Clone)]
pub(super) struct Masks {
    patterns: Arc<Mutex<Arc<Patterns>>>,
    pub pages: Pages,
}

impl Masks {
    /// No secrets yet, of a host with these code pages.
    pub fn new(pages: Pages) -> Self {
        Self {
            patterns: Arc::new(Mutex::new(Arc::new(Patterns::new(pages)))),
            pages,
        }
    }

    pub fn now(&self) -> Arc<Patterns> {
        self.patterns
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub fn add<'a>(&self, secrets: impl IntoIterator<Item = &'a [u8]>) {
        let mut patterns = self.patterns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(more) = patterns.with(secrets) {
            *patterns = Arc::new(more);
        }
    }

    pub fn text(&self, text: &str) -> String {
        self.now().mask_text(text)
    }
}

/// What the pump is told while it runs.
pub(super) enum Command {
    /// Writes a line of our own.
    Note(String),
    /// Reads another process's output too.
    Attach(Started),
    /// The step's process has ended: tell when its output has come.
    Drain(oneshot::Sender<()>),
    /// Nothing lives any more: read what is there and end.
    Finish,
}

struct Source {
    pipe: Output,
    stream: Stream,
    cleaner: Cleaner,
    open: bool,
}

/// Moves the output of one try into the step's log.
pub(super) struct Pump<'a> {
    log: &'a mut Log,
    masks: Masks,
    mask_file: MaskFile,
    link: Link,
    sources: Vec<Source>,
    encoding: OutputEncoding,
    told: Instant,
}

impl<'a> Pump<'a> {
    pub fn new(
        log: &'a mut Log,
        masks: Masks,
        mask_file: PathBuf,
        link: Link,
        encoding: OutputEncoding,
    ) -> Self {
        Self {
            log,
            masks,
            mask_file: MaskFile {
                path: mask_file,
                seen: 0,
            },
            link,
            sources: Vec::new(),
            encoding,
            told: Instant::now(),
        }
    }

    /// Reads until told to finish.
    pub async fn run(mut self, first: Started, mut commands: mpsc::UnboundedReceiver<Command>) {
        self.attach(first);
        let mut buffer = vec![0; CHUNK];
        let mut draining: Option<(oneshot::Sender<()>, Instant)> = None;
        let mut finishing: Option<Instant> = None;
        let mut quiet_since = Instant::now();
        let mut unseen_since: Option<Instant> = None;
        let mut next = 0;
        loop {
            if let Some((done, end)) = draining.take() {
                let quiet = quiet_since.elapsed() >= QUIET || Instant::now() >= end;
                if quiet || !self.sources.iter().any(|s| s.open) {
                    let _ = done.send(()); // the one who asked ended meanwhile
                } else {
                    draining = Some((done, end));
                }
            }
            if let Some(end) = finishing
                && (!self.sources.iter().any(|s| s.open)
                    || Instant::now() >= end
                    || quiet_since.elapsed() >= QUIET)
            {
                break;
            }
            let wake = [
                unseen_since.map(|since| since + SHOW),
                (draining.is_some() || finishing.is_some()).then(|| quiet_since + QUIET),
            ];
            let wake = wake.into_iter().flatten().min();
            tokio::select! {
                biased;
                Some(command) = commands.recv() => match command {
                    Command::Note(text) => {
                        let text = self.masks.text(&text);
                        self.log.note(&text);
                        self.tell();
                    }
                    Command::Attach(started) => self.attach(started),
                    Command::Drain(done) => {
                        quiet_since = Instant::now();
                        draining = Some((done, Instant::now() + LONGEST_DRAIN));
                    }
                    Command::Finish => {
                        quiet_since = Instant::now();
                        finishing = Some(Instant::now() + LONGEST_DRAIN);
                    }
                },
                (index, read) = read_any(&mut self.sources, next, &mut buffer) => {
                    quiet_since = Instant::now();
                    next = index + 1; // turn and turn about
                    match read {
                        Ok(len) if len > 0 => self.take(index, &buffer[..len]),
                        _ => self.end(index),
                    }
                    unseen_since = unseen_since.or(Some(Instant::now()));
                    self.tell();
                }
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {
                    if unseen_since.is_some_and(|since| since.elapsed() >= SHOW) {
                        self.show();
                        unseen_since = None;
                    }
                }
            }
        }
        for index in 0..self.sources.len() {
            self.end(index);
        }
        self.log.end_lines();
        self.link.progress();
    }

    fn attach(&mut self, started: Started) {
        for (pipe, stream) in [(started.stdout, Stream::Stdout), (started.stderr, Stream::Stderr)] {
            self.sources.push(Source {
                pipe,
                stream,
                cleaner: Cleaner::new(self.encoding, self.masks.pages.oem),
                open: true,
            });
        }
    }

    fn take(&mut self, index: usize, bytes: &[u8]) {
        self.mask_file.look(&self.masks);
        self.write(index, |cleaner, patterns, out| cleaner.feed(patterns, bytes, out));
    }

    fn write(&mut self, index: usize, clean: impl FnOnce(&mut Cleaner, &Patterns, &mut Vec<u8>)) {
        let source = &mut self.sources[index];
        let mut safe = Vec::new();
        clean(&mut source.cleaner, &self.masks.now(), &mut safe);
        self.log.write(source.stream, &safe);
    }

    fn end(&mut self, index: usize) {
        if std::mem::take(&mut self.sources[index].open) {
            self.mask_file.look(&self.masks);
            self.write(index, Cleaner::finish);
        }
    }

    /// Shows lines that have not ended; what may be the beginning of a secret stays hidden.
    fn show(&mut self) {
        for index in 0..self.sources.len() {
            self.write(index, Cleaner::decide);
        }
        if self.log.has_unseen() {
            self.log.flush();
        }
        self.link.progress();
    }

    fn tell(&mut self) {
        if self.told.elapsed() >= SHOW {
            self.told = Instant::now();
            self.link.progress();
        }
    }
}

/// The next bytes of any open source, or its end, beginning with the one at `first`. Waits for ever where none is open.
async fn read_any(
    sources: &mut [Source],
    first: usize,
    buffer: &mut [u8],
) -> (usize, std::io::Result<usize>) {
    poll_fn(|context| {
        let count = sources.len();
        for index in (first..first + count).map(|i| i % count) {
            let source = &mut sources[index];
            if !source.open {
                continue;
            }
            let mut into = ReadBuf::new(buffer);
            if let Poll::Ready(read) = Pin::new(&mut source.pipe).poll_read(context, &mut into) {
                return Poll::Ready((index, read.map(|()| into.filled().len())));
            }
        }
        Poll::Pending
    })
    .await
}

/// The file a step adds masks to; read again whenever it has grown, before output that came after is written.
struct MaskFile {
    path: PathBuf,
    seen: u64,
}

impl MaskFile {
    fn look(&mut self, masks: &Masks) {
        let size = file_size(&self.path);
        if size != self.seen
            && let Ok(bytes) = std::fs::read(&self.path)
        {
            self.seen = size;
            let values = outputs::masks(&bytes, masks.pages.oem);
            masks.add(values.iter().map(String::as_bytes));
        }
    }
}

fn file_size(path: &Path) -> u64 {
    path.metadata().map_or(0, |m| m.len())
}
