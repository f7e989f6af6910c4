//! Other processes: signals by pid, and finding those that belong to a folder.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, path::Path};

/// A process of the system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(pub u32);

impl Process {
    /// Ends it at once; false if it was gone already.
    pub fn kill(self) -> bool {
        self.signal(Signal::KILL)
    }

    /// Asks it to end.
    pub fn terminate(self) -> bool {
        self.signal(Signal::TERM)
    }

    /// Freezes it.
    pub fn freeze(self) -> bool {
        self.signal(Signal::STOP)
    }

    /// Lets it go on.
    pub fn thaw(self) -> bool {
        self.signal(Signal::CONT)
    }

    fn signal(self, signal: Signal) -> bool {
        let pid = i32::try_from(self.0).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
    }

    /// The process a pid file names.
    pub fn of_file(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let pid = text.split_whitespace().next().and_then(|word| word.parse().ok());
        Ok(Self(
            pid.with_context(|| format!("{} holds no pid", path.display()))?,
        ))
    }

    /// All living processes of the system in `folder`: our programs with it in their command line, and steps, which have it in their
    /// environment.
    pub fn of_folder(folder: &Path) -> Vec<Self> {
        let needle = folder.as_os_str().as_encoded_bytes();
        let has = |pid: u32, file: &str| {
            fs::read(format!("/proc/{pid}/{file}"))
                .is_ok_and(|bytes| bytes.windows(needle.len()).any(|part| part == needle))
        };
        let is_ours = |pid: u32| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("prow"))
        };
        processes(|pid| has(pid, "environ") || is_ours(pid) && has(pid, "cmdline"))
    }

    /// Task runners of the agents in `folder`.
    pub fn runners_of(folder: &Path) -> Vec<Self> {
        let needle = folder.as_os_str().as_encoded_bytes();
        let mut runners = processes(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| {
                let mut words = line.split(|byte| *byte == 0);
                words.nth(1) == Some(b"run-task") && words.next().is_some_and(|path| path.starts_with(needle))
            })
        });
        // a step that was forked and has not become its program yet still looks like its runner
        let all = runners.clone();
        runners.retain(|runner| runner.parent().is_none_or(|parent| !all.contains(&parent)));
        runners
    }

    /// The process it was started by.
    fn parent(self) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        // the name, in parentheses, may hold anything
        let pid = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        Some(Self(pid.parse().ok()?))
    }
}

fn processes(mut wanted: impl FnMut(u32) -> bool) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id() && wanted(*pid))
        .map(Process)
        .collect()
}
