//! A task's processes, held together, and those of one try of a step.
//!
//! The runner is the subreaper of its tree: a process whose parent ends becomes the runner's child, so at any time the tree is exactly
//! the runner's descendants, however its processes forked, whatever session or environment they gave themselves. Where control groups
//! are ours, each try has one as well, which makes ending it a single act.
//!
//! Should the runner be killed, its direct children get SIGKILL from the kernel (PR_SET_PDEATHSIG; set in a child of the thread that
//! started it, and sent when *that thread* ends: the runner starts everything from its one main thread). What those had started is
//! ended by the agent ([`super::end_survivors`]).

use super::{cgroup, proc, reaper::Reaper, survivors::kill};
use crate::platform::{Exit, Launch, Limits, Process, Usage};
use api::step::StopSignal;
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    pipe::{PipeFlags, pipe_with},
    process::{
        Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getppid, getrlimit, set_child_subreaper,
        set_parent_process_death_signal, setrlimit, setsid, waitid,
    },
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Command, Stdio},
    time::Duration,
};
use tokio::net::unix::pipe;

/// A step's output as it comes.
pub type Output = pipe::Receiver;

/// What is sent to ask processes to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
    /// SIGHUP.
    HangUp,
}

impl Ask {
    /// What a manifest's stop signal means here; nothing for Kill.
    pub fn of(signal: StopSignal) -> Option<Self> {
        match signal {
            StopSignal::CtrlBreak => Some(Self::Terminate),
            StopSignal::CtrlC => Some(Self::Interrupt),
            StopSignal::Close => Some(Self::HangUp),
            StopSignal::Kill => None,
        }
    }

    /// What is tried where this cannot be done: nothing, a signal reaches every process.
    pub fn fallback(self) -> Option<Self> {
        None
    }

    /// The signal's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::HangUp => "SIGHUP",
        }
    }
}

/// All processes of a task.
pub struct Containment {
    cgroup: Option<String>,
    reaper: Reaper,
    detached: BTreeSet<u32>,
    abandoned: BTreeSet<u32>,
    tries: u32,
    core: Rlimit,
}

impl Containment {
    /// Takes hold of everything this process will start. Call it on the main thread, once.
    pub fn new(uid: &str, control_groups: bool) -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        // secrets are in this process's memory: it leaves no core behind, its steps may
        let core = getrlimit(Resource::Core);
        setrlimit(
            Resource::Core,
            Rlimit {
                current: Some(0),
                ..core
            },
        )?;
        Ok(Self {
            cgroup: control_groups.then(|| cgroup::create(uid)).flatten(),
            reaper: Reaper::start()?,
            detached: BTreeSet::new(),
            abandoned: BTreeSet::new(),
            tries: 0,
            core,
        })
    }

    /// What the agent needs to find the processes after the death of this one.
    pub fn name(&self) -> Option<&str> {
        self.cgroup.as_deref()
    }

    /// Makes ready for one try of a step. Limits that cannot be set are an error, and nothing may be started then.
    pub fn group(&mut self, limits: Limits) -> io::Result<Group> {
        self.tries += 1;
        let cgroup = match &self.cgroup {
            Some(task) => Some(cgroup::create_below(task, self.tries, limits)?),
            None if limits == Limits::default() => None,
            None => {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "limits need a control group (cgroup v2) that the agent may make; under systemd: Delegate=yes",
                ));
            }
        };
        self.reaper.take_usage();
        Ok(Group {
            cgroup,
            reaper: self.reaper.clone(),
            spared: self.detached.union(&self.abandoned).copied().collect(),
            session: None,
            core: self.core,
        })
    }

    /// Lets processes live on until the end of the task.
    pub fn spare(&mut self, processes: &[Process]) {
        self.detached.extend(processes.iter().map(|p| p.pid));
    }

    /// Gives up on processes that could not be ended: nobody waits for them again.
    pub fn abandon(&mut self, processes: &[Process]) {
        self.abandoned.extend(processes.iter().map(|p| p.pid));
    }

    /// All that still lives, but for what was given up, as a group to be ended.
    pub fn rest(&self) -> Group {
        Group {
            cgroup: self.cgroup.clone(),
            reaper: self.reaper.clone(),
            spared: self.abandoned.clone(),
            session: None,
            core: self.core,
        }
    }
}

impl Drop for Containment {
    fn drop(&mut self) {
        if let Some(group) = &self.cgroup {
            cgroup::remove(group);
        }
    }
}

/// The processes of one try of a step.
pub struct Group {
    cgroup: Option<String>,
    reaper: Reaper,
    spared: BTreeSet<u32>,
    /// Pid of the first process, which leads the session.
    session: Option<u32>,
    core: Rlimit,
}

/// A started process with its output.
pub struct Started {
    /// Its pid.
    pub pid: u32,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
}

impl Group {
    /// Makes ready for a step with windows: nothing to do.
    pub fn with_windows(self) -> io::Result<Self> {
        Ok(self)
    }

    /// Starts a process: a session of its own, nothing on stdin, no handle but its three streams, inside the containment before its
    /// program runs.
    #[allow(unsafe_code)]
    pub fn start(&mut self, launch: &Launch) -> io::Result<Started> {
        let (stdout, child_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, child_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        let procs = self.cgroup.as_deref().map(cgroup_entry).transpose()?;
        let parent = getpid();
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.args)
            .env_clear()
            .envs(&launch.env)
            .current_dir(&launch.dir)
            .stdin(Stdio::null())
            .stdout(child_stdout)
            .stderr(child_stderr);
        let core = self.core;
        let enter = move || {
            setsid()?;
            setrlimit(Resource::Core, core)?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into()); // the runner died before the line above
            }
            if let Some(procs) = &procs {
                rustix::io::write(procs, b"0")?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only; it neither allocates nor takes locks.
        unsafe { command.pre_exec(enter) };
        let pid = self.reaper.register(|| Ok(command.spawn()?.id()))?;
        drop(command); // closes our copies of the child's ends
        self.session.get_or_insert(pid);
        Ok(Started {
            pid,
            stdout: pipe::Receiver::from_owned_fd(stdout)?,
            stderr: pipe::Receiver::from_owned_fd(stderr)?,
        })
    }

    /// Waits for the end of a process started here.
    pub async fn exited(&self, pid: u32) -> Exit {
        self.reaper.exited(pid).await
    }

    /// All living processes of this try.
    pub fn members(&self) -> Vec<Process> {
        self.stats().into_iter().map(|s| process(&s)).collect()
    }

    /// Those that set themselves apart: they left the session.
    pub fn set_apart(&self) -> Vec<Process> {
        self.stats()
            .into_iter()
            .filter(|s| Some(s.session) != self.session)
            .map(|s| process(&s))
            .collect()
    }

    /// Leaves these alone from now on.
    pub fn spare(&mut self, processes: &[Process]) {
        self.spared.extend(processes.iter().map(|p| p.pid));
        if !processes.is_empty() {
            self.cgroup = None; // it would end them all
        }
    }

    /// Asks all processes of the step's session to end. An error says why that could not be done.
    pub async fn ask(&self, ask: Ask) -> io::Result<()> {
        let signal = match ask {
            Ask::Terminate => Signal::TERM,
            Ask::Interrupt => Signal::INT,
            Ask::HangUp => Signal::HUP,
        };
        for stat in self.stats().iter().filter(|s| Some(s.session) == self.session) {
            kill(stat.pid, signal);
        }
        Ok(())
    }

    /// Ends one process that was started here, and it alone.
    pub fn end_one(&self, pid: u32) {
        kill(pid, Signal::KILL);
    }

    /// Waits until none lives.
    pub async fn gone(&self) {
        while !self.below().is_empty() {
            // an end deep in the tree, below a living parent, is not told to us
            let _ = tokio::time::timeout(Duration::from_millis(50), self.reaper.any_ended()).await;
        }
    }

    /// Ends all processes and waits until none lives, at most `limit`. Returns what lives even then.
    pub async fn end(&self, limit: Duration) -> Vec<Process> {
        let end = tokio::time::Instant::now() + limit;
        let mut rounds = 0_u32;
        loop {
            if let Some(group) = &self.cgroup {
                cgroup::kill(group);
            }
            let left = self.below();
            let living = left.iter().filter(|s| !s.is_zombie());
            living.clone().for_each(|stat| kill(stat.pid, Signal::KILL));
            if left.is_empty() || tokio::time::Instant::now() >= end {
                return living.map(process).collect();
            }
            rounds += 1;
            // the first rounds follow at once, so that a chain of short-lived processes does not run ahead of us
            if rounds <= 20 {
                tokio::task::yield_now().await; // also lets ended ones be collected
            } else {
                let pause = Duration::from_millis(u64::from(rounds - 20).min(50));
                let _ = tokio::time::timeout(pause, self.reaper.any_ended()).await;
            }
        }
    }

    /// What the processes of this try used, of those that ended.
    pub fn usage(&self) -> Usage {
        self.reaper.take_usage()
    }

    /// The runner's living descendants, but for spared ones and theirs.
    fn stats(&self) -> Vec<proc::Stat> {
        let mut below = self.below();
        below.retain(|s| !s.is_zombie());
        below
    }

    /// The same with those that have ended and were not collected yet.
    fn below(&self) -> Vec<proc::Stat> {
        if has_no_children() {
            return Vec::new();
        }
        let all = proc::all();
        let mut children: BTreeMap<u32, Vec<&proc::Stat>> = BTreeMap::new();
        for stat in all.values() {
            children.entry(stat.parent).or_default().push(stat);
        }
        let mut found = Vec::new();
        let mut next = vec![std::process::id()];
        while let Some(pid) = next.pop() {
            for stat in children.get(&pid).into_iter().flatten() {
                if !self.spared.contains(&stat.pid) && !self.spared.contains(&stat.session) {
                    next.push(stat.pid);
                    found.push((*stat).clone());
                }
            }
        }
        found
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = &self.cgroup {
            cgroup::remove(group);
        }
    }
}

fn process(stat: &proc::Stat) -> Process {
    Process {
        pid: stat.pid,
        name: stat.name.clone(),
    }
}

/// Whether the kernel knows of no child, living or not: then, as all orphans come to us, the whole tree is gone.
fn has_no_children() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

fn cgroup_entry(group: &str) -> io::Result<OwnedFd> {
    let path = format!("{group}/cgroup.procs");
    Ok(rustix::fs::open(
        path,
        OFlags::WRONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}
