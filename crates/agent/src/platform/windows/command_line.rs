//! One command line out of a program and its arguments, as most programs take it apart again; batch files go through cmd.

use crate::platform::{
    argv::{self, QUOTE},
    batch,
};
use std::{
    ffi::{OsStr, OsString},
    os::windows::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// Most characters of a command line, without the zero that ends it. Source: CreateProcessW.
const LONGEST: usize = 32_766;

/// The program that Windows starts for a step's program, and its command line. Errors are sentences for users.
pub fn of(program: &Path, args: &[OsString]) -> Result<(PathBuf, OsString), String> {
    if is_batch(program) {
        let unicode = |text: &OsStr| {
            let text = text.to_str().map(str::to_owned);
            text.ok_or_else(|| format!("{}: an argument is not Unicode", program.display()))
        };
        let args = args
            .iter()
            .map(|arg| unicode(arg))
            .collect::<Result<Vec<_>, _>>()?;
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let line = batch::line(&unicode(program.as_os_str())?, &args)?;
        let folder = win32::system::system_folder().map_err(|e| e.to_string())?;
        return Ok((folder.join("cmd.exe"), line.into()));
    }
    if let Some(i) = args
        .iter()
        .position(|arg| arg.encode_wide().any(|unit| unit == 0))
    {
        return Err(format!(
            "argument {} has a zero byte, which no argument can",
            i + 1
        ));
    }
    let line = join(program.as_os_str(), args);
    let len = line.encode_wide().count();
    if len > LONGEST {
        return Err(format!(
            "the command line is {len} characters, Windows takes {LONGEST}: put long values into files"
        ));
    }
    Ok((program.to_owned(), line))
}

/// Whether a step can be started with these arguments. Errors are sentences for users.
pub fn check_arguments(program: &Path, args: &[OsString]) -> Result<(), String> {
    of(program, args).map(drop)
}

/// Whether it is cmd that runs the program.
pub fn is_batch(program: &Path) -> bool {
    let ending = program.extension();
    ending.is_some_and(|e| e.eq_ignore_ascii_case("bat") || e.eq_ignore_ascii_case("cmd"))
}

/// The whole command line. The program's name is always quoted: its own rules know no backslashes, and no quote can be in a path.
pub fn join(program: &OsStr, args: &[impl AsRef<OsStr>]) -> OsString {
    let mut line = vec![QUOTE];
    line.extend(program.encode_wide());
    line.push(QUOTE);
    for arg in args {
        line.push(u16::from(b' '));
        argv::append(&mut line, &arg.as_ref().encode_wide().collect::<Vec<_>>());
    }
    OsString::from_wide(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AP-02.
    #[test]
    fn arguments_are_quoted_by_the_rules_of_programs() {
        let args = [r"C:\dir\", "", r#"say "hi""#, r#"a\\"b"#, "N=x y", r"x y\"];
        let line = join(OsStr::new(r"C:\Program Files\p.exe"), &args);
        let expected = r#""C:\Program Files\p.exe" C:\dir\ "" "say \"hi\"" "a\\\\\"b" "N=x y" "x y\\""#;
        assert_eq!(line, OsStr::new(expected));
    }

    /// AP-03.
    #[test]
    fn a_line_that_windows_would_refuse_is_refused_with_its_length() {
        let program = Path::new(r"C:\p.exe");
        let most = LONGEST - r#""C:\p.exe" "#.len();
        assert!(of(program, &["x".repeat(most).into()]).is_ok());
        let error = of(program, &["x".repeat(most + 1).into()]).unwrap_err();
        assert!(error.contains("32767") && error.contains("32766"), "{error}");
        assert!(of(program, &["a\0b".into()]).is_err());
    }

    /// AP-01.
    #[test]
    fn batch_files_go_through_the_cmd_of_the_system() {
        let (program, line) = of(Path::new(r"C:\a b\x.BAT"), &["1".into()]).unwrap();
        assert_eq!(program, win32::system::system_folder().unwrap().join("cmd.exe"));
        assert_eq!(line, r#"cmd.exe /d /e:on /v:off /s /c ""C:\a b\x.BAT" 1""#);
        assert!(of(Path::new(r"C:\x.cmd"), &["a&b".into()]).is_err());
        assert!(of(Path::new(r"C:\x.exe"), &["a&b".into()]).is_ok());
    }
}
