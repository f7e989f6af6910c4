//! The terminal: results on stdout, everything else on stderr, colours and a live line only where somebody watches.

use anstyle::{AnsiColor, Style};
use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
};

/// What a piece of text means, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    Plain,
    /// It ended well.
    Good,
    /// It went wrong.
    Bad,
    /// It waits, or deserves a look.
    Wait,
    /// It goes on.
    Busy,
    /// Side matter.
    Dim,
    /// A heading.
    Strong,
}

impl Tone {
    /// The tone of a phase, condition or reason as objects have them.
    pub fn of(word: &str) -> Self {
        match word {
            "Succeeded" | "Complete" | "Ready" | "Compliant" | "Active" => Self::Good,
            "Failed" | "Unknown" | "NotReady" | "Rejected" | "Lost" => Self::Bad,
            "Pending" | "Paused" | "Suspended" | "Cancelled" | "Drifted" | "Waiting" | "Unschedulable" => {
                Self::Wait
            }
            "Running" | "Claimed" | "Bound" | "Rebooting" => Self::Busy,
            "Skipped" => Self::Dim,
            _ => Self::Plain,
        }
    }

    fn style(self) -> Style {
        let color = |c: AnsiColor| Style::new().fg_color(Some(c.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Good => color(AnsiColor::Green),
            Self::Bad => color(AnsiColor::Red),
            Self::Wait => color(AnsiColor::Yellow),
            Self::Busy => color(AnsiColor::Cyan),
            Self::Dim => Style::new().dimmed(),
            Self::Strong => Style::new().bold(),
        }
    }
}

/// `text` in the colour of `tone`; the colour is dropped where the output is no terminal or NO_COLOR is set.
pub fn paint(tone: Tone, text: impl Display) -> String {
    match tone {
        Tone::Plain => text.to_string(),
        _ => {
            let style = tone.style();
            format!("{style}{text}{style:#}")
        }
    }
}

/// `text` in one of six colours, always the same one for the same `key`.
pub fn paint_by(key: &str, text: &str) -> String {
    const COLORS: [AnsiColor; 6] = [
        AnsiColor::Cyan,
        AnsiColor::Green,
        AnsiColor::Magenta,
        AnsiColor::Yellow,
        AnsiColor::Blue,
        AnsiColor::BrightCyan,
    ];
    let sum = key.bytes().fold(7_usize, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    let style = Style::new().fg_color(Some(COLORS[sum % COLORS.len()].into()));
    format!("{style}{text}{style:#}")
}

/// Writes a line to stdout. An error is for `?`: it is usually a reader that went away.
pub fn line(text: impl Display) -> io::Result<()> {
    writeln!(anstream::stdout().lock(), "{text}")
}

/// Writes text to stdout as it is.
pub fn text(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes a line to stderr; what cannot be written there has no other place to go.
pub fn note(tone: Tone, text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{}", paint(tone, text));
}

/// Asks yes or no on the terminal. `None` where nobody can be asked.
pub fn ask(question: &str) -> Option<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(anstream::stderr().lock(), "{question} [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// A line at the bottom of the terminal that is rewritten as things go on; silent where stderr is no terminal.
pub struct LiveLine {
    shown: bool,
    enabled: bool,
}

impl LiveLine {
    /// A line that is not shown yet.
    pub fn new() -> Self {
        Self {
            shown: false,
            enabled: io::stderr().is_terminal(),
        }
    }

    /// Replaces the line.
    pub fn show(&mut self, text: &str) {
        if self.enabled {
            let _ = write!(anstream::stderr().lock(), "\r\x1b[2K{}", paint(Tone::Dim, text));
            self.shown = true;
        }
    }

    /// Removes the line so that something else can be printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(anstream::stderr().lock(), "\r\x1b[2K");
        }
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Waits until this process is asked to end: Ctrl-C, and on Unix SIGTERM.
pub async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await; // nobody can ask
    }
}

/// Logs to stderr, by default warnings and worse.
pub fn init_logging(filter: Option<&str>) {
    let filter = tracing_subscriber::EnvFilter::new(filter.unwrap_or("warn"));
    let started = tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none())
        .with_env_filter(filter)
        .try_init();
    if let Err(error) = started {
        eprintln!("error: logging could not be started: {error}");
    }
}
