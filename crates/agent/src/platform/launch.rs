//! Processes as every system has them: what one is started with, how it ended, what it used.

use std::{collections::BTreeMap, ffi::OsString, path::PathBuf, time::Duration};

/// What a process is started with.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: BTreeMap<String, OsString>,
    /// Its current folder.
    pub dir: PathBuf,
}

/// Limits of one try of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_milli: Option<u64>,
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; of one ended by a signal 128 and the signal's number, as shells tell it.
    pub code: u32,
    /// The signal that ended it, such as `SIGKILL`; else empty.
    pub name: String,
}

/// What processes used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time, user and system.
    pub cpu: Duration,
    /// The most memory of one of them (Unix), or of all together (Windows), in bytes; 0 where nothing tells it.
    pub peak_memory: u64,
}

/// A process of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Name of its program.
    pub name: String,
}
