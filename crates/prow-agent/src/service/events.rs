//! What the agent writes to the event log of Windows. The ids are what monitoring looks for, so they never change their meaning; they are
//! listed in docs/windows.md.

use std::fmt;
use win32::event_log::{self, Kind};

/// The source of our events.
pub const SOURCE: &str = "Prow";

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The service runs.
    Started,
    /// The service was stopped; runners go on.
    Stopped,
    /// The host goes down; runners are told to end.
    HostDown,
    /// The service ended by itself; the text says why. Windows starts it again.
    Failed(String),
    /// Another version is to take over.
    UpgradeBegun(String),
    /// Another version has taken over.
    UpgradeDone(String),
    /// Another version did not do its work; the old one is back. The text says more.
    UpgradeTakenBack(String),
}

impl Event {
    /// Its id: 1 to 1000, the range of the message file.
    pub fn id(&self) -> u16 {
        match self {
            Self::Started => 100,
            Self::Stopped => 101,
            Self::HostDown => 102,
            Self::Failed(_) => 103,
            Self::UpgradeBegun(_) => 110,
            Self::UpgradeDone(_) => 111,
            Self::UpgradeTakenBack(_) => 112,
        }
    }

    /// How serious it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Started | Self::Stopped | Self::UpgradeBegun(_) | Self::UpgradeDone(_) => Kind::Information,
            Self::HostDown => Kind::Warning,
            Self::Failed(_) | Self::UpgradeTakenBack(_) => Kind::Error,
        }
    }

    /// Writes it; a log that cannot be written to is noted in our own.
    pub fn report(&self) {
        let written = event_log::Source::open(SOURCE)
            .and_then(|source| source.report(self.kind(), self.id(), &self.to_string()));
        if let Err(error) = written {
            tracing::warn!(%error, event = %self, "not in the event log");
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started => write!(f, "prow-agent {} started", env!("CARGO_PKG_VERSION")),
            Self::Stopped => f.write_str("the agent stopped; running tasks go on"),
            Self::HostDown => f.write_str("the host goes down; running tasks are told to end"),
            Self::Failed(why) => write!(f, "the agent ended: {why}"),
            Self::UpgradeBegun(what) => write!(f, "upgrade begun: {what}"),
            Self::UpgradeDone(what) => write!(f, "upgrade done: {what}"),
            Self::UpgradeTakenBack(why) => write!(f, "upgrade taken back: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What monitoring relies on: the page and the program say the same.
    #[test]
    fn ids_are_as_documented() {
        let page = include_str!("../../../../docs/windows.md");
        let why = || "w".to_owned();
        let events = [
            Event::Started,
            Event::Stopped,
            Event::HostDown,
            Event::Failed(why()),
            Event::UpgradeBegun(why()),
            Event::UpgradeDone(why()),
            Event::UpgradeTakenBack(why()),
        ];
        let mut listed = 0;
        for line in page.lines().filter(|line| {
            line.starts_with("| 1") && line.contains("Information")
                || line.starts_with("| 1") && (line.contains("| Warning") || line.contains("| Error"))
        }) {
            listed += 1;
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let known = events
                .iter()
                .any(|event| cells[1] == event.id().to_string() && cells[2] == format!("{:?}", event.kind()));
            assert!(known, "{line}");
        }
        assert_eq!(listed, events.len());
        assert!(events.iter().all(|event| (1..=1000).contains(&event.id())));
    }
}
