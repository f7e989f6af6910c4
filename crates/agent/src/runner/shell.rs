//! How a script is run: which program, which arguments, which file.

use crate::platform;
use api::step::StopSignal;
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// What a script is for; its file is named so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Script,
    Check,
    PreStop,
}

impl Purpose {
    fn file(self) -> &'static str {
        match self {
            Purpose::Script => "script",
            Purpose::Check => "check",
            Purpose::PreStop => "prestop",
        }
    }
}

/// A script ready to be started.
#[derive(Debug)]
pub(super) struct Invocation {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Further variables its shell needs.
    pub env: Vec<(&'static str, OsString)>,
}

const WRAPPER: &str = include_str!("shell/prow-step.ps1");
const CHECK_WRAPPER: &str = include_str!("shell/prow-check.ps1");

/// Writes the script into `folder` and says how to run it. Errors are sentences for users.
pub(super) fn prepare(
    shell: Option<&str>,
    script: &str,
    purpose: Purpose,
    folder: &Path,
    path: Option<&OsStr>,
) -> Result<Invocation, String> {
    let shell = shell.unwrap_or(platform::DEFAULT_SHELL);
    let write = |ending: &str, text: &str| {
        let file = folder.join(format!("{}{ending}", purpose.file()));
        platform::write_private(&file, text.as_bytes())
            .map_err(|e| format!("{}: {e}", file.display()))
            .map(|()| file)
    };
    let find =
        |name: &str| platform::find_shell(name, path, folder).map_err(|e| format!("shell \"{shell}\": {e}"));
    let plain = |names: &[&str], switches: &[&str], ending: &str| {
        let mut found = Err(String::new());
        for name in names {
            found = find(name);
            if found.is_ok() {
                break;
            }
        }
        let mut args: Vec<OsString> = switches.iter().map(OsString::from).collect();
        args.push(write(ending, script)?.into());
        Ok(Invocation {
            program: found?,
            args,
            env: Vec::new(),
        })
    };
    match shell {
        "sh" => plain(&["sh"], &["-e"], ".sh"),
        "bash" => plain(&["bash"], &["--noprofile", "--norc", "-eo", "pipefail"], ".sh"),
        "python" => plain(&["python3", "python"], &["-u"], ".py"),
        "pwsh" => {
            let file = write(".ps1", script)?;
            let wrapper = folder.join("prow.ps1");
            let text = if purpose == Purpose::Check {
                CHECK_WRAPPER
            } else {
                WRAPPER
            };
            platform::write_private(&wrapper, text.as_bytes())
                .map_err(|e| format!("{}: {e}", wrapper.display()))?;
            let quoted = wrapper.display().to_string().replace('\'', "''");
            let command = format!("$global:LASTEXITCODE = 125; & '{quoted}'; exit $LASTEXITCODE");
            let switches = [
                "-NoLogo",
                "-NoProfile",
                "-NonInteractive",
                "-OutputFormat",
                "Text",
                "-Command",
            ];
            Ok(Invocation {
                program: find("pwsh")?,
                args: switches
                    .map(OsString::from)
                    .into_iter()
                    .chain([command.into()])
                    .collect(),
                env: vec![
                    ("PROW_SCRIPT", file.into()),
                    ("PROW_ERROR_ACTION", "Stop".into()),
                    ("PROW_NATIVE_ERRORS", "Stop".into()),
                ],
            })
        }
        "powershell" | "cmd" => Err(format!(
            "shell \"{shell}\" is there on Windows only; this host has pwsh, bash, sh and python if installed"
        )),
        template if template.contains("{0}") => {
            let file = write("", script)?;
            let mut words = split(template).into_iter();
            let program = words.next().unwrap_or_default();
            let args = words.map(|word| word.replace("{0}", &file.to_string_lossy()).into());
            Ok(Invocation {
                args: args.collect(),
                program: find(&program)?,
                env: Vec::new(),
            })
        }
        _ => Err(format!("unknown shell \"{shell}\"")),
    }
}

/// What a step is asked with to end, where its manifest does not say.
pub(super) fn default_stop_signal(shell: Option<&str>) -> StopSignal {
    match shell {
        Some("pwsh" | "powershell") => StopSignal::CtrlC,
        _ => StopSignal::CtrlBreak,
    }
}

/// Whether a shell goes on with the next line of its script when it was asked to end, unless it is ended itself.
pub(super) fn goes_on_when_asked(shell: Option<&str>) -> bool {
    shell == Some("cmd")
}

/// Words of a template; double quotes keep spaces together.
fn split(template: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None;
    let mut quoted = false;
    for c in template.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_with(String::new);
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_with(String::new).push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(shell: &str) -> (tempfile::TempDir, Result<Invocation, String>) {
        let folder = tempfile::tempdir().unwrap();
        let invocation = prepare(
            Some(shell),
            "echo hi\n",
            Purpose::Script,
            folder.path(),
            Some(OsStr::new("/usr/bin:/bin")),
        );
        (folder, invocation)
    }

    #[test]
    fn a_shell_gets_the_script_as_a_file() {
        let (folder, invocation) = prepared("bash");
        let invocation = invocation.unwrap();
        let file = folder.path().join("script.sh");
        let args: Vec<OsString> = ["--noprofile", "--norc", "-eo", "pipefail"]
            .map(OsString::from)
            .into();
        assert_eq!(invocation.args, [args, vec![file.clone().into()]].concat());
        assert_eq!(std::fs::read_to_string(file).unwrap(), "echo hi\n");
    }

    #[test]
    fn a_template_names_the_tool_and_where_the_script_goes() {
        let (folder, invocation) = prepared("env \"A=b c\" sh {0} --last");
        let file: OsString = folder.path().join("script").into();
        assert_eq!(
            invocation.unwrap().args,
            [OsString::from("A=b c"), "sh".into(), file, "--last".into()]
        );
    }

    /// PowerShell itself runs where it is installed; here only what it is given.
    #[test]
    fn powershell_runs_the_untouched_file_by_a_static_wrapper() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("pwsh");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = Some(folder.path().as_os_str());
        let script = "Write-Output 'prüfung'";
        let run = prepare(Some("pwsh"), script, Purpose::Script, folder.path(), path).unwrap();
        let file = folder.path().join("script.ps1");
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            script,
            "no BOM for pwsh, nothing added"
        );
        assert_eq!(run.env[0], ("PROW_SCRIPT", file.into()));
        let command = run.args.last().unwrap().to_str().unwrap();
        assert!(
            command.starts_with("$global:LASTEXITCODE = 125; & '")
                && command.ends_with("'; exit $LASTEXITCODE")
        );
    }

    #[test]
    fn what_this_host_cannot_run_says_so() {
        for (shell, hint) in [
            ("powershell", "Windows only"),
            ("fish", "unknown shell"),
            ("nosuchtool {0}", "no program"),
        ] {
            let error = prepared(shell).1.unwrap_err();
            assert!(error.contains(hint), "{shell}: {error}");
        }
    }
}
