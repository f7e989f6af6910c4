//! One process of a step, from its start until nothing of it lives.
//!
//! Its end is the end of its main process; then its output is read until it is quiet, and what it left behind is ended (or spared,
//! if it set itself apart and may). When it must stop: preStop, the stop signal, the grace, then the end of the whole tree. After a
//! stop was asked for no exit code counts.

use super::{
    control::{Cause, Control, Halt},
    link::Link,
    pump::{Command, Masks, Pump},
    shell::Marks,
};
use crate::{
    crilog::Log,
    platform::{Ask, Exit, Group, Launch, Process, Usage},
};
use api::step::{OutputEncoding, StopSignal};
use std::{path::PathBuf, time::Duration};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// What may not even end after SIGKILL is not waited for longer than this.
pub(super) const ABANDON_AFTER: Duration = Duration::from_secs(30);

/// What to run.
pub(super) struct Execution {
    pub launch: Launch,
    pub signal: StopSignal,
    /// Whether its main process is ended as soon as it was asked to end: a shell that would go on with its next line.
    pub ends_when_asked: bool,
    /// Runs before the stop signal, for at most so long.
    pub pre_stop: Option<(Launch, Duration)>,
    pub encoding: OutputEncoding,
    pub allow_detached: bool,
    /// What its shell tells of the start, and how long that may take.
    pub begin: Option<(Marks, Duration)>,
    /// The try's own time limit.
    pub end: Option<Instant>,
    pub mask_file: PathBuf,
}

/// How it ended.
pub(super) struct Ended {
    /// `None` where even its main process could not be ended.
    pub exit: Option<Exit>,
    /// Set when it was stopped.
    pub halt: Option<Halt>,
    /// What lives on though it was ended.
    pub abandoned: Vec<Process>,
    /// What lives on because it may.
    pub detached: Vec<Process>,
    pub usage: Usage,
    /// How long its main process lived.
    pub lived: Duration,
    /// Whether it was ended because its shell had not begun in time.
    pub stuck: bool,
}

/// Why a process is not waited for any longer.
enum Over {
    Exited,
    Halted(Halt),
    Stuck,
}

/// Runs a process to its end. An error means that it was not started, and says why.
pub(super) async fn execute(
    mut group: Group,
    run: Execution,
    control: &Control,
    log: &mut Log,
    masks: &Masks,
    link: &Link,
) -> std::io::Result<Ended> {
    let started = group.start(&run.launch)?;
    let pid = started.pid;
    let pump = Pump::new(
        log,
        masks.clone(),
        run.mask_file.clone(),
        link.clone(),
        run.encoding,
    );
    let (tell, commands) = mpsc::unbounded_channel();
    let life = Life {
        group,
        pid,
        begun: Instant::now(),
        control,
        run: &run,
        tell,
    };
    let (ended, ()) = tokio::join!(life.live(), pump.run(started, commands));
    Ok(ended)
}

struct Life<'a> {
    group: Group,
    pid: u32,
    begun: Instant,
    control: &'a Control,
    run: &'a Execution,
    tell: mpsc::UnboundedSender<Command>,
}

impl Life<'_> {
    async fn live(mut self) -> Ended {
        let mut over = tokio::select! {
            biased;
            _ = self.group.exited(self.pid) => Over::Exited,
            halt = self.control.halted(self.run.end) => Over::Halted(halt),
            () = self.stuck() => Over::Stuck,
        };
        let lived = self.begun.elapsed();
        let mut detached = Vec::new();
        match &mut over {
            Over::Halted(halt) => {
                self.stop(halt).await;
                // what came while it was ending may allow even less afterwards
                if let Some(harder) = self.control.halt(None).filter(Halt::ends_all) {
                    halt.harden(harder);
                }
            }
            Over::Exited => {
                self.drained().await;
                detached = self.leave().await;
            }
            Over::Stuck => self.note("the shell did not begin the script; ended by force".to_owned()),
        }
        let abandoned = self.group.end(ABANDON_AFTER).await;
        for process in &abandoned {
            self.note(format!(
                "process {} ({}) cannot be ended",
                process.pid, process.name
            ));
        }
        let exit = self.group.exited(self.pid);
        let exit = tokio::time::timeout(Duration::from_secs(1), exit).await.ok();
        let _ = self.tell.send(Command::Finish);
        Ended {
            exit,
            stuck: matches!(over, Over::Stuck),
            halt: match over {
                Over::Halted(halt) => Some(halt),
                Over::Exited | Over::Stuck => None,
            },
            abandoned,
            detached,
            usage: self.group.usage(),
            lived,
        }
    }

    /// Waits until the shell has had its time to begin and did not.
    async fn stuck(&self) {
        if let Some((marks, limit)) = &self.run.begin {
            tokio::time::sleep(*limit).await;
            if !marks.has_begun() {
                return;
            }
        }
        std::future::pending().await
    }

    /// Waits until the output of the ended process has come.
    async fn drained(&self) {
        let (done, drained) = oneshot::channel();
        let _ = self.tell.send(Command::Drain(done));
        let _ = drained.await;
    }

    /// Sorts out what the process left behind: returns what may live on, the rest is about to be ended.
    async fn leave(&mut self) -> Vec<Process> {
        let left = self.group.members();
        if left.is_empty() {
            return Vec::new();
        }
        let spared = if self.run.allow_detached {
            self.group.set_apart()
        } else {
            Vec::new()
        };
        self.group.spare(&spared);
        let ended: Vec<_> = left.iter().filter(|p| !spared.contains(p)).collect();
        if !ended.is_empty() {
            let names: Vec<String> = ended.iter().map(|p| format!("{} ({})", p.pid, p.name)).collect();
            let what = if names.len() == 1 {
                "1 process"
            } else {
                &format!("{} processes", names.len())
            };
            self.note(format!(
                "the step left {what} behind, ended now: {}",
                names.join(", ")
            ));
        }
        spared
    }

    async fn stop(&mut self, halt: &Halt) {
        let begun = Instant::now();
        let over = self.control.grace_over(begun, halt.grace);
        tokio::pin!(over);
        let ask = Ask::of(self.run.signal);
        let Some(ask) = ask.filter(|_| halt.cause != Cause::Force && !halt.grace.is_zero()) else {
            self.note(format!("{}: {}; ended at once", halt.reason, halt.message));
            return;
        };
        self.note(format!(
            "{}: {}; asked to end ({}), ended by force in {} s",
            halt.reason,
            halt.message,
            ask.name(),
            halt.grace.as_secs()
        ));
        tokio::select! {
            () = self.pre_stop() => {}
            () = &mut over => return,
        }
        let asked_and_gone = async {
            if self.ask(ask).await {
                self.group.gone().await;
            }
        };
        tokio::select! {
            () = asked_and_gone => {}
            () = &mut over => self.note("the grace is over; ended by force".to_owned()),
        }
    }

    /// Asks the step to end, in another way where one cannot be taken; whether any could.
    async fn ask(&self, ask: Ask) -> bool {
        let mut next = Some(ask);
        while let Some(ask) = next {
            match self.group.ask(ask).await {
                Ok(()) => {
                    if self.run.ends_when_asked {
                        self.group.end_one(self.pid);
                    }
                    return true;
                }
                Err(error) => self.note(format!("{} could not be sent: {error}", ask.name())),
            }
            next = ask.fallback();
        }
        self.note("the step cannot be asked to end; ended at once".to_owned());
        false
    }

    async fn pre_stop(&mut self) {
        let Some((launch, limit)) = &self.run.pre_stop else {
            return;
        };
        match self.group.start(launch) {
            Ok(started) => {
                let pid = started.pid;
                let _ = self.tell.send(Command::Attach(started));
                if tokio::time::timeout(*limit, self.group.exited(pid))
                    .await
                    .is_err()
                {
                    self.note(format!("preStop took longer than {} s", limit.as_secs()));
                }
            }
            Err(error) => self.note(format!("preStop could not be started: {error}")),
        }
    }

    fn note(&self, text: String) {
        let _ = self.tell.send(Command::Note(text)); // the pump lives until it is told to finish
    }
}
