//! How a script is run: which program, which arguments, which file.

mod cmd;
mod powershell;
mod wrapper;

use crate::{codepage::Pages, platform};
use api::step::{ExecutionPolicy, NativeErrors, StopSignal};
use powershell::Edition;
use std::{
    ffi::OsString,
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

/// Where a script comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// The manifest: it is written as its shell reads it best.
    Text(&'a str),
    /// A ConfigMap: byte for byte.
    Bytes(&'a [u8]),
    /// A file of the host.
    File(&'a Path),
}

/// A script, and what its step says about it.
pub(super) struct Script<'a> {
    /// The shell's name; the host's default without one.
    pub shell: Option<&'a str>,
    pub source: Source<'a>,
    pub purpose: Purpose,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The step's own folder, for files.
    pub folder: &'a Path,
    /// Whether the step is to speak UTF-8.
    pub utf8: bool,
    pub policy: ExecutionPolicy,
    pub native_errors: NativeErrors,
    /// Exit codes of programs that are no errors though they are not 0, as `1..7,3010..3010`.
    pub success: String,
}

impl Script<'_> {
    /// Writes the script's file.
    fn write(&self, ending: &str, bytes: &[u8]) -> Result<PathBuf, String> {
        let file = self.folder.join(format!("{}{ending}", self.purpose.file()));
        platform::write_private(&file, bytes)
            .map_err(|e| format!("{}: {e}", file.display()))
            .map(|()| file)
    }

    /// Where its shell leaves marks; those of an earlier try are gone.
    fn marks(&self) -> Result<Marks, String> {
        let marks = Marks::of(self.folder, self.purpose);
        for mark in [&marks.mode, &marks.began] {
            match std::fs::remove_file(mark) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(format!("{}: {e}", mark.display()));
                }
                _ => {}
            }
        }
        Ok(marks)
    }

    /// The script's file for a shell that takes any.
    fn any_file(&self, ending: &str) -> Result<PathBuf, String> {
        match self.source {
            Source::Text(text) => self.write(ending, text.as_bytes()),
            Source::Bytes(bytes) => self.write(ending, bytes),
            Source::File(path) => Ok(path.to_owned()),
        }
    }
}

/// What a script needs to know of the host.
pub(super) struct Host<'a> {
    pub windows: bool,
    pub pages: Pages,
    /// The folder of our own program.
    pub installed: Option<PathBuf>,
    /// Finds the program of a shell; an error is a sentence for users.
    pub find: &'a dyn Fn(&str) -> Result<PathBuf, String>,
}

/// A script ready to be started.
#[derive(Debug)]
pub(super) struct Invocation {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Further variables its shell needs.
    pub env: Vec<(&'static str, OsString)>,
    /// What its shell tells, if it can.
    pub marks: Option<Marks>,
}

/// Files by which a shell tells how far it came.
#[derive(Clone, Debug)]
pub(super) struct Marks {
    /// There as soon as the shell runs anything: its language mode.
    mode: PathBuf,
    /// There as soon as our wrapper runs.
    began: PathBuf,
}

/// The word in the second mark of a script that a program's exit code ended before its time.
const STOPPED: &str = "stopped";

impl Marks {
    /// Those of a step's script.
    pub fn of(folder: &Path, purpose: Purpose) -> Self {
        let mark = |ending: &str| folder.join(format!("{}.{ending}", purpose.file()));
        Self {
            mode: mark("mode"),
            began: mark("began"),
        }
    }

    /// Whether the script was begun.
    pub fn has_begun(&self) -> bool {
        self.began.exists()
    }

    /// Whether a program's exit code ended the script.
    pub fn was_stopped(&self) -> bool {
        std::fs::read_to_string(&self.began).is_ok_and(|text| text.lines().any(|line| line.trim() == STOPPED))
    }

    /// The shell's language mode, if it came so far.
    pub fn language_mode(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.mode).ok()?;
        let mode = text.trim_start_matches('\u{feff}').trim().to_owned();
        (!mode.is_empty()).then_some(mode)
    }
}

/// Writes the files of the script into its folder and says how to run it. Errors are sentences for users.
pub(super) fn prepare(host: &Host<'_>, script: Script<'_>) -> Result<Invocation, String> {
    let shell = script.shell.unwrap_or(platform::DEFAULT_SHELL);
    match shell {
        "sh" => plain(host, &["sh"], &["-e"], ".sh", script),
        "bash" => {
            let switches = ["--noprofile", "--norc", "-eo", "pipefail"];
            plain(host, &["bash"], &switches, ".sh", script)
        }
        "python" => plain(host, &["python3", "python"], &["-u"], ".py", script),
        "pwsh" => powershell::prepare(host, Edition::Core, script),
        "powershell" => powershell::prepare(host, Edition::Desktop, script),
        "cmd" => cmd::prepare(host, script),
        template if template.contains("{0}") => {
            let file = script.any_file("")?;
            let mut words = split(template).into_iter();
            let program = words.next().unwrap_or_default();
            let words = words.map(|word| word.replace("{0}", &file.to_string_lossy()).into());
            Ok(Invocation {
                args: words.chain(script.args).collect(),
                program: (host.find)(&program)?,
                env: Vec::new(),
                marks: None,
            })
        }
        _ => Err(format!("unknown shell \"{shell}\"")),
    }
}

/// A shell that takes its script's path after its switches, then the arguments.
fn plain(
    host: &Host<'_>,
    names: &[&str],
    switches: &[&str],
    ending: &str,
    script: Script<'_>,
) -> Result<Invocation, String> {
    let mut program = Err(String::new());
    for name in names {
        program = (host.find)(name);
        if program.is_ok() {
            break;
        }
    }
    let mut args: Vec<OsString> = switches.iter().map(OsString::from).collect();
    args.push(script.any_file(ending)?.into());
    args.extend(script.args);
    Ok(Invocation {
        program: program?,
        args,
        env: Vec::new(),
        marks: None,
    })
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
    use crate::codepage::CodePage;

    /// A script made ready in a folder of its own.
    #[derive(Debug)]
    pub(super) struct Made {
        folder: tempfile::TempDir,
        pub run: Invocation,
    }

    impl Made {
        pub fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        pub fn file(&self, name: &str) -> Vec<u8> {
            std::fs::read(self.path(name)).unwrap()
        }
    }

    fn made(shell: &str, windows: bool, change: impl FnOnce(&mut Script<'_>)) -> Result<Made, String> {
        let folder = tempfile::tempdir().unwrap();
        let host = Host {
            windows,
            pages: Pages {
                oem: CodePage::of(437),
                ansi: CodePage::of(1252),
            },
            installed: None,
            find: &|name| match name {
                "nosuchtool" => Err(format!("there is no program \"{name}\"")),
                _ => Ok(Path::new("/shells").join(name)),
            },
        };
        let mut script = Script {
            shell: Some(shell),
            source: Source::Text("echo hi\n"),
            purpose: Purpose::Script,
            args: Vec::new(),
            folder: folder.path(),
            utf8: false,
            policy: ExecutionPolicy::default(),
            native_errors: NativeErrors::default(),
            success: String::new(),
        };
        change(&mut script);
        let run = prepare(&host, script)?;
        Ok(Made { folder, run })
    }

    /// As Windows would have it, on any system.
    pub(super) fn windows(shell: &str, change: impl FnOnce(&mut Script<'_>)) -> Result<Made, String> {
        made(shell, true, change)
    }

    pub(super) fn unix(shell: &str) -> Result<Made, String> {
        made(shell, false, |_| {})
    }

    #[test]
    fn a_shell_gets_the_script_as_a_file_then_the_arguments() {
        let made = made("bash", false, |s| s.args = vec!["one".into()]).unwrap();
        let args: Vec<OsString> = ["--noprofile", "--norc", "-eo", "pipefail"]
            .map(OsString::from)
            .into();
        let file: OsString = made.path("script.sh").into();
        assert_eq!(made.run.args, [args, vec![file, "one".into()]].concat());
        assert_eq!(made.file("script.sh"), b"echo hi\n");
    }

    #[test]
    fn a_template_names_the_tool_and_where_the_script_goes() {
        let made = unix("env \"A=b c\" sh {0} --last").unwrap();
        let file: OsString = made.path("script").into();
        assert_eq!(
            made.run.args,
            [OsString::from("A=b c"), "sh".into(), file, "--last".into()]
        );
    }

    #[test]
    fn what_this_host_cannot_run_says_so() {
        for (shell, hint) in [
            ("powershell", "Windows only"),
            ("cmd", "Windows only"),
            ("fish", "unknown shell"),
            ("nosuchtool {0}", "no program"),
        ] {
            let error = unix(shell).unwrap_err();
            assert!(error.contains(hint), "{shell}: {error}");
        }
    }
}
