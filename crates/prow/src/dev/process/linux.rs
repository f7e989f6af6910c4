//! Linux: pidfds, and the start time of /proc/PID/stat; source: proc(5).

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use std::{fs, os::fd::OwnedFd, sync::Arc};

/// See the module above.
pub struct Process {
    pid: u32,
    /// In clock ticks since the boot.
    started: u64,
    boot: String,
    handle: Arc<OwnedFd>,
}

impl Process {
    /// The living process of this number.
    pub fn of(pid: u32) -> Option<Self> {
        let number = Pid::from_raw(pid.try_into().ok()?)?;
        // the handle first: from then on the number cannot come to mean another process
        let handle = pidfd_open(number, PidfdFlags::empty()).ok()?;
        Some(Self {
            pid,
            started: started(pid)?,
            boot: boot()?,
            handle: Arc::new(handle),
        })
    }

    /// What to write down to know it again.
    pub fn remember(&self) -> String {
        format!("{} {} {}\n", self.pid, self.started, self.boot)
    }

    /// The process that was written down, if it still lives.
    pub fn recall(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let pid: u32 = words.next()?.parse().ok()?;
        let started: u64 = words.next()?.parse().ok()?;
        let boot = words.next()?;
        Self::of(pid).filter(|process| process.started == started && process.boot == boot)
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        loop {
            let handle = self.handle.clone();
            // a thread that waits cannot be called back: it looks up every second
            let look = move || {
                poll(
                    &mut [PollFd::new(&*handle, PollFlags::IN)],
                    Some(&Timespec {
                        tv_sec: 1,
                        tv_nsec: 0,
                    }),
                )
            };
            match tokio::task::spawn_blocking(look).await {
                Ok(Ok(0) | Err(rustix::io::Errno::INTR)) => {}
                _ => return, // ready, or nothing that could be waited for
            }
        }
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::TERM); // gone already is as good
    }

    /// Ends it.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

/// Start time, unless it is dead and only waits to be reaped.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name, in parentheses, may hold anything
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    (!matches!(state, "Z" | "X"))
        .then(|| fields.nth(18))?
        .and_then(|ticks| ticks.parse().ok())
}

fn boot() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .ok()
        .map(|id| id.trim().to_owned())
}
