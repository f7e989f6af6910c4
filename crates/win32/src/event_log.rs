//! The event log, with the message file that every Windows has: its messages 1 to 1000 are each one text, so no file of ours is locked by
//! whoever looks at events.

use crate::{
    Error, Result,
    registry::{self, Hive, Key, Life},
    wide::wide,
};
use std::ptr;
use windows_sys::Win32::{
    Foundation::HANDLE,
    System::EventLog::{
        DeregisterEventSource, EVENTLOG_ERROR_TYPE, EVENTLOG_INFORMATION_TYPE, EVENTLOG_WARNING_TYPE,
        RegisterEventSourceW, ReportEventW,
    },
};

/// Where sources of the application log are registered.
const SOURCES: &str = r"SYSTEM\CurrentControlSet\Services\EventLog\Application";
/// The message file.
const MESSAGES: &str = r"%SystemRoot%\System32\EventCreate.exe";
/// The most units of a text that an event holds. Source: ReportEventW, limit of a string.
const LONGEST: usize = 31_839;

/// How serious an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For the record.
    Information,
    /// Something to look at.
    Warning,
    /// Something that failed.
    Error,
}

/// Registers a source, so that its events are shown with their text.
pub fn register(source: &str) -> Result<()> {
    let (key, _) = Key::create(Hive::Machine, &format!(r"{SOURCES}\{source}"), Life::Lasting)?;
    key.set_expandable("EventMessageFile", MESSAGES)?;
    key.set_number("TypesSupported", 7) // error, warning, information
}

/// Removes a source; one that is not there is fine.
pub fn unregister(source: &str) -> Result<()> {
    registry::delete(Hive::Machine, &format!(r"{SOURCES}\{source}"))
}

/// Writes to the log as one source.
#[derive(Debug)]
pub struct Source(HANDLE);

// SAFETY: the handle may be used from any thread.
unsafe impl Send for Source {}
// SAFETY: the calls made with it are safe to make at once.
unsafe impl Sync for Source {}

impl Source {
    /// Opens the log; a source that is not registered writes too, but its events have a note instead of a plain text.
    pub fn open(source: &str) -> Result<Self> {
        let source = wide(source);
        // SAFETY: the name ends with a zero; no server means this host.
        let handle = unsafe { RegisterEventSourceW(ptr::null(), source.as_ptr()) };
        if handle.is_null() {
            return Err(Error::last("RegisterEventSourceW"));
        }
        Ok(Self(handle))
    }

    /// Writes an event. `id` is 1 to 1000; what is too long is cut.
    pub fn report(&self, kind: Kind, id: u16, text: &str) -> Result<()> {
        let kind = match kind {
            Kind::Information => EVENTLOG_INFORMATION_TYPE,
            Kind::Warning => EVENTLOG_WARNING_TYPE,
            Kind::Error => EVENTLOG_ERROR_TYPE,
        };
        let mut text = wide(text.replace('\0', " "));
        if text.len() > LONGEST {
            text.truncate(LONGEST - 1);
            text.push(0);
        }
        let texts = [text.as_ptr()];
        // SAFETY: the handle is open; the one text ends with a zero.
        let written = unsafe {
            ReportEventW(
                self.0,
                kind,
                0,
                id.into(),
                ptr::null_mut(),
                1,
                0,
                texts.as_ptr(),
                ptr::null(),
            )
        };
        match written {
            0 => Err(Error::last("ReportEventW")),
            _ => Ok(()),
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // SAFETY: the handle is open and ours.
        unsafe { DeregisterEventSource(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_registered_and_removed() {
        let name = "ProwTestSource";
        register(name).unwrap();
        register(name).unwrap();
        let path = format!(r"{SOURCES}\{name}");
        let key = Key::open(Hive::Machine, &path).unwrap().unwrap();
        assert_eq!(key.text("EventMessageFile").unwrap().unwrap(), MESSAGES);
        drop(key);
        unregister(name).unwrap();
        unregister(name).unwrap();
        assert!(Key::open(Hive::Machine, &path).unwrap().is_none());
    }
}
