//! One try of a step: check, values, mounts, the process itself, its outputs, the check again.

use super::{
    environment::{Environment, Secrets, Unusable},
    exec::{Ended, Execution, execute},
    link::Answer,
    outputs,
    run::{Error, Run},
    scope,
    shell::{self, Purpose},
    step::{End, Failure},
    values::{self, Fetched},
};
use crate::{
    crilog::Log,
    journal::{List, RunRecord},
    local::{Value, WantedKind},
    platform::{self, Exit, Launch, Limits, Usage, Written},
};
use api::{
    expr::{Scope, Template},
    job::Mode,
    step::{ExitClass, Step},
    task::StepPhase,
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
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
        let acts = !self.step.command.is_empty() || self.step.script.is_some();
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
        })?;
        let ended = self.act(log, spent).await?;
        let outcome = self.judge(ended)?;
        if let (End::Passed, Some(check)) = (&outcome.end, &self.step.check)
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
        let answer = tokio::select! {
            answer = self.run.link.ask(&self.step.name, wanted) => answer,
            halt = self.run.control.halted(self.end) => return Err(Outcome::halted(halt).into()),
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
        let launch = self.launch(What::Script(check, Purpose::Check), Secrets::Without)?;
        let ended = self.execute(launch, None, log, spent).await?;
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
        let what = match &self.step.script {
            Some(script) => What::Script(script, Purpose::Script),
            None => What::Command,
        };
        let launch = self.launch(what, Secrets::With)?;
        let pre_stop = match &self.step.pre_stop {
            Some(pre) => {
                let launch = self.launch(What::Script(&pre.script, Purpose::PreStop), Secrets::With)?;
                Some((launch, Duration::from_secs(pre.timeout_seconds.unsigned_abs())))
            }
            None => None,
        };
        self.execute(launch, pre_stop, log, spent).await
    }

    async fn execute(
        &mut self,
        launch: Launch,
        pre_stop: Option<(Launch, Duration)>,
        log: &mut Log,
        spent: &mut Usage,
    ) -> Result<Ended, Cut> {
        if let Some(halt) = self.run.control.halt(self.end) {
            return Err(Outcome::halted(halt).into());
        }
        let refused = |e: std::io::Error| Outcome::failed("StartFailed", format!("resources.limits: {e}"));
        let group = self.run.containment.group(self.limits()).map_err(refused)?;
        let program = launch.program.display().to_string();
        let execution = Execution {
            launch,
            signal: self
                .step
                .stop_signal
                .unwrap_or_else(|| shell::default_stop_signal(self.step.shell.as_deref())),
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
            return Ok(ended);
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

    /// What the end of the step's process means.
    fn judge(&mut self, ended: Ended) -> Result<Outcome, Cut> {
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
        let mut outcome = Outcome::of_exit(exit, class);
        let file = std::fs::read(self.folder.join(OUTPUT)).unwrap_or_default();
        match outputs::parse(&file, self.run.output_bytes(&self.step.name)) {
            Ok(found) => {
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

    fn limits(&self) -> Limits {
        let limits = self.step.resources.as_ref().map(|r| &r.limits);
        let of = |name: &str| limits.and_then(|l| l.get(name));
        Limits {
            memory: of("memory").and_then(api::quantity::Quantity::value),
            cpu_milli: of("cpu").and_then(api::quantity::Quantity::milli),
        }
    }

    /// Puts a process together: environment, folder, program, arguments.
    fn launch(&self, what: What<'_>, secrets: Secrets) -> Result<Launch, Cut> {
        let scope = scope::of(self.run);
        let fields = self.fields();
        let env = self.environment(secrets, &fields, &scope)?;
        let failed = |message: String| Cut::from(Outcome::failed("StartFailed", message));
        let dir = self.working_dir(&scope).map_err(failed)?;
        let (program, args, further) = match what {
            What::Command => {
                let words = self.step.command.iter().chain(&self.step.args);
                let mut words = words
                    .map(|w| env.argument(w))
                    .collect::<Result<Vec<_>, _>>()
                    .map_err(failed)?;
                let name = words.remove(0);
                let name = name
                    .to_str()
                    .ok_or_else(|| failed("the program's name is not UTF-8".to_owned()))?;
                let program = platform::find_program(name, env.path(), &dir).map_err(failed)?;
                (program, words, Vec::new())
            }
            What::Script(script, purpose) => {
                let shell = self.step.shell.as_deref();
                let run = shell::prepare(shell, script, purpose, &self.folder, env.path()).map_err(failed)?;
                let mut args = run.args;
                if purpose == Purpose::Script {
                    for arg in &self.step.args {
                        args.push(env.argument(arg).map_err(failed)?);
                    }
                }
                (run.program, args, run.env)
            }
        };
        let mut env = env.into_vars();
        env.extend(further.into_iter().map(|(n, v)| (n.to_owned(), v)));
        for file in [OUTPUT, MASK] {
            let path = self.folder.join(file);
            platform::write_private(&path, b"").map_err(|e| failed(format!("{}: {e}", path.display())))?;
        }
        Ok(Launch {
            program,
            args,
            env,
            dir,
        })
    }

    fn working_dir(&self, scope: &Scope) -> Result<PathBuf, String> {
        let root = self.run.dir.workspace();
        let Some(dir) = &self.step.working_dir else {
            return Ok(root);
        };
        let dir = Template::parse(dir)
            .and_then(|t| t.render(scope))
            .map_err(|e| format!("workingDir: {e}"))?;
        let path = root.join(&dir);
        if path.is_dir() {
            Ok(path)
        } else {
            Err(format!("workingDir: there is no folder {}", path.display()))
        }
    }

    fn environment<'e>(
        &'e self,
        secrets: Secrets,
        fields: &'e BTreeMap<&'static str, String>,
        scope: &'e Scope,
    ) -> Result<Environment<'e>, Unusable> {
        let spec = &self.run.spec;
        let mut env = Environment::new(
            self.run.environment.clone(),
            &self.fetched,
            secrets,
            fields,
            scope,
        );
        env.params(&spec.params)?;
        // what is always set comes first, so that it can be referred to, and last, so that it cannot be replaced
        env.always(self.always());
        env.from(&spec.env_from)?;
        env.variables(&spec.env)?;
        env.from(&self.step.env_from)?;
        env.variables(&self.step.env)?;
        env.always(self.always());
        Ok(env)
    }

    fn fields(&self) -> BTreeMap<&'static str, String> {
        let task = &self.run.task;
        BTreeMap::from([
            ("metadata.name", task.name().to_owned()),
            ("metadata.namespace", task.namespace().to_owned()),
            ("metadata.uid", task.uid().to_owned()),
            ("spec.nodeName", task.spec.node_name.clone()),
        ])
    }

    fn always(&self) -> Vec<(&'static str, OsString)> {
        let (task, dir) = (&self.run.task, &self.run.dir);
        let spec = &task.spec;
        let window = spec
            .window_end
            .as_ref()
            .map(|t| t.0.to_string())
            .unwrap_or_default();
        let checkpoint = dir.data().checkpoint(&spec.job_ref.uid, spec.index);
        let mut vars: Vec<(&'static str, OsString)> = vec![
            ("CI", "true".into()),
            ("PROW_JOB", spec.job_ref.name.clone().into()),
            ("PROW_TASK", task.name().into()),
            ("PROW_TASK_UID", dir.uid().into()),
            ("PROW_STEP", self.step.name.clone().into()),
            ("PROW_NODE", spec.node_name.clone().into()),
            ("PROW_NODE_FQDN", self.run.fqdn.clone().into()),
            ("PROW_NAMESPACE", task.namespace().into()),
            ("PROW_TASK_INDEX", spec.index.to_string().into()),
            ("PROW_TASK_COUNT", spec.count.to_string().into()),
            ("PROW_ATTEMPT", spec.attempt.to_string().into()),
            ("PROW_WORKSPACE", dir.workspace().into()),
            ("PROW_CHECKPOINT", checkpoint.into()),
            ("PROW_WINDOW_END", window.into()),
            (
                "PROW_SCHEDULED_TIME",
                scope::annotation(self.run, scope::SCHEDULED_TIME).into(),
            ),
            ("PROW_OUTPUT", self.folder.join(OUTPUT).into()),
            ("PROW_MASK", self.folder.join(MASK).into()),
        ];
        let trace = scope::annotation(self.run, scope::TRACE);
        if !trace.is_empty() {
            vars.push(("TRACEPARENT", trace.into()));
        }
        vars
    }
}

const OUTPUT: &str = "output.env";
const MASK: &str = "mask";

/// What of a step is run.
#[derive(Clone, Copy)]
enum What<'a> {
    Command,
    Script(&'a str, Purpose),
}
