//! Puts a process of a step together: program, arguments, environment, folder, limits.

use super::{Attempt, Cut, MASK, OUTPUT, Outcome};
use crate::{
    local::WantedKind,
    platform::{self, Launch, Limits},
    runner::{
        environment::{Environment, Secrets, Unusable},
        scope,
        shell::{self, Host, Invocation, Marks, Purpose, Script, Source},
        values,
    },
};
use api::{
    expr::{Scope, Template},
    step::{ExecutionPolicy, ExitClass, OutputEncoding, ScriptFile, Step},
};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// What of a step is run.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    Command,
    Script(Source<'a>, Purpose),
}

/// A process ready to be started.
pub(super) struct Prepared {
    pub launch: Launch,
    /// What its shell tells of the start, if it can.
    pub marks: Option<Marks>,
}

/// What the host's default shell may not have is refused, and so is a signature that this system does not look at.
fn only_powershell_has(step: &Step, shell: &str) -> Result<(), String> {
    let powershell = matches!(shell, "powershell" | "pwsh");
    for (set, field) in [
        (step.execution_policy.is_some(), "executionPolicy"),
        (step.native_errors.is_some(), "nativeErrors"),
    ] {
        if set && !powershell {
            return Err(format!(
                "{field}: only powershell and pwsh have this; the shell here is \"{shell}\""
            ));
        }
    }
    if step.execution_policy == Some(ExecutionPolicy::AllSigned) && !cfg!(windows) {
        return Err("executionPolicy: AllSigned: PowerShell looks at signatures on Windows only".to_owned());
    }
    Ok(())
}

/// The codes of programs that are no errors, as the wrapper reads them.
fn success(step: &Step) -> String {
    let classes = step.exit_codes.clone().unwrap_or_default().classes();
    let good = |class: &ExitClass| matches!(class, ExitClass::Success | ExitClass::Warning);
    let ranges = classes
        .iter()
        .filter(|(_, class, _)| good(class))
        .flat_map(|(_, _, codes)| codes.iter().filter_map(api::exit_code::CodePattern::range));
    ranges
        .map(|r| format!("{}..{}", r.start(), r.end()))
        .collect::<Vec<_>>()
        .join(",")
}

impl Attempt<'_> {
    pub(super) fn limits(&self) -> Limits {
        let limits = self.step.resources.as_ref().map(|r| &r.limits);
        let of = |name: &str| limits.and_then(|l| l.get(name));
        Limits {
            memory: of("memory").and_then(api::quantity::Quantity::value),
            cpu_milli: of("cpu").and_then(api::quantity::Quantity::milli),
        }
    }

    /// Puts a process together: environment, folder, program, arguments.
    pub(super) fn launch(&self, what: What<'_>, secrets: Secrets) -> Result<Prepared, Cut> {
        let scope = scope::of(self.run);
        let fields = self.fields();
        let mut env = self.environment(secrets, &fields, &scope)?;
        let failed = |message: String| Cut::from(Outcome::failed("StartFailed", message));
        let dir = self.working_dir(&scope).map_err(failed)?;
        let (program, args, marks) = match what {
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
                (
                    platform::find_program(name, env.path(), &dir).map_err(failed)?,
                    words,
                    None,
                )
            }
            What::Script(source, purpose) => {
                let run = self.script(source, purpose, &env).map_err(failed)?;
                env.always(run.env);
                (run.program, run.args, run.marks)
            }
        };
        platform::check_folder(&program, &dir).map_err(failed)?;
        platform::check_arguments(&program, &args).map_err(failed)?;
        let env = env.into_vars();
        platform::check_environment(&env).map_err(failed)?;
        for file in [OUTPUT, MASK] {
            let path = self.folder.join(file);
            platform::write_private(&path, b"").map_err(|e| failed(format!("{}: {e}", path.display())))?;
        }
        Ok(Prepared {
            launch: Launch {
                program,
                args,
                env,
                dir,
            },
            marks,
        })
    }

    /// Where the script file of the step is.
    pub(super) fn script_file<'f>(&'f self, file: &'f ScriptFile) -> Result<Source<'f>, Cut> {
        let failed =
            |message: String| Cut::from(Outcome::failed("StartFailed", format!("scriptFile: {message}")));
        if let Some(name) = &file.config_map {
            let kind = WantedKind::ConfigMap;
            let missing = || {
                Outcome::failed(
                    values::unavailable(kind),
                    format!("ConfigMap \"{name}\" has no key \"{}\"", file.path),
                )
            };
            let value = self.fetched.key(kind, name, &file.path).ok_or_else(missing)?;
            return Ok(Source::Bytes(value.reveal()));
        }
        let path = Path::new(file.host_path.as_deref().unwrap_or_default());
        if !path.is_absolute() {
            return Err(failed(format!("{} is no full path on this host", path.display())));
        }
        if !path.is_file() {
            return Err(failed(format!("there is no file {}", path.display())));
        }
        Ok(Source::File(path))
    }

    fn script(
        &self,
        source: Source<'_>,
        purpose: Purpose,
        env: &Environment<'_>,
    ) -> Result<Invocation, String> {
        let step = self.step;
        let shell = step.shell.as_deref().unwrap_or(platform::DEFAULT_SHELL);
        only_powershell_has(step, shell)?;
        let args = match purpose {
            Purpose::Script => step
                .args
                .iter()
                .map(|a| env.argument(a))
                .collect::<Result<_, _>>()?,
            Purpose::Check | Purpose::PreStop => Vec::new(),
        };
        let find = |name: &str| {
            platform::find_shell(name, env.path(), &self.folder)
                .map_err(|e| format!("shell \"{shell}\": {e}"))
        };
        let host = Host {
            windows: cfg!(windows),
            pages: platform::code_pages(),
            installed: std::env::current_exe()
                .ok()
                .and_then(|program| program.parent().map(Path::to_owned)),
            find: &find,
        };
        let script = Script {
            shell: step.shell.as_deref(),
            source,
            purpose,
            args,
            folder: &self.folder,
            utf8: step.output_encoding == Some(OutputEncoding::Utf8),
            policy: step.execution_policy.unwrap_or_default(),
            native_errors: step.native_errors.unwrap_or_default(),
            success: success(step),
        };
        shell::prepare(&host, script)
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
        vars.extend(
            platform::TEMP_VARIABLES
                .iter()
                .map(|name| (*name, dir.temp().into())),
        );
        let trace = scope::annotation(self.run, scope::TRACE);
        if !trace.is_empty() {
            vars.push(("TRACEPARENT", trace.into()));
        }
        vars
    }
}
