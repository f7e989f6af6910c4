//! One command line out of a program and its arguments, as most programs take it apart again.
//!
//! Windows hands a program one text. Source of the rules: CommandLineToArgvW and "Parsing C++ command-line arguments" of Microsoft's
//! documentation. Backslashes count only before a quote, where they are doubled.

use std::{
    ffi::{OsStr, OsString},
    os::windows::ffi::{OsStrExt, OsStringExt},
};

const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;

/// The whole command line. The program's name is always quoted: its own rules know no backslashes, and no quote can be in a path.
pub fn join(program: &OsStr, args: &[impl AsRef<OsStr>]) -> OsString {
    let mut line = vec![QUOTE];
    line.extend(program.encode_wide());
    line.push(QUOTE);
    for arg in args {
        line.push(u16::from(b' '));
        append(&mut line, arg.as_ref());
    }
    OsString::from_wide(&line)
}

fn append(line: &mut Vec<u16>, arg: &OsStr) {
    let units: Vec<u16> = arg.encode_wide().collect();
    let special =
        |unit: &u16| [u16::from(b' '), u16::from(b'\t'), u16::from(b'\n'), 0x0B, QUOTE].contains(unit);
    if !units.is_empty() && !units.iter().any(special) {
        line.extend(units);
        return;
    }
    line.push(QUOTE);
    let mut backslashes = 0;
    for unit in units {
        match unit {
            BACKSLASH => backslashes += 1,
            QUOTE => {
                line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1)); // those before it doubled, and one for the quote
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        line.push(unit);
    }
    line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
    line.push(QUOTE);
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
}
