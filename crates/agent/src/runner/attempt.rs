//! One try of a step: check, values, mounts, the process itself, its outputs, the check again.

mod launch;
mod ready;
mod start;

use super::{
    environment::{Secrets, Unusable},
    exec::{Ended, Execution, execute},
    link::Answer,
    outputs, reboot,
    run::{Error, Run},
    shell::{self, Purpose, Source},
    step::{End, Failure},
    values::{self, Fetched},
};
use crate::{
    crilog::Log,
    journal::{List, RunRecord},
    local::{Value, WantedKind},
    platform::{self, Exit, Launch, Usage, Written},
};
use api::{
    exit_code,
    job::Mode,
    step::{ExitClass, RebootPolicy, Step, StopSignal},
    task::StepPhase,
};
use launch::{Prepared, What};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::Instant;

/// How a try, and with the last one its step, ended.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub phase: StepPhase,
    pub reason: String,
    pub message: String,
    pub exit: Option<Exit>,
    pub class: Option<ExitClass>,
    pub outputs: BTreeMap<String, String>,
    pub detached: Vec<String>,
    pub end: End,
}

impl Outcome {
    pub fn new(end: End) -> Self {
        Self {
            phase: StepPhase::Succeeded,
            reason: String::new(),
            message: String::new(),
            exit: None,
            class: None,
            outputs: BTreeMap::new(),
            detached: Vec::new(),
            end,
        }
    }
}

impl From<Unusable> for Outcome {
    fn from(error: Unusable) -> Self {
        Self::failed(error.reason, error.message)
    }
}

/// What a try may end with before its time: an outcome, or a journal that cannot be written.
enum Cut {
    Outcome(Box<Outcome>),
    Error(Error),
}

impl From<Outcome> for Cut {
    fn from(outcome: Outcome) -> Self {
        Cut::Outcome(Box::new(outcome))
    }
}

impl From<Unusable> for Cut {
    fn from(error: Unusable) -> Self {
        Outcome::from(error).into()
    }
}

impl From<Error> for Cut {
    fn from(error: Error) -> Self {
        Cut::Error(error)
    }
}

/// Runs the try. `log` is made at the first need and serves all tries; `spent` adds up.
pub(super) async fn run(
    mut attempt: Attempt<'_>,
    log: &mut Option<Log>,
    spent: &mut Usage,
) -> Result<Outcome, Error> {
    let outcome = match attempt.go(log, spent).await {
        Ok(outcome) => outcome,
        Err(Cut::Outcome(outcome)) => *outcome,
        Err(Cut::Error(error)) => return Err(error),
    };
    for written in attempt.mounted_secrets.drain(..) {
        if let Err(error) = written.remove() {
            tracing::warn!(%error, step = attempt.step.name, "a mounted secret stays until the workspace goes");
        }
    }
    Ok(outcome)
}

/// What a check says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Yes,
    No,
}

/// One try of a step.
pub(super) struct Attempt<'a> {
    run: &'a mut Run,
    list: List,
    place: usize,
    step: &'a Step,
    number: i32,
    folder: PathBuf,
    fetched: Fetched,
    /// When its own limit ends it.
    end: Option<Instant>,
    mounted_secrets: Vec<Written>,
}

impl<'a> Attempt<'a> {
    pub fn new(run: &'a mut Run, list: List, place: usize, step: &'a Step, number: i32) -> Self {
        let limit = step
            .timeout_seconds
            .map(|s| Duration::from_secs(s.unsigned_abs()));
        Self {
            folder: run.dir.step(place, &step.name),
            end: limit.map(|limit| Instant::now() + limit),
            run,
            list,
            place,
            step,
            number,
            fetched: Fetched::default(),
            mounted_secrets: Vec::new(),
        }
    }

    async fn go(&mut self, log: &mut Option<Log>, spent: &mut Usage) -> Result<Outcome, Cut> {
        let audit = self.run.spec.mode == Mode::Audit;
        if audit && self.step.check.is_none() {
            return Ok(Outcome::passed(StepPhase::Skipped, "NotAudited", String::new()));
        }
        let log = match log {
            Some(log) => log,
            None => log.insert(self.make_folder()?),
        };
        log.forget_lines();
        self.fetch(WantedKind::ConfigMap).await?;
        self.mount(WantedKind::ConfigMap)?;
        let acts =
            !self.step.command.is_empty() || self.step.script.is_some() || self.step.script_file.is_some();
        if let Some(check) = &self.step.check {
            let verdict = self.check(check, log, spent).await?;
            match verdict {
                Verdict::Yes if acts => {
                    return Ok(Outcome::passed(StepPhase::Skipped, "Compliant", String::new()));
                }
                Verdict::Yes => return Ok(Outcome::passed(StepPhase::Succeeded, "Compliant", String::new())),
                Verdict::No if audit => {
                    let message = "the check says that the host is not as desired".to_owned();
                    return Ok(Outcome::passed(StepPhase::Succeeded, "Drifted", message));
                }
                Verdict::No if !acts => {
                    let message =
                        "the check says that the host is not as desired, and the step has nothing to run"
                            .to_owned();
                    return Err(Outcome::failed("NotConverged", message).into());
                }
                Verdict::No => {}
            }
        }
        self.fetch(WantedKind::Secret).await?;
        self.mount(WantedKind::Secret)?;
        self.run.record(&RunRecord::StepStarted {
            list: self.list,
            place: self.place,
            name: self.step.name.clone(),
            attempt: self.number,
            restarts_host: reboot::policy(self.list, self.step) == RebootPolicy::SelfInitiated,
        })?;
        let ended = self.act(log, spent).await?;
        let silent = log.last_lines().next().is_none();
        let outcome = self.judge(ended, silent, log)?;
        if let (End::Passed, Some(check)) = (&outcome.end, &self.step.check)
            && !reboot::is_wanted(self.list, self.step, &outcome) // then it is asked after the restart
            && self.check(check, log, spent).await? == Verdict::No
        {
            let message = "the step ran, and the check still says that the host is not as desired".to_owned();
            return Ok(Outcome {
                exit: outcome.exit,
                outputs: outcome.outputs,
                ..Outcome::failed("NotConverged", message)
            });
        }
        Ok(outcome)
    }

    fn make_folder(&self) -> Result<Log, Cut> {
        let make = || {
            platform::create_private_dir(&self.folder)?;
            let path = self.run.dir.step_log(self.place, &self.step.name);
            Log::open(&path, self.run.options.max_log_bytes, self.run.clock.clone())
        };
        make().map_err(|e| Outcome::failed("StartFailed", format!("{}: {e}", self.folder.display())).into())
    }

    /// Gets what the step needs of one kind; waits for the agent for as long as the step may take.
    async fn fetch(&mut self, kind: WantedKind) -> Result<(), Cut> {
        let wanted = values::wanted(&self.run.spec, self.step, kind);
        if wanted.is_empty() {
            return Ok(());
        }
        let answer = loop {
            let answer = tokio::select! {
                answer = self.run.link.ask(&self.step.name, wanted.clone()) => answer,
                halt = self.run.control.halted(self.end) => return Err(Outcome::halted(halt).into()),
            };
            // what serves them may start later than this host
            let patient = self
                .run
                .resumed
                .as_ref()
                .is_some_and(|r| Instant::now() < r.until);
            if !(patient && matches!(answer, Answer::Missing { .. })) {
                break answer;
            }
        };
        match answer {
            Answer::Values { secrets, config_maps } => {
                self.fetched.secrets.extend(secrets);
                self.fetched.config_maps.extend(config_maps);
                self.run
                    .masks
                    .add(values::secrets_seen(&self.run.spec, self.step, &self.fetched));
                Ok(())
            }
            Answer::Missing { reason, message } => Err(Outcome::failed(&reason, message).into()),
        }
    }

    /// Puts Secrets or ConfigMaps into the workspace as files.
    fn mount(&mut self, kind: WantedKind) -> Result<(), Cut> {
        let root = self.run.dir.workspace();
        for mount in &self.step.mounts {
            let name = match kind {
                WantedKind::Secret => &mount.secret,
                WantedKind::ConfigMap => &mount.config_map,
            };
            let Some(name) = name else { continue };
            let missing = || Outcome::failed(values::unavailable(kind), format!("\"{name}\" does not exist"));
            let data: &BTreeMap<String, Value> = self.fetched.object(kind, name).ok_or_else(missing)?;
            for (key, value) in data {
                let path = Path::new(&mount.path).join(key);
                let written = platform::write_beneath(&root, &path, value.reveal());
                let written = written
                    .map_err(|e| Outcome::failed("StartFailed", format!("mount {}: {e}", path.display())))?;
                if kind == WantedKind::Secret {
                    self.mounted_secrets.push(written);
                }
            }
        }
        Ok(())
    }

    async fn check(&mut self, check: &str, log: &mut Log, spent: &mut Usage) -> Result<Verdict, Cut> {
        let what = What::Script(Source::Text(check), Purpose::Check);
        let prepared = self.launch(what, Secrets::Without)?;
        let ended = self.execute(prepared, None, self.shell(), log, spent).await?;
        if let Some(halt) = ended.halt {
            return Err(Outcome::halted(halt).into());
        }
        match ended.exit.map(|e| e.code) {
            Some(0) => Ok(Verdict::Yes),
            Some(1) => Ok(Verdict::No),
            code => {
                let code = code.map_or_else(|| "no code".to_owned(), |c| format!("exit code {c}"));
                Err(Outcome::failed(
                    "CheckFailed",
                    format!("the check ended with {code}; 0 means yes, 1 means no"),
                )
                .into())
            }
        }
    }

    async fn act(&mut self, log: &mut Log, spent: &mut Usage) -> Result<Ended, Cut> {
        let source = match (&self.step.script, &self.step.script_file) {
            (Some(script), _) => Some(Source::Text(script)),
            (None, Some(file)) => Some(self.script_file(file)?),
            (None, None) => None,
        };
        let (what, shell) = match source {
            Some(source) => (What::Script(source, Purpose::Script), self.shell()),
            None => (What::Command, None),
        };
        let prepared = self.launch(what, Secrets::With)?;
        let pre_stop = match &self.step.pre_stop {
            Some(pre) => {
                let what = What::Script(Source::Text(&pre.script), Purpose::PreStop);
                let launch = self.launch(what, Secrets::With)?.launch;
                Some((launch, Duration::from_secs(pre.timeout_seconds.unsigned_abs())))
            }
            None => None,
        };
        self.execute(prepared, pre_stop, shell, log, spent).await
    }

    /// The shell of the step's scripts.
    fn shell(&self) -> Option<&'a str> {
        Some(self.step.shell.as_deref().unwrap_or(platform::DEFAULT_SHELL))
    }

    async fn execute(
        &mut self,
        prepared: Prepared,
        pre_stop: Option<(Launch, Duration)>,
        shell: Option<&str>,
        log: &mut Log,
        spent: &mut Usage,
    ) -> Result<Ended, Cut> {
        if let Some(halt) = self.run.control.halt(self.end) {
            return Err(Outcome::halted(halt).into());
        }
        let refused = |e: std::io::Error| Outcome::failed("StartFailed", format!("resources.limits: {e}"));
        let mut group = self.run.containment.group(self.limits()).map_err(refused)?;
        let own = self.step.stop_signal;
        let signal = own.unwrap_or_else(|| shell::default_stop_signal(shell));
        if signal == StopSignal::Close {
            let refused = |e| Outcome::failed("StartFailed", format!("no desktop for its windows: {e}"));
            group = group.with_windows().map_err(refused)?;
        }
        let Prepared { launch, marks } = prepared;
        let program = launch.program.display().to_string();
        let limit = Duration::from_secs(self.run.options.shell_start_seconds);
        let execution = Execution {
            launch,
            begin: marks.clone().map(|marks| (marks, limit)),
            signal,
            ends_when_asked: shell::goes_on_when_asked(shell),
            pre_stop,
            encoding: self.step.output_encoding.unwrap_or_default(),
            allow_detached: self.step.allow_detached,
            end: self.end,
            mask_file: self.folder.join(MASK),
        };
        let ended = execute(
            group,
            execution,
            &self.run.control,
            log,
            &self.run.masks,
            &self.run.link,
        )
        .await;
        let ended = ended.map_err(|e| {
            let hint = platform::start_hint(&e);
            Outcome::failed(
                "StartFailed",
                format!("{program} could not be started: {e}{hint}"),
            )
        })?;
        spent.cpu += ended.usage.cpu;
        spent.peak_memory = spent.peak_memory.max(ended.usage.peak_memory);
        self.run.containment.spare(&ended.detached);
        self.run.containment.abandon(&ended.abandoned);
        if ended.abandoned.is_empty() {
            let why = marks.and_then(|marks| self.never_began(&ended, &marks, shell));
            return why.map_or(Ok(ended), |outcome| Err(outcome.into()));
        }
        let names: Vec<String> = ended
            .abandoned
            .iter()
            .map(|p| format!("{} ({})", p.pid, p.name))
            .collect();
        let mut outcome = Outcome::failed(
            "Abandoned",
            format!("these processes cannot be ended: {}", names.join(", ")),
        );
        if let End::Failed(failure) = &mut outcome.end {
            *failure = Failure {
                abandoned: true,
                ..failure.clone()
            };
        }
        Err(outcome.into())
    }

    /// What the end of the step's process means. `silent` if it printed nothing.
    fn judge(&mut self, ended: Ended, silent: bool, log: &mut Log) -> Result<Outcome, Cut> {
        let detached = ended
            .detached
            .iter()
            .take(64)
            .map(|p| format!("{} {}", p.pid, p.name))
            .collect();
        if let Some(halt) = ended.halt {
            return Ok(Outcome::halted(halt));
        }
        let Some(exit) = ended.exit else {
            return Ok(Outcome::failed(
                "Abandoned",
                "the end of the process was not seen".to_owned(),
            ));
        };
        let class = self
            .step
            .exit_codes
            .clone()
            .unwrap_or_default()
            .classify(exit.code);
        if let Some(why) = platform::never_began(exit.code, ended.lived)
            && silent
            && class == ExitClass::Failure
        {
            let message = format!("exit code {}: {why}", exit_code::describe(exit.code));
            return Ok(Outcome {
                exit: Some(exit),
                class: Some(class),
                ..Outcome::failed("StartFailed", message)
            });
        }
        if matches!(class, ExitClass::Success | ExitClass::Warning) && self.was_stopped() {
            let code = exit_code::describe(exit.code);
            let message = format!(
                "a program's exit code {code} ended the script before its end: use Invoke-Native with -Ok, or nativeErrors: Last"
            );
            return Ok(Outcome {
                exit: Some(exit),
                class: Some(class),
                ..Outcome::failed("NativeError", message)
            });
        }
        let mut outcome = Outcome::of_exit(exit, class);
        let file = std::fs::read(self.folder.join(OUTPUT)).unwrap_or_default();
        let oem = self.run.masks.pages.oem;
        match outputs::parse(&file, oem, self.run.output_bytes(&self.step.name)) {
            Ok((found, written)) => {
                if let outputs::Written::Console(page) = written {
                    let page = page.number();
                    log.note(&format!(
                        "PROW_OUTPUT is no UTF-8: read in the console's code page {page}"
                    ));
                }
                let masked = found
                    .into_iter()
                    .map(|(name, value)| (name, self.run.masks.text(&value)));
                outcome.outputs = masked.collect();
            }
            // of a step that failed anyway, the failure is what matters
            Err(error) if matches!(outcome.end, End::Passed | End::NotApplicable) => {
                outcome = Outcome {
                    exit: outcome.exit,
                    ..Outcome::failed("OutputInvalid", error.to_string())
                };
            }
            Err(_) => {}
        }
        outcome.detached = detached;
        Ok(outcome)
    }
}

const OUTPUT: &str = "output.env";
const MASK: &str = "mask";
