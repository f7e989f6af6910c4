//! PowerShell, both editions: a static wrapper runs the user's file with `&`.
//!
//! `-File` would dot-source the file, which a host whose policy sets a constrained language mode refuses for files it trusts, and an
//! encoded command would turn errors into XML. Windows PowerShell 5.1 reads a file without a mark in the ANSI code page.

use super::{Host, Invocation, Purpose, Script, Source, wrapper::Wrapper};
use api::step::{ExecutionPolicy, NativeErrors};
use std::ffi::OsString;

const STEP: Wrapper = Wrapper {
    name: "prow-step.ps1",
    text: include_str!("prow-step.ps1"),
};
const CHECK: Wrapper = Wrapper {
    name: "prow-check.ps1",
    text: include_str!("prow-check.ps1"),
};

/// Tells the language mode, also where no file may run.
const LANGUAGE_MODE: &str =
    "Set-Content -LiteralPath $env:PROW_MODE -Value $ExecutionContext.SessionState.LanguageMode";

/// Which PowerShell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edition {
    /// Windows PowerShell 5.1, `powershell`.
    Desktop,
    /// PowerShell 6 and later, `pwsh`.
    Core,
}

pub(super) fn prepare(host: &Host<'_>, edition: Edition, script: Script<'_>) -> Result<Invocation, String> {
    if edition == Edition::Desktop && !host.windows {
        return Err(
            "shell \"powershell\" is there on Windows only; this host has pwsh, bash, sh and python if installed"
                .to_owned(),
        );
    }
    // a file of the host may be held back by a policy, which code made from it would get around
    let checks = !matches!(script.source, Source::File(_));
    let file = match script.source {
        Source::Text(text) => {
            let text = text.trim_start_matches('\u{feff}');
            let mark = if edition == Edition::Desktop {
                "\u{feff}"
            } else {
                ""
            };
            script.write(".ps1", format!("{mark}{text}").as_bytes())?
        }
        Source::Bytes(bytes) => script.write(".ps1", bytes)?,
        Source::File(path) => path.to_owned(),
    };
    if !file.extension().is_some_and(|e| e.eq_ignore_ascii_case("ps1")) {
        return Err(format!(
            "{}: PowerShell runs files that end with .ps1",
            file.display()
        ));
    }
    let wrapper = match script.purpose {
        Purpose::Check => CHECK,
        Purpose::Script | Purpose::PreStop => STEP,
    };
    let wrapper = wrapper.place(host, script.folder)?;
    let marks = script.marks()?;
    let mut command = format!(
        "{LANGUAGE_MODE}; $global:LASTEXITCODE = 125; & {}",
        quoted(&wrapper.to_string_lossy())
    );
    for arg in &script.args {
        let arg = arg.to_str().ok_or("an argument is not Unicode")?;
        command.push(' ');
        command.push_str(&argument(arg));
    }
    command.push_str("; exit $LASTEXITCODE");
    let mut args: Vec<OsString> = [
        "-NoLogo",
        "-NoProfile",
        "-NonInteractive",
        "-OutputFormat",
        "Text",
    ]
    .map(OsString::from)
    .into();
    if host.windows {
        args.extend(["-ExecutionPolicy", policy(script.policy)].map(OsString::from));
    }
    args.extend(["-Command".into(), command.into()]);
    let mut env: Vec<(&str, OsString)> = vec![
        ("PROW_SCRIPT", file.into()),
        ("PROW_ERROR_ACTION", "Stop".into()),
        ("PROW_NATIVE_ERRORS", native(script.native_errors).into()),
        ("PROW_CHECKS", if checks { "yes" } else { "no" }.into()),
        ("PROW_MODE", marks.mode.clone().into()),
        ("PROW_BEGAN", marks.began.clone().into()),
    ];
    if !script.success.is_empty() {
        env.push(("PROW_NATIVE_OK", script.success.into()));
    }
    if host.windows && script.utf8 {
        env.push(("PROW_CODE_PAGE", "65001".into()));
    }
    Ok(Invocation {
        program: (host.find)(if edition == Edition::Desktop {
            "powershell"
        } else {
            "pwsh"
        })?,
        args,
        env,
        marks: Some(marks),
    })
}

fn policy(policy: ExecutionPolicy) -> &'static str {
    match policy {
        ExecutionPolicy::RemoteSigned => "RemoteSigned",
        ExecutionPolicy::AllSigned => "AllSigned",
        ExecutionPolicy::Bypass => "Bypass",
    }
}

fn native(errors: NativeErrors) -> &'static str {
    match errors {
        NativeErrors::Stop => "Stop",
        NativeErrors::Last => "Last",
        NativeErrors::Ignore => "Ignore",
    }
}

/// An argument as code: a parameter's name as it is, everything else as text.
fn argument(arg: &str) -> String {
    let name = arg.strip_prefix('-').unwrap_or_default();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name { arg.to_owned() } else { quoted(arg) }
}

/// A text in single quotes; to PowerShell there are five of them.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("'");
    for c in text.chars() {
        if matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}') {
            quoted.push(c);
        }
        quoted.push(c);
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Made, unix, windows};
    use super::*;
    use std::path::Path;

    fn command(made: &Made) -> &str {
        made.run.args.last().unwrap().to_str().unwrap()
    }

    /// EC-01: the code of the wrapper is that of the process, and one that never ran is not 0. IO-10: nothing is encoded.
    #[test]
    fn powershell_runs_the_untouched_file_by_a_static_wrapper() {
        let made = windows("powershell", |s| s.source = Source::Text("throw")).unwrap();
        let wrapper = made.path("prow-step.ps1").display().to_string();
        let expected =
            format!("{LANGUAGE_MODE}; $global:LASTEXITCODE = 125; & '{wrapper}'; exit $LASTEXITCODE");
        let switches =
            "-NoLogo -NoProfile -NonInteractive -OutputFormat Text -ExecutionPolicy RemoteSigned -Command";
        let args: Vec<_> = switches.split(' ').chain([expected.as_str()]).collect();
        assert_eq!(made.run.args, args, "IO-10: no encoded command, no -File");
        assert_eq!(made.run.program, Path::new("/shells/powershell"));
        assert_eq!(
            made.run.env[0],
            ("PROW_SCRIPT", made.path("script.ps1").into_os_string())
        );
    }

    /// IO-08.
    #[test]
    fn only_windows_powershell_gets_a_mark() {
        for script in [
            "Write-Output 'prüfung ESPAÑA'",
            "\u{feff}Write-Output 'prüfung ESPAÑA'",
        ] {
            let text = "Write-Output 'prüfung ESPAÑA'";
            for (shell, expected) in [
                ("powershell", format!("\u{feff}{text}")),
                ("pwsh", text.to_owned()),
            ] {
                let made = windows(shell, |s| s.source = Source::Text(script)).unwrap();
                assert_eq!(made.file("script.ps1"), expected.as_bytes(), "{shell}");
            }
        }
        let signed = b"exit\r\n# SIG # \xff\r\n";
        let made = windows("powershell", |s| s.source = Source::Bytes(signed)).unwrap();
        assert_eq!(made.file("script.ps1"), signed, "byte for byte");
    }

    #[test]
    fn what_the_manifest_says_reaches_the_wrapper() {
        let made = windows("pwsh", |s| {
            s.policy = ExecutionPolicy::AllSigned;
            s.native_errors = NativeErrors::Ignore;
            s.utf8 = true;
            s.success = "1..7".to_owned();
        })
        .unwrap();
        assert!(made.run.args.contains(&"AllSigned".into()));
        assert!(made.run.env.contains(&("PROW_NATIVE_OK", "1..7".into())));
        assert!(made.run.env.contains(&("PROW_NATIVE_ERRORS", "Ignore".into())));
        assert!(made.run.env.contains(&("PROW_CODE_PAGE", "65001".into())));
        let made = windows("powershell", |s| s.purpose = Purpose::Check).unwrap();
        assert!(command(&made).contains("prow-check.ps1'"));
        let made = windows("powershell", |s| s.source = Source::File(Path::new("/d/x.ps1"))).unwrap();
        assert!(made.run.env.contains(&("PROW_CHECKS", "no".into())));
    }

    /// EC-03: PowerShell turns what programs say on stderr into errors as soon as a script redirects it.
    #[test]
    fn the_wrappers_redirect_nothing() {
        for wrapper in [STEP, CHECK] {
            let code = wrapper
                .text
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'));
            for line in code {
                let redirects = ["2>", "*>", ">&"].iter().any(|sign| line.contains(sign));
                assert!(!redirects, "{}: {line}", wrapper.name);
            }
        }
    }

    /// The marks of an earlier try say nothing about this one.
    #[test]
    fn marks_are_gone_before_the_start() {
        let made = windows("powershell", |s| {
            std::fs::write(s.folder.join("script.began"), "1").unwrap();
            std::fs::write(s.folder.join("script.mode"), "FullLanguage").unwrap();
        })
        .unwrap();
        let marks = made.run.marks.as_ref().unwrap();
        assert!(!marks.has_begun() && !marks.was_stopped());
        assert_eq!(marks.language_mode(), None);
        let of = |name: &str| made.run.env.iter().find(|(n, _)| *n == name).unwrap().1.clone();
        std::fs::write(of("PROW_MODE"), "\u{feff}ConstrainedLanguage\r\n").unwrap();
        assert_eq!(marks.language_mode().as_deref(), Some("ConstrainedLanguage"));
        std::fs::write(of("PROW_BEGAN"), "4711\r\n").unwrap();
        assert!(marks.has_begun() && !marks.was_stopped());
        std::fs::write(of("PROW_BEGAN"), "4711\r\nstopped\r\n").unwrap();
        assert!(marks.was_stopped());
    }

    /// An argument that could leave its quotes would be code.
    #[test]
    fn arguments_are_text_but_for_names_of_parameters() {
        let args = ["-Name", "it's", "’; exit 1 #", "-1", "$(whoami)", "-a;b", ""];
        let made = windows("powershell", |s| s.args = args.map(OsString::from).into()).unwrap();
        let expected = " -Name 'it''s' '’’; exit 1 #' '-1' '$(whoami)' '-a;b' ''; exit $LASTEXITCODE";
        assert!(command(&made).ends_with(expected), "{}", command(&made));
    }

    #[test]
    fn other_systems_have_no_execution_policy_and_no_windows_powershell() {
        let made = unix("pwsh").unwrap();
        assert!(!made.run.args.contains(&"-ExecutionPolicy".into()));
        assert!(unix("powershell").unwrap_err().contains("Windows only"));
    }
}
