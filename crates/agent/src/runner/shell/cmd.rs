//! cmd: a batch file that is `call`ed, so that its code is kept.
//!
//! cmd reads a batch file in the code page of its console, looks for labels by counting bytes up to CRLF, and takes `% ^ & !` in the path
//! after `call` for its own. Delayed expansion is on, so that values reach a script as `!NAME!`, after the line was taken apart.

use super::{Host, Invocation, Script, Source, wrapper::Wrapper};
use crate::codepage::CodePage;
use std::path::Path;

const WRAPPER: Wrapper = Wrapper {
    name: "prow-step.cmd",
    text: include_str!("prow-step.cmd"),
};
const UTF8: &str = "65001";
/// Taken for its own by cmd in what follows `call`.
const ACTS: &str = "%^&!";

pub(super) fn prepare(host: &Host<'_>, script: Script<'_>) -> Result<Invocation, String> {
    if !host.windows {
        return Err("shell \"cmd\" is there on Windows only; this host has bash and sh".to_owned());
    }
    let file = match script.source {
        Source::Text(text) => script.write(".cmd", &bytes(text, script.utf8, host.pages.oem)?)?,
        Source::Bytes(bytes) => script.write(".cmd", bytes)?,
        Source::File(path) => path.to_owned(),
    };
    if !file
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("cmd") || e.eq_ignore_ascii_case("bat"))
    {
        return Err(format!(
            "{}: cmd runs files that end with .cmd or .bat",
            file.display()
        ));
    }
    let program = WRAPPER.place(host, script.folder)?;
    for path in [&program, &file] {
        check_path(path)?;
    }
    let mut env = vec![("PROW_SCRIPT", file.into())];
    if script.utf8 {
        env.push(("PROW_CODE_PAGE", UTF8.into()));
    }
    Ok(Invocation {
        program,
        args: script.args,
        env,
        marks: None,
    })
}

fn check_path(path: &Path) -> Result<(), String> {
    match path.to_string_lossy().chars().find(|c| ACTS.contains(*c)) {
        None => Ok(()),
        Some(c) => Err(format!(
            "{}: cmd takes a {c} in the path of a script for its own; give the agent a data folder without {ACTS}, or use another shell",
            path.display()
        )),
    }
}

/// The text as cmd can read it: line ends CRLF, in the console's code page without loss, or in UTF-8 where that is asked for.
fn bytes(text: &str, utf8: bool, oem: CodePage) -> Result<Vec<u8>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let text = text.replace("\r\n", "\n").replace('\n', "\r\n");
    if utf8 {
        return Ok(text.into_bytes());
    }
    oem.encode(&text).map_err(|at| {
        let line = text[..at].matches('\n').count() + 1;
        let c = text[at..].chars().next().unwrap_or_default();
        format!(
            "line {line} of the script has \"{c}\", which the console's code page {} does not have; set outputEncoding: utf8",
            oem.number()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Made, windows};
    use super::*;

    fn cmd(script: &'static str, utf8: bool) -> Result<Made, String> {
        windows("cmd", |s| {
            s.source = Source::Text(script);
            s.utf8 = utf8;
        })
    }

    #[test]
    fn a_static_wrapper_calls_the_file() {
        let made = windows("cmd", |s| s.args = vec!["a b".into()]).unwrap();
        assert_eq!(made.run.program, made.path("prow-step.cmd"));
        assert_eq!(made.run.args, ["a b"]);
        assert_eq!(
            made.run.env,
            [("PROW_SCRIPT", made.path("script.cmd").into_os_string())]
        );
    }

    /// AP-10: whatever the manifest had, labels are found, at any distance.
    #[test]
    fn line_ends_are_those_of_windows() {
        for text in ["goto done\n:done\n", "goto done\r\n:done\r\n"] {
            let made = cmd(text, false).unwrap();
            assert_eq!(made.file("script.cmd"), b"goto done\r\n:done\r\n");
        }
    }

    #[test]
    fn text_is_in_the_page_of_the_console_or_refused_with_its_line() {
        let made = cmd("\u{feff}echo prüfung\n", false).unwrap();
        assert_eq!(made.file("script.cmd"), b"echo pr\x81fung\r\n", "code page 437");
        let error = cmd("echo 1\necho ☃\n", false).unwrap_err();
        assert!(
            error.contains("line 2") && error.contains("☃") && error.contains("437"),
            "{error}"
        );
        let made = cmd("echo ☃\n", true).unwrap();
        assert_eq!(made.file("script.cmd"), "echo ☃\r\n".as_bytes());
        assert_eq!(made.run.env[1], ("PROW_CODE_PAGE", "65001".into()));
    }

    #[test]
    fn a_file_of_a_config_map_stays_as_it_is() {
        let made = windows("cmd", |s| s.source = Source::Bytes(b"@echo \xff\n")).unwrap();
        assert_eq!(made.file("script.cmd"), b"@echo \xff\n");
    }

    #[test]
    fn a_path_that_cmd_would_change_is_refused() {
        for path in ["/d/100%/x.cmd", "/d/a&b/x.cmd", "/d/a^b/x.cmd", "/d/wow!/x.cmd"] {
            let error = windows("cmd", |s| s.source = Source::File(Path::new(path))).unwrap_err();
            assert!(error.contains("data folder without"), "{error}");
        }
        assert!(windows("cmd", |s| s.source = Source::File(Path::new("/d/(1) a/x.BAT"))).is_ok());
        assert!(windows("cmd", |s| s.source = Source::File(Path::new("/d/x.txt"))).is_err());
    }
}
