//! A step: what it runs, in which shell, with which codes.

use super::{env, retry, script, text};
use crate::{
    JobSpec,
    data::Mount,
    exit_code::CodePattern,
    expr::Template,
    field::{Errors, Path, nearest},
    step::{ExitCodes, Step},
};

const SHELLS: [&str; 6] = ["powershell", "pwsh", "cmd", "bash", "sh", "python"];
/// Arguments after these are code of the shell, not data.
const COMMAND_SWITCHES: [&str; 7] = [
    "-c",
    "/c",
    "/k",
    "-command",
    "-commandwithargs",
    "-encodedcommand",
    "-e",
];

pub(super) fn validate(
    step: &Step,
    job: &JobSpec,
    path: &Path,
    steps: &text::Steps,
    outer: &env::Scope,
    errors: &mut Errors,
) {
    what_it_runs(step, path, errors);
    shell(step, path, errors);
    script::validate(step, path, errors);
    let scope = outer.with(step);
    arguments(step, path, steps, &scope, errors);
    scripts(step, job, path, errors);
    env::variables(&step.env, &path.child("env"), steps, errors);
    env::from(&step.env_from, &path.child("envFrom"), errors);
    mounts(&step.mounts, &path.child("mounts"), errors);
    if let Some(dir) = &step.working_dir {
        let path = path.child("workingDir");
        text::template(dir, &path, steps, errors);
        if step.shell.as_deref() == Some("cmd") && dir.replace('/', "\\").starts_with("\\\\") {
            errors.forbidden(
                &path,
                "cmd cannot start in a network folder and would go on in the Windows directory; begin the script with pushd, which maps it",
            );
        }
    }
    if let Some(when) = &step.when {
        text::condition(when, &path.child("when"), steps, errors);
    }
    retry::strategy(step.retry_strategy.as_ref(), &path.child("retryStrategy"), errors);
    if let Some(codes) = &step.exit_codes {
        exit_codes(codes, &path.child("exitCodes"), errors);
        let tries = |r: &Option<crate::retry::RetryStrategy>| r.as_ref().map_or(0, |r| r.limit);
        if codes.retry.as_ref().is_some_and(|r| !r.is_empty())
            && tries(&step.retry_strategy) == 0
            && tries(&job.retry_strategy) == 0
        {
            errors.forbidden(
                &path.child("exitCodes").child("retry"),
                "nothing is tried again while retryStrategy.limit is 0 on the step and on the Job; set a limit",
            );
        }
    }
}

fn what_it_runs(step: &Step, path: &Path, errors: &mut Errors) {
    let ways = [
        (!step.command.is_empty(), "command"),
        (step.script.is_some(), "script"),
        (step.script_file.is_some(), "scriptFile"),
    ];
    let set: Vec<&str> = ways
        .iter()
        .filter(|(set, _)| *set)
        .map(|(_, name)| *name)
        .collect();
    match set.as_slice() {
        [] if step.image.is_some() || step.check.is_some() && step.args.is_empty() => {}
        [] => errors.required(
            &path.child("command"),
            "a step needs one of command, script and scriptFile (or check alone, as an assertion)",
        ),
        [_] => {}
        [first, second, ..] => {
            errors.forbidden(
                &path.child(second),
                format_args!("not beside {first}; a step runs one thing"),
            );
        }
    }
    if step.command.first().is_some_and(|c| c.trim().is_empty()) {
        errors.required(&path.child("command").index(0), "the program to run");
    }
    if step.script.as_ref().is_some_and(|s| s.trim().is_empty()) {
        errors.required(&path.child("script"), "the script is empty");
    }
}

fn shell(step: &Step, path: &Path, errors: &mut Errors) {
    let Some(shell) = &step.shell else { return };
    let path = path.child("shell");
    if step.script.is_none() && step.check.is_none() && step.script_file.is_none() {
        errors.forbidden(
            &path,
            "a shell runs a script or a check, and this step has neither",
        );
    }
    if shell.contains("{0}") || SHELLS.contains(&shell.as_str()) {
        return;
    }
    let hint = nearest(shell, SHELLS)
        .map(|n| format!("; did you mean \"{n}\"?"))
        .unwrap_or_default();
    errors.invalid(
        &path,
        shell,
        format_args!(
            "unknown shell; known are {}, or a command with \"{{0}}\" in place of the script's path{hint}",
            SHELLS.join(", ")
        ),
    );
}

fn arguments(step: &Step, path: &Path, steps: &text::Steps, scope: &env::Scope, errors: &mut Errors) {
    for (i, word) in step.command.iter().enumerate() {
        let path = path.child("command").index(i);
        if word.contains("${{") {
            errors.forbidden(&path, "a command is no template; move what varies to args");
        }
        scope.expansion(word, &path, errors);
    }
    let all = step.command.iter().skip(1).chain(&step.args);
    let before = all.clone().take(step.command.len().saturating_sub(1)).last();
    let mut previous = before;
    for (i, arg) in step.args.iter().enumerate() {
        let path = path.child("args").index(i);
        text::template(arg, &path, steps, errors);
        let after_switch =
            previous.is_some_and(|p| COMMAND_SWITCHES.contains(&p.to_ascii_lowercase().as_str()));
        if after_switch && Template::parse(arg).is_ok_and(|t| !t.is_plain()) {
            errors.forbidden(
                &path,
                "the argument after a shell's command switch is code, and input may not become code; pass the value through env",
            );
        }
        scope.expansion(arg, &path, errors);
        previous = Some(arg);
    }
}

fn scripts(step: &Step, job: &JobSpec, path: &Path, errors: &mut Errors) {
    let pre_stop = step.pre_stop.as_ref().map(|p| &p.script);
    let ready = step.reboot.as_ref().and_then(|r| r.ready_check.as_ref());
    for (field, script) in [
        ("script", step.script.as_ref()),
        ("check", step.check.as_ref()),
        ("preStop", pre_stop),
        ("reboot.readyCheck", ready),
    ] {
        let Some(script) = script else { continue };
        let path = path.child(field);
        if script.contains("${{") {
            errors.forbidden(
                &path,
                "a script is no template; set a variable under env to the expression and read it in the script",
            );
        }
        if step.shell.as_deref() == Some("cmd") {
            cmd_variables(script, step, job, &path, errors);
        }
    }
}

/// `%X%` is pasted into a cmd script before it is parsed, so `& del` in a value would run.
fn cmd_variables(script: &str, step: &Step, job: &JobSpec, path: &Path, errors: &mut Errors) {
    let fed = |name: &str| {
        name.to_ascii_uppercase().starts_with("PROW_PARAM_")
            || job.env.iter().chain(&step.env).any(|e| {
                e.name.eq_ignore_ascii_case(name) && e.value.as_ref().is_some_and(|v| v.contains("${{"))
            })
    };
    let mut pieces = script.split('%').skip(1);
    while let Some(name) = pieces.next() {
        let name = name.split(':').next().unwrap_or(name);
        if fed(name) {
            errors.forbidden(
                path,
                format_args!(
                    "%{name}% is pasted before cmd reads the line, so its value could run; write !{name}!"
                ),
            );
            return;
        }
        // `%A%B%`: the sign that closed A opens nothing
        pieces.next();
    }
}

fn mounts(mounts: &[Mount], path: &Path, errors: &mut Errors) {
    for (i, mount) in mounts.iter().enumerate() {
        let path = path.index(i);
        let sources = [
            mount.secret.is_some(),
            mount.config_map.is_some(),
            mount.artifact.is_some(),
            mount.store_ref.is_some(),
        ];
        if sources.iter().filter(|s| **s).count() != 1 {
            errors.invalid(
                &path,
                "",
                "needs exactly one of secret, configMap, artifact and storeRef",
            );
        }
        relative(&mount.path, &path.child("path"), errors);
    }
}

/// A path that stays under the workspace, by Unix' and by Windows' rules.
pub(super) fn relative(text: &str, path: &Path, errors: &mut Errors) {
    let mut parts = text.split(['/', '\\']);
    if text.starts_with(['/', '\\']) || text.contains(':') || parts.any(|p| p == "..") {
        errors.invalid(
            path,
            text,
            "must lie under the workspace: relative, without \"..\" and \":\"",
        );
    }
}

fn exit_codes(codes: &ExitCodes, path: &Path, errors: &mut Errors) {
    let written = [
        ("success", &codes.success),
        ("warning", &codes.warning),
        ("skip", &codes.skip),
        ("retry", &codes.retry),
        ("reboot", &codes.reboot),
        ("fatal", &codes.fatal),
    ];
    let mut ranges: Vec<(&str, std::ops::RangeInclusive<u32>)> = Vec::new();
    for (class, patterns) in written {
        for (i, pattern) in patterns.iter().flatten().enumerate() {
            let path = path.child(class).index(i);
            let Some(range) = code(pattern, &path, errors) else {
                continue;
            };
            let clash = ranges
                .iter()
                .find(|(other, r)| *other != class && r.start() <= range.end() && range.start() <= r.end());
            if let Some((other, _)) = clash {
                errors.invalid(
                    &path,
                    pattern,
                    format_args!("is also in {other}; a code has one meaning"),
                );
            }
            ranges.push((class, range));
        }
    }
}

/// The range of a code pattern, reported where it is none.
pub(super) fn code(
    pattern: &CodePattern,
    path: &Path,
    errors: &mut Errors,
) -> Option<std::ops::RangeInclusive<u32>> {
    let range = pattern.range();
    if range.is_none() {
        errors.invalid(
            path,
            pattern,
            "must be an exit code from -2147483648 to 4294967295, hex such as \"0xC0000005\", or a range such as \"1-7\"",
        );
    }
    range
}
