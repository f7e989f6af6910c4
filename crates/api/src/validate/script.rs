//! What only some shells have, and where a script file comes from.

use crate::{
    field::{Errors, Path},
    step::{ScriptFile, Step},
};

/// The shells that an execution policy and the codes of native programs mean something to.
const POWERSHELLS: [&str; 2] = ["powershell", "pwsh"];

pub(super) fn validate(step: &Step, path: &Path, errors: &mut Errors) {
    of_powershell(step, path, errors);
    if let Some(file) = &step.script_file {
        source(file, step.shell.as_deref(), &path.child("scriptFile"), errors);
    }
}

fn of_powershell(step: &Step, path: &Path, errors: &mut Errors) {
    let runs_script = step.script.is_some() || step.script_file.is_some() || step.check.is_some();
    let other = step.shell.as_deref().filter(|s| !POWERSHELLS.contains(s));
    for (set, field) in [
        (step.execution_policy.is_some(), "executionPolicy"),
        (step.native_errors.is_some(), "nativeErrors"),
    ] {
        let path = path.child(field);
        match (set, runs_script, other) {
            (false, ..) => {}
            (true, false, _) => {
                errors.forbidden(&path, "is for scripts of PowerShell, and this step has none")
            }
            (true, true, Some(shell)) => errors.forbidden(
                &path,
                format_args!("only powershell and pwsh have this; the shell is \"{shell}\""),
            ),
            (true, true, None) => {}
        }
    }
}

fn source(file: &ScriptFile, shell: Option<&str>, path: &Path, errors: &mut Errors) {
    let sources = [
        file.artifact.is_some(),
        file.config_map.is_some(),
        file.host_path.is_some(),
    ];
    if sources.iter().filter(|s| **s).count() != 1 {
        errors.invalid(path, "", "needs exactly one of artifact, configMap and hostPath");
        return;
    }
    let inside = path.child("path");
    match &file.host_path {
        None if file.path.is_empty() => errors.required(
            &inside,
            "the key of the ConfigMap, or the file within the artifact",
        ),
        None => {}
        Some(_) if !file.path.is_empty() => {
            errors.forbidden(&inside, "not beside hostPath, which is the whole path");
        }
        Some(host_path) => on_host(host_path, shell, &path.child("hostPath"), errors),
    }
}

fn on_host(file: &str, shell: Option<&str>, path: &Path, errors: &mut Errors) {
    if !is_absolute(file) {
        errors.invalid(
            path,
            file,
            "must be a full path, such as \"C:\\scripts\\x.ps1\" or \"/opt/x.sh\"",
        );
    }
    let endings: &[&str] = match shell {
        Some("powershell" | "pwsh") => &[".ps1"],
        Some("cmd") => &[".cmd", ".bat"],
        _ => return,
    };
    let name = file.to_ascii_lowercase();
    if !endings.iter().any(|ending| name.ends_with(ending)) {
        errors.invalid(
            path,
            file,
            format_args!(
                "must end with {}, or the shell does not run it",
                endings.join(" or ")
            ),
        );
    }
}

/// By the rules of Unix or of Windows: nobody knows yet which host it will be.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive = bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    path.starts_with('/') || path.starts_with("\\\\") || drive && matches!(bytes[2], b'\\' | b'/')
}
