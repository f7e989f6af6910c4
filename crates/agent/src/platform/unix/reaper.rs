//! Collects ended children: those started here, and orphans of theirs, which come to the runner as the subreaper of its tree.

use crate::platform::{Exit, Usage};
use std::{
    collections::BTreeMap,
    io,
    mem::MaybeUninit,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

#[derive(Default)]
struct State {
    /// Children somebody waits for; `None` while they live.
    children: BTreeMap<u32, Option<Exit>>,
    /// Of all that ended since the last question.
    usage: Usage,
}

/// The one place of this process that waits for children.
#[derive(Clone)]
pub struct Reaper {
    state: Arc<Mutex<State>>,
    changed: watch::Receiver<()>,
}

impl Reaper {
    /// Starts collecting, within the current tokio runtime.
    pub fn start() -> io::Result<Self> {
        let mut ended = signal(SignalKind::child())?;
        let state = Arc::new(Mutex::new(State::default()));
        let (changes, changed) = watch::channel(());
        let of_task = state.clone();
        tokio::spawn(async move {
            while ended.recv().await.is_some() {
                let mut state = lock(&of_task);
                while let Some((pid, exit, usage)) = next_ended() {
                    state.usage.cpu += usage.cpu;
                    state.usage.peak_memory = state.usage.peak_memory.max(usage.peak_memory);
                    if let Some(child) = state.children.get_mut(&pid) {
                        *child = Some(exit);
                    }
                }
                drop(state);
                changes.send_replace(());
            }
        });
        Ok(Self { state, changed })
    }

    /// Starts a child that [`Reaper::exited`] may be asked about. While `start` runs nothing is collected, so not even the quickest
    /// child is missed.
    pub fn register(&self, start: impl FnOnce() -> io::Result<u32>) -> io::Result<u32> {
        let mut state = lock(&self.state);
        let pid = start()?;
        state.children.insert(pid, None);
        Ok(pid)
    }

    /// Waits for the end of a registered child.
    pub async fn exited(&self, pid: u32) -> Exit {
        let mut changed = self.changed.clone();
        loop {
            changed.mark_unchanged();
            if let Some(exit) = lock(&self.state).children.get(&pid).cloned().flatten() {
                return exit;
            }
            if changed.changed().await.is_err() {
                std::future::pending::<()>().await; // only while the runtime shuts down
            }
        }
    }

    /// Waits until a child or an orphan ended.
    pub async fn any_ended(&self) {
        let mut changed = self.changed.clone();
        changed.mark_unchanged();
        let _ = changed.changed().await; // an error only while the runtime shuts down
    }

    /// What all that ended since the last call used.
    pub fn take_usage(&self) -> Usage {
        std::mem::take(&mut lock(&self.state).usage)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes one ended child from the kernel, if there is one.
#[allow(unsafe_code)]
fn next_ended() -> Option<(u32, Exit, Usage)> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are valid for writing while the call lasts, and zeroes are a valid rusage.
    let (pid, usage) = unsafe {
        let pid = libc::wait4(-1, &raw mut status, libc::WNOHANG, usage.as_mut_ptr());
        (pid, usage.assume_init())
    };
    let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    Some((pid, exit(status), used(&usage)))
}

fn exit(status: i32) -> Exit {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        Exit {
            code: 128 + signal.unsigned_abs(),
            name: signal_name(signal),
        }
    } else {
        Exit {
            code: libc::WEXITSTATUS(status).unsigned_abs(),
            name: String::new(),
        }
    }
}

fn used(usage: &libc::rusage) -> Usage {
    let time = |t: libc::timeval| {
        Duration::new(t.tv_sec.unsigned_abs(), 0) + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    Usage {
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        peak_memory: usage.ru_maxrss.unsigned_abs() * 1024, // Linux counts it in KiB
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
