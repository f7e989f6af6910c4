//! The marks by which Windows and its servicing say that a restart is due, each a source with a name.
//!
//! Sources: the servicing stack (CBS), Windows Update, the session manager, the computer's name, Netlogon, Server Manager; keys and
//! values as Microsoft's own Test-PendingReboot scripts and the documentation of PendingFileRenameOperations name them.

use crate::platform::RebootMark;
use win32::registry::{Hive, Key, Value};

const CBS: &str = r"SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing";
const UPDATE: &str = r"SOFTWARE\Microsoft\Windows\CurrentVersion\WindowsUpdate\Auto Update\RebootRequired";
const SESSION_MANAGER: &str = r"SYSTEM\CurrentControlSet\Control\Session Manager";
const UPDATES: &str = r"SOFTWARE\Microsoft\Updates";
const NAMES: &str = r"SYSTEM\CurrentControlSet\Control\ComputerName";
const NETLOGON: &str = r"SYSTEM\CurrentControlSet\Services\Netlogon";
const SERVER_MANAGER: &str = r"SOFTWARE\Microsoft\ServerManager";

/// The marks that are set.
pub fn pending_reboot() -> Vec<RebootMark> {
    Registry {
        hive: Hive::Machine,
        root: String::new(),
    }
    .marks()
}

/// Where the keys are looked for.
struct Registry {
    hive: Hive,
    /// Put before each path.
    root: String,
}

impl Registry {
    fn marks(&self) -> Vec<RebootMark> {
        let mut marks = Vec::new();
        let mut add = |holds: bool, source: &'static str, counts: bool| {
            if holds {
                marks.push(RebootMark { source, counts });
            }
        };
        add(
            self.has(&format!(r"{CBS}\RebootPending")),
            "CBS RebootPending",
            true,
        );
        add(
            self.has(&format!(r"{CBS}\RebootInProgress")),
            "CBS RebootInProgress",
            true,
        );
        add(
            self.has(&format!(r"{CBS}\PackagesPending")),
            "CBS PackagesPending",
            true,
        );
        add(self.has(UPDATE), "Windows Update RebootRequired", true);
        let renames = ["PendingFileRenameOperations", "PendingFileRenameOperations2"];
        let renames = renames.iter().any(|name| self.is_filled(SESSION_MANAGER, name));
        // virus scanners and browsers leave it there for ever
        add(renames, "PendingFileRenameOperations", false);
        let volatile = self.number(UPDATES, "UpdateExeVolatile").is_some_and(|n| n != 0);
        add(volatile, "UpdateExeVolatile", true);
        add(self.is_renamed(), "ComputerName", true);
        add(
            self.value(NETLOGON, "JoinDomain").is_some(),
            "Netlogon JoinDomain",
            true,
        );
        add(
            self.value(NETLOGON, "AvoidSpnSet").is_some(),
            "Netlogon AvoidSpnSet",
            true,
        );
        let attempts = self.number(SERVER_MANAGER, "CurrentRebootAttempts");
        add(
            attempts.is_some_and(|n| n != 0),
            "ServerManager CurrentRebootAttempts",
            true,
        );
        marks
    }

    /// Whether the computer has a new name that it does not bear yet.
    fn is_renamed(&self) -> bool {
        let name = |key: &str| self.value(&format!(r"{NAMES}\{key}"), "ComputerName");
        match (name("ActiveComputerName"), name("ComputerName")) {
            (Some(Value::Text(active)), Some(Value::Text(next))) => !active.eq_ignore_ascii_case(&next),
            _ => false,
        }
    }

    fn is_filled(&self, path: &str, name: &str) -> bool {
        matches!(self.value(path, name), Some(Value::Texts(texts)) if !texts.is_empty())
    }

    fn number(&self, path: &str, name: &str) -> Option<u64> {
        match self.value(path, name)? {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    // a key that may not be read is as good as none: its mark is one we cannot know of

    fn value(&self, path: &str, name: &str) -> Option<Value> {
        self.key(path)?.value(name).ok()?
    }

    fn has(&self, path: &str) -> bool {
        self.key(path).is_some()
    }

    fn key(&self, path: &str) -> Option<Key> {
        Key::open(self.hive, &format!("{}{path}", self.root)).ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use win32::registry::{self, Life};

    /// A registry of its own, empty at first.
    struct Scratch(Registry);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(Registry {
                hive: Hive::User,
                root: format!("Software\\Prow test {name} {}\\", std::process::id()),
            })
        }

        fn key(&self, path: &str) -> Key {
            Key::create(Hive::User, &format!("{}{path}", self.0.root), Life::Boot)
                .unwrap()
                .0
        }

        fn marks(&self) -> Vec<(&'static str, bool)> {
            self.0.marks().iter().map(|m| (m.source, m.counts)).collect()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            registry::delete(Hive::User, self.0.root.trim_end_matches('\\')).unwrap();
        }
    }

    #[test]
    fn a_host_without_marks_has_none() {
        let scratch = Scratch::new("no marks");
        assert!(scratch.marks().is_empty());
        scratch.key(CBS);
        scratch
            .key(SESSION_MANAGER)
            .set_texts("PendingFileRenameOperations", &[])
            .unwrap();
        scratch.key(UPDATES).set_number("UpdateExeVolatile", 0).unwrap();
        scratch
            .key(SERVER_MANAGER)
            .set_number("CurrentRebootAttempts", 0)
            .unwrap();
        for key in ["ActiveComputerName", "ComputerName"] {
            let key = scratch.key(&format!(r"{NAMES}\{key}"));
            key.set_text("ComputerName", "web01").unwrap();
        }
        assert!(scratch.marks().is_empty(), "{:?}", scratch.marks());
    }

    /// AL-07, AL-08: each mark by its name, so that the one that stays set can be told.
    #[test]
    fn each_mark_is_told_by_its_name() {
        let scratch = Scratch::new("marks");
        let mut expected = Vec::new();
        let mut check = |name: &'static str, counts: bool| {
            expected.push((name, counts));
            assert_eq!(scratch.marks(), expected);
        };
        scratch.key(&format!(r"{CBS}\RebootPending"));
        check("CBS RebootPending", true);
        scratch.key(&format!(r"{CBS}\RebootInProgress"));
        check("CBS RebootInProgress", true);
        scratch.key(&format!(r"{CBS}\PackagesPending"));
        check("CBS PackagesPending", true);
        scratch.key(UPDATE);
        check("Windows Update RebootRequired", true);
        let renames = [r"\??\C:\x.tmp"];
        scratch
            .key(SESSION_MANAGER)
            .set_texts("PendingFileRenameOperations2", &renames)
            .unwrap();
        check("PendingFileRenameOperations", false);
        scratch.key(UPDATES).set_number("UpdateExeVolatile", 2).unwrap();
        check("UpdateExeVolatile", true);
        for (key, name) in [("ActiveComputerName", "OLD"), ("ComputerName", "NEW")] {
            let key = scratch.key(&format!(r"{NAMES}\{key}"));
            key.set_text("ComputerName", name).unwrap();
        }
        check("ComputerName", true);
        scratch.key(NETLOGON).set_text("JoinDomain", "corp").unwrap();
        check("Netlogon JoinDomain", true);
        scratch.key(NETLOGON).set_number("AvoidSpnSet", 1).unwrap();
        check("Netlogon AvoidSpnSet", true);
        scratch
            .key(SERVER_MANAGER)
            .set_number("CurrentRebootAttempts", 1)
            .unwrap();
        check("ServerManager CurrentRebootAttempts", true);
    }
}
