//! The command line by which cmd runs a batch file.
//!
//! A batch file is no program: cmd runs it, and cmd has rules of its own. What it pastes in for `%1` it reads again as code, so there is no
//! quoting that holds for every batch file: arguments with characters that cmd acts on are refused. Source: `cmd /?`, and the advisories
//! on CVE-2024-24576, by which quoting alone was got around.

/// Most characters of a line that cmd reads. Source: "Command prompt line string limitation" of Microsoft's documentation.
const LONGEST: usize = 8191;

/// What makes cmd do something, also inside quotes or as soon as a batch file takes the quotes away.
const ACTS: &str = "\"%!&|<>^";

/// The command line: `/d` without AutoRun, `/e:on /v:off` whatever the registry says, `/s` so that only the outermost quotes go. `batch`
/// is an absolute path. Errors are sentences for users.
pub(super) fn line(batch: &str, args: &[&str]) -> Result<String, String> {
    if let Some(c) = batch.chars().find(|c| "\"%".contains(*c)) {
        return Err(format!(
            "{batch}: cmd takes a {c} in the path of a batch file for its own; rename it"
        ));
    }
    let name = batch.rsplit(['\\', '/']).next().unwrap_or(batch);
    let mut line = format!("cmd.exe /d /e:on /v:off /s /c \"\"{batch}\"");
    for (i, arg) in args.iter().enumerate() {
        if let Some(c) = arg.chars().find(|c| c.is_control() || ACTS.contains(*c)) {
            return Err(format!(
                "argument {} of {name} has a {c:?}, on which cmd, which runs it, may act: pass the value through env and read it as !NAME!",
                i + 1
            ));
        }
        line.push(' ');
        if !arg.is_empty()
            && arg
                .chars()
                .all(|c| c.is_alphanumeric() || "-_./\\:@#+".contains(c))
        {
            line.push_str(arg);
        } else {
            line.extend(["\"", arg, "\""]);
        }
    }
    line.push('"');
    let len = line.encode_utf16().count();
    if len > LONGEST {
        return Err(format!(
            "the command line of {name} is {len} characters, cmd takes {LONGEST}: put long values into files"
        ));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r"C:\my tools\report.cmd";

    #[test]
    fn plain_arguments_arrive_as_they_are() {
        assert_eq!(
            line(REPORT, &["a", "", "x y", "a,b;c=d", "(1)", r"C:\dir\", "grün"]).unwrap(),
            r#"cmd.exe /d /e:on /v:off /s /c ""C:\my tools\report.cmd" a "" "x y" "a,b;c=d" "(1)" C:\dir\ grün""#
        );
    }

    /// AP-01.
    #[test]
    fn an_argument_that_could_become_a_command_is_refused() {
        for arg in [
            "x\" & echo hit>%TEMP%\\hit & rem \"",
            "%PATH%",
            "!PATH!",
            "two\nlines",
            "a\rb",
            "a&b",
            "a|b",
            "a>b",
            "a<b",
            "a^b",
            "a\"b",
            "a\0b",
        ] {
            let error = line(REPORT, &["fine", arg]).unwrap_err();
            assert!(error.contains("argument 2 of report.cmd"), "{arg:?}: {error}");
        }
        assert!(line(r"C:\100%\report.cmd", &[]).is_err());
    }

    /// AP-03.
    #[test]
    fn a_line_that_cmd_would_cut_is_refused_with_its_length() {
        let empty = line(REPORT, &[""]).unwrap().len();
        let fits = "x y".repeat(3000)[..LONGEST - empty].to_owned();
        assert_eq!(line(REPORT, &[&fits]).unwrap().len(), LONGEST);
        let error = line(REPORT, &[&format!("{fits}x")]).unwrap_err();
        assert!(error.contains("8192") && error.contains("8191"), "{error}");
    }
}
