//! The runner process: takes the task's folder, reads what is to be done, does it, and leaves the result in the journal.

use super::{
    Identity, Options,
    control::Control,
    link::Link,
    outputs,
    pump::Masks,
    reboot::Resumed,
    status::{has_begun, status_from_journal},
    walk::{self, Walked},
};
use crate::{
    journal::{self, Entry, Restart, RunRecord, Writer},
    layout::{self, TaskDir},
    platform::{self, Containment, Process},
};
use api::{
    JobSpec, Task,
    clock::Clock,
    task::{StepStatus, TaskPhase, TaskStatus},
    work::Work,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use std::{collections::BTreeMap, ffi::OsString, fs::File, io, path::Path, sync::Arc, time::Duration};
use tokio::time::Instant;

/// Room kept on the disk for the journal: outputs and status of a task fit in.
const RESERVED: u64 = 512 << 10;

/// Why a runner did nothing. After [`RunRecord::RunnerStarted`] was written there are no errors but a journal that cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another runner holds the folder. It will report; a retry does not help.
    #[error("another runner holds this task")]
    Held,
    /// A runner took the task before, so steps may have run. A retry never helps.
    #[error("this task was run before; it is not run again")]
    RanBefore,
    /// Asked to recover a task that never began or has finished.
    #[error("there is nothing to recover")]
    NothingToRecover,
    /// Processes of the earlier run cannot be ended; nothing may run beside them. A retry may help.
    #[error("processes of the earlier run cannot be ended: {0:?}")]
    Survivors(Vec<Process>),
    /// The folder is not usable.
    #[error(transparent)]
    Folder(#[from] layout::Error),
    /// The journal is not usable.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What it said.
        source: io::Error,
    },
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::System { what, source }
}

/// Runs the task of a folder. Call it on the process's main thread, which must live until the process ends: its children die with it.
pub fn run(folder: &Path) -> Result<(), Error> {
    platform::detach_from_session().map_err(system("leaving the session"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("starting"))?;
    runtime.block_on(async {
        let task = TaskDir::of(folder)?;
        let lock = hold(&task).await?;
        let mut run = Run::take(task, lock, platform::clock()).await?;
        let walked = match run.unreadable.take() {
            Some(message) => Walked::Finished(walk::Finish::failed("WorkUnreadable", message)),
            None => walk::walk(&mut run).await?,
        };
        match walked {
            Walked::Finished(finish) => run.finish(finish).await,
            Walked::Restart { step, under_way } => run.suspend(step, under_way).await,
        }
    })
}

/// Takes the folder. A runner that died while it started a process leaves its lock with that child until the kernel has ended it, so
/// a held lock is tried again for a moment.
async fn hold(task: &TaskDir) -> Result<File, Error> {
    let end = tokio::time::Instant::now() + Duration::from_secs(1);
    loop {
        match platform::lock(&task.lock()).map_err(system("locking the folder"))? {
            Some(lock) => return Ok(lock),
            None if tokio::time::Instant::now() >= end => return Err(Error::Held),
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// A task being run.
pub(super) struct Run {
    pub dir: TaskDir,
    pub task: Task,
    pub spec: JobSpec,
    pub options: Options,
    pub clock: Arc<dyn Clock>,
    pub link: Link,
    pub control: Control,
    pub containment: Containment,
    pub masks: Masks,
    pub environment: BTreeMap<String, OsString>,
    /// The host's full name.
    pub fqdn: String,
    /// What is known of the task so far.
    pub status: TaskStatus,
    /// Set after a restart of the host.
    pub resumed: Option<Resumed>,
    begun: Instant,
    worked_before: Duration,
    journal: Writer<RunRecord>,
    unreadable: Option<String>,
    _lock: File,
}

impl Run {
    async fn take(dir: TaskDir, lock: File, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let options = Options::load(&dir).map_err(system("reading runner.json"))?;
        let (mut journal, records) = Writer::<RunRecord>::open(&dir.run_journal(), clock.clone())?;
        let recovered = records
            .iter()
            .any(|e| matches!(e.record, RunRecord::Recovering { .. }));
        let over = recovered || status_from_journal(&records).phase.is_terminal();
        let boot_id = platform::boot_id().map_err(system("reading the boot id"))?;
        let goes_on = options
            .resume
            .then(|| super::reboot::going_on(&records, &boot_id))
            .flatten();
        match (&options.recover, has_begun(&records)) {
            (None, true) if goes_on.is_none() => return Err(Error::RanBefore),
            (None, false) if options.resume => return Err(Error::NothingToRecover),
            (Some(_), begun) if !begun || over => return Err(Error::NothingToRecover),
            _ => {}
        }
        if options.recover.is_some() {
            end_earlier(&dir, &records).await?;
        }
        let (link, orders) =
            Link::open(&dir, options.renewed_at).map_err(system("listening for the agent"))?;
        let containment = Containment::new(dir.uid(), options.control_groups)
            .map_err(system("taking hold of child processes"))?;
        journal.reserve(RESERVED);
        journal.append(&RunRecord::RunnerStarted {
            runner: Identity::of(std::process::id()).map_err(system("identifying this process"))?,
            containment: containment.name().map(str::to_owned),
        })?;
        if let Some(recover) = &options.recover {
            journal.append(&RunRecord::Recovering {
                reason: recover.reason.clone(),
                message: recover.message.clone(),
            })?;
        }
        if let Some(goes_on) = &goes_on {
            goes_on.note(&mut journal, &boot_id)?;
        }
        let records = journal::read(&dir.run_journal())?;
        let (task, spec, unreadable) = match read_work(&dir) {
            Ok((task, spec)) => (task, spec, None),
            Err(message) => (
                Task::new("", api::TaskSpec::default()),
                JobSpec::default(),
                Some(message),
            ),
        };
        let seconds = |n: i64| Duration::from_secs(n.unsigned_abs());
        let resumed = goes_on
            .as_ref()
            .map(|goes_on| Resumed::after(&goes_on.restart, &spec));
        let worked_before =
            goes_on.map_or(Duration::ZERO, |g| Duration::from_millis(g.restart.worked_millis));
        let control = Control::new(
            orders,
            task.spec.fence_seconds.map(seconds),
            seconds(spec.termination_grace_period_seconds),
            seconds(spec.task_timeout_seconds),
        );
        Ok(Self {
            control,
            link,
            containment,
            masks: Masks::new(platform::code_pages()),
            environment: platform::base_environment(),
            fqdn: platform::fqdn(),
            status: status_from_journal(&records),
            resumed,
            begun: Instant::now(),
            worked_before,
            dir,
            task,
            spec,
            options,
            clock,
            journal,
            unreadable,
            _lock: lock,
        })
    }

    /// Writes a record and tells the agent.
    pub fn record(&mut self, record: &RunRecord) -> Result<(), Error> {
        self.journal.append(record)?;
        let now = self.now();
        super::status::apply(&mut self.status, record, &now);
        self.link.progress();
        Ok(())
    }

    pub fn now(&self) -> MicroTime {
        MicroTime(self.clock.now())
    }

    /// What is known of a step so far.
    pub fn step(&self, name: &str) -> Option<&StepStatus> {
        self.status.steps.iter().find(|s| s.name == name)
    }

    /// Bytes of all outputs so far, but for one step's.
    pub fn output_bytes(&self, but: &str) -> usize {
        let others = self.status.steps.iter().filter(|s| s.name != but);
        others.map(|s| outputs::size(&s.outputs)).sum()
    }

    /// How much of the task's time is left; that of a restart does not count.
    pub fn time_left(&self) -> Duration {
        let limit = Duration::from_secs(self.spec.task_timeout_seconds.unsigned_abs());
        limit.saturating_sub(self.worked_before)
    }

    /// The host is ready: from now on time counts again.
    pub fn go_on(&mut self) {
        self.begun = Instant::now();
        self.control.go_on(self.time_left());
    }

    /// Ends what still lives and leaves word that the work goes on after a restart of the host. The workspace stays.
    async fn suspend(mut self, step: String, under_way: bool) -> Result<(), Error> {
        let left = self.containment.rest().end(super::exec::ABANDON_AFTER).await;
        if !left.is_empty() {
            tracing::warn!(?left, "these processes do not end; the restart will end them");
        }
        let worked = self.worked_before + self.begun.elapsed();
        self.record(&RunRecord::RebootRequested(Restart {
            step,
            boot_id: platform::boot_id().map_err(system("reading the boot id"))?,
            under_way,
            worked_millis: u64::try_from(worked.as_millis()).unwrap_or(u64::MAX),
        }))?;
        self.journal.sync()?;
        self.journal.release();
        Ok(())
    }

    /// Ends what still lives, clears up, and writes the last record.
    async fn finish(mut self, mut finish: walk::Finish) -> Result<(), Error> {
        let left = self.containment.rest().end(super::exec::ABANDON_AFTER).await;
        if !left.is_empty() {
            let names: Vec<String> = left.iter().map(|p| format!("{} ({})", p.pid, p.name)).collect();
            finish.phase = TaskPhase::Failed;
            finish.reason = "Abandoned".into();
            finish.message = format!("these processes cannot be ended: {}", names.join(", "));
        }
        for folder in [self.dir.workspace(), self.dir.temp()] {
            if let Err(error) = platform::remove_tree(&folder) {
                tracing::warn!(%error, path = %folder.display(), "a folder of the steps stays");
            }
        }
        let record = RunRecord::Finished {
            phase: finish.phase,
            reason: finish.reason,
            message: super::step::cut(self.masks.text(&finish.message)),
            fatal: finish.fatal,
            retry_code: finish.retry_code,
            outputs: finish.outputs,
        };
        self.record(&record)?;
        self.journal.sync()?;
        self.journal.release();
        Ok(())
    }
}

/// Ends what an earlier runner left: rollback must not run beside it.
async fn end_earlier(dir: &TaskDir, records: &[Entry<RunRecord>]) -> Result<(), Error> {
    let containment = records.iter().find_map(|e| match &e.record {
        RunRecord::RunnerStarted { containment, .. } => containment.as_deref(),
        _ => None,
    });
    let left = platform::end_survivors(dir.uid(), containment, super::exec::ABANDON_AFTER).await;
    if left.is_empty() {
        Ok(())
    } else {
        Err(Error::Survivors(left))
    }
}

fn read_work(dir: &TaskDir) -> Result<(Task, JobSpec), String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
    let task: Task = serde_json::from_str(&read(&dir.task_json())?).map_err(|e| format!("task.json: {e}"))?;
    let spec = Work::read(&read(&dir.job_json())?, &task.spec.job_ref.work_hash)
        .map_err(|e| format!("job.json: {e}"))?;
    Ok((task, spec))
}
