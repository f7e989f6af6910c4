//! A task's processes, held together by job objects, and those of one try of a step.
//!
//! Three jobs lie in each other: T is the task's, has a name that the journal keeps, and ends all with the runner; D is one try's and lets
//! nothing out; S lies in D, carries the limits and lets out into D what asks to break away. A process is in all of them from birth.
//! So what leaves the step is still held, can be told apart (in D, not in S), and lives on only where the step allows it.

use super::{
    command_line,
    process::{DENIED, ENDED, on_end},
    signal::{self, Ask},
    survivors::members,
};
use crate::platform::{Exit, Launch, Limits, Process, Usage};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io,
    os::windows::io::AsHandle,
    sync::Arc,
    time::Duration,
};
use tokio::{net::windows::named_pipe::NamedPipeServer, sync::watch};
use win32::{
    desktop::Desktop,
    environment,
    job::{Job, Rules},
    pipe,
    security::Descriptor,
    spawn::{Console, Spawn},
};

/// A step's output as it comes.
pub type Output = NamedPipeServer;

/// All processes of a task.
pub struct Containment {
    name: String,
    task: Arc<Job>,
    /// Jobs of tries that something may live on in: closing one would end it.
    kept: Vec<Arc<Job>>,
    abandoned: BTreeSet<u32>,
}

impl Containment {
    /// Takes hold of everything this process will start.
    pub fn new(uid: &str, _control_groups: bool) -> io::Result<Self> {
        let name = format!(r"Global\prow-{uid}-{}", random()?);
        let descriptor = Descriptor::private()?;
        let task = Job::create(Some((&name, &descriptor)), Rules::default())?;
        Ok(Self {
            name,
            task: Arc::new(task),
            kept: Vec::new(),
            abandoned: BTreeSet::new(),
        })
    }

    /// What the agent needs to find the processes after the death of this one.
    pub fn name(&self) -> Option<&str> {
        Some(&self.name)
    }

    /// Makes ready for one try of a step. Limits that cannot be set are an error, and nothing may be started then.
    pub fn group(&mut self, limits: Limits) -> io::Result<Group> {
        self.kept
            .retain(|job| members(job).is_ok_and(|living| !living.is_empty()));
        let outer = Arc::new(Job::create(None, Rules::default())?);
        let inner = Job::create(None, rules(limits))?;
        self.kept.push(outer.clone());
        Ok(Group {
            task: self.task.clone(),
            outer,
            inner: Some(inner),
            desktop: None,
            started: BTreeMap::new(),
            spared: false,
            abandoned: BTreeSet::new(),
        })
    }

    /// Lets processes live on until the end of the task. They are in a job of their try, which is kept while they live.
    pub fn spare(&mut self, _processes: &[Process]) {}

    /// Gives up on processes that could not be ended: nobody waits for them again.
    pub fn abandon(&mut self, processes: &[Process]) {
        self.abandoned.extend(processes.iter().map(|p| p.pid));
    }

    /// All that still lives, but for what was given up, as a group to be ended.
    pub fn rest(&self) -> Group {
        Group {
            task: self.task.clone(),
            outer: self.task.clone(),
            inner: None,
            desktop: None,
            started: BTreeMap::new(),
            spared: false,
            abandoned: self.abandoned.clone(),
        }
    }
}

/// A part of a name that others cannot guess.
fn random() -> io::Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(random)))
}

/// Windows counts processor time in shares of all processors.
fn rules(limits: Limits) -> Rules {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let rate = |milli: u64| (milli * 10 / processors).clamp(1, 10_000);
    Rules {
        break_away: true,
        memory: limits.memory,
        cpu_rate: limits
            .cpu_milli
            .map(|milli| u32::try_from(rate(milli)).unwrap_or(10_000)),
    }
}

/// The processes of one try of a step.
pub struct Group {
    task: Arc<Job>,
    outer: Arc<Job>,
    /// `None` for what is left of a whole task.
    inner: Option<Job>,
    /// That of a step with windows.
    desktop: Option<Desktop>,
    started: BTreeMap<u32, (win32::process::Process, watch::Receiver<Option<Exit>>)>,
    /// Whether what broke away may live on: then only the inner job matters.
    spared: bool,
    /// What was given up.
    abandoned: BTreeSet<u32>,
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
    /// Gives a step with windows a desktop of its own, so that they can be found and nobody else's windows can be sent messages. An account
    /// that may not make one keeps its own.
    pub fn with_windows(mut self) -> io::Result<Self> {
        match Desktop::create(&format!("prow-{}", random()?), &Descriptor::private()?) {
            Ok(desktop) => self.desktop = Some(desktop),
            Err(error) if error.code == DENIED => {
                tracing::warn!(%error, "windows of a step are on the agent's own desktop");
            }
            Err(error) => return Err(error.into()),
        }
        Ok(self)
    }

    /// Starts a process: a console of its own, nothing on stdin, no handle but its three streams, inside the containment from birth.
    pub fn start(&mut self, launch: &Launch) -> io::Result<Started> {
        let (program, line) = command_line::of(&launch.program, &launch.args).map_err(io::Error::other)?;
        let nul = File::open("NUL")?;
        let (stdout, child_stdout) = pipe::output()?;
        let (stderr, child_stderr) = pipe::output()?;
        let variables = launch.env.iter();
        let block = environment::block(variables.map(|(name, value)| (name.as_ref(), value.as_ref())));
        let mut jobs = vec![&*self.task, &*self.outer];
        jobs.extend(&self.inner);
        let process = Spawn {
            program: &program,
            command_line: &line,
            environment: Some(&block),
            folder: &launch.dir,
            streams: [
                nul.as_handle(),
                child_stdout.as_handle(),
                child_stderr.as_handle(),
            ],
            jobs: &jobs,
            console: Console::Own,
            desktop: self.desktop.as_ref(),
            leave_jobs: false,
        }
        .start()?;
        let pid = process.pid();
        let held = process.try_clone()?;
        let (told, exit) = watch::channel(None);
        on_end(process, move |code| {
            told.send_replace(code.ok().map(|code| Exit {
                code,
                name: String::new(),
            }))
        });
        self.started.insert(pid, (held, exit));
        Ok(Started { pid, stdout, stderr })
    }

    /// Waits for the end of a process started here.
    pub async fn exited(&self, pid: u32) -> Exit {
        if let Some((_, exit)) = self.started.get(&pid)
            && let Ok(exit) = exit.clone().wait_for(Option::is_some).await
            && let Some(exit) = exit.clone()
        {
            return exit;
        }
        std::future::pending().await // its end cannot be seen
    }

    /// All living processes of this try.
    pub fn members(&self) -> Vec<Process> {
        self.living(self.held())
    }

    /// Those that set themselves apart: they broke away.
    pub fn set_apart(&self) -> Vec<Process> {
        let inside = self.inner.as_ref().map(|job| self.living(job));
        let mut apart = self.living(&self.outer);
        apart.retain(|process| !inside.iter().flatten().any(|p| p.pid == process.pid));
        apart
    }

    /// Leaves these alone from now on: those that broke away, so that the job tells them from the rest.
    pub fn spare(&mut self, processes: &[Process]) {
        self.spared |= !processes.is_empty();
    }

    /// Asks the step to end. An error says why none of its processes can be asked.
    pub async fn ask(&self, ask: Ask) -> io::Result<()> {
        let mut refused = Some(io::Error::other("no process of the step lives"));
        for process in self.members() {
            match signal::send(&self.task, self.desktop.as_ref(), process.pid, ask).await {
                // the event reaches all of the console, which is the step's
                Ok(()) if ask != Ask::Close => return Ok(()),
                Ok(()) => refused = None,
                Err(error) => refused = refused.map(|_| error),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    /// Ends one process that was started here, and it alone.
    pub fn end_one(&self, pid: u32) {
        if let Some((process, _)) = self.started.get(&pid)
            && let Err(error) = process.terminate(ENDED)
        {
            tracing::warn!(%error, pid, "a process cannot be ended");
        }
    }

    /// Waits until none lives.
    pub async fn gone(&self) {
        while !self.members().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await; // a job tells nobody reliably that it is empty
        }
    }

    /// Ends all processes and waits until none lives, at most `limit`. Returns what lives even then.
    pub async fn end(&self, limit: Duration) -> Vec<Process> {
        let end = tokio::time::Instant::now() + limit;
        let job = self.held();
        loop {
            if let Err(error) = job.terminate(ENDED) {
                tracing::warn!(%error, "a job cannot be ended");
            }
            let left = self.members();
            if left.is_empty() || tokio::time::Instant::now() >= end {
                return left;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// What the processes of this try used.
    pub fn usage(&self) -> Usage {
        let usage = self.outer.usage().unwrap_or_default();
        Usage {
            cpu: usage.cpu,
            peak_memory: usage.peak_memory,
        }
    }

    /// The job that holds what this try has to answer for.
    fn held(&self) -> &Job {
        match &self.inner {
            Some(inner) if self.spared => inner,
            _ => &self.outer,
        }
    }

    fn living(&self, job: &Job) -> Vec<Process> {
        let mut living = members(job).unwrap_or_else(|error| {
            tracing::warn!(%error, "the processes of a job cannot be listed");
            Vec::new()
        });
        living.retain(|process| !self.abandoned.contains(&process.pid));
        living
    }
}
