//! Arguments in one command line, as programs take it apart again.
//!
//! Windows hands a program one text. Source of the rules: CommandLineToArgvW and "Parsing C++ command-line arguments" of Microsoft's
//! documentation. Backslashes count only before a quote, where they are doubled.

pub(super) const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;
const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;

/// Appends an argument, in quotes where it needs them. It holds no zero.
pub(super) fn append(line: &mut Vec<u16>, arg: &[u16]) {
    let special = |unit: &u16| [SPACE, TAB, u16::from(b'\n'), 0x0B, QUOTE].contains(unit);
    if !arg.is_empty() && !arg.iter().any(special) {
        line.extend(arg);
        return;
    }
    line.push(QUOTE);
    let mut backslashes = 0;
    for unit in arg {
        match *unit {
            BACKSLASH => backslashes += 1,
            QUOTE => {
                line.extend(std::iter::repeat_n(BACKSLASH, backslashes + 1)); // those before it doubled, and one for the quote
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        line.push(*unit);
    }
    line.extend(std::iter::repeat_n(BACKSLASH, backslashes));
    line.push(QUOTE);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The documented rules, word by word: 2n backslashes and a quote are n backslashes and a quote that begins or ends a quoted part,
    /// 2n+1 and a quote are n backslashes and a quote of the text, all other backslashes are themselves. In a quoted part, two quotes
    /// are one of the text.
    fn parse(line: &[u16]) -> Vec<Vec<u16>> {
        let (mut args, mut arg, mut quoted, mut at) = (Vec::new(), None::<Vec<u16>>, false, 0);
        while at < line.len() {
            let backslashes = line[at..].iter().take_while(|u| **u == BACKSLASH).count();
            at += backslashes;
            let next = line.get(at).copied();
            if next == Some(QUOTE) {
                let text = arg.get_or_insert_with(Vec::new);
                text.extend(std::iter::repeat_n(BACKSLASH, backslashes / 2));
                at += 1;
                if backslashes % 2 == 1 {
                    text.push(QUOTE);
                } else if quoted && line.get(at) == Some(&QUOTE) {
                    text.push(QUOTE);
                    at += 1;
                } else {
                    quoted = !quoted;
                }
                continue;
            }
            if backslashes > 0 {
                arg.get_or_insert_with(Vec::new)
                    .extend(std::iter::repeat_n(BACKSLASH, backslashes));
                continue;
            }
            at += 1;
            match next {
                Some(SPACE | TAB) if !quoted => args.extend(arg.take()),
                unit => arg.get_or_insert_with(Vec::new).extend(unit),
            }
        }
        args.extend(arg);
        args
    }

    fn units(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn line(args: &[Vec<u16>]) -> Vec<u16> {
        let mut line = Vec::new();
        for arg in args {
            line.push(SPACE);
            append(&mut line, arg);
        }
        line
    }

    /// AP-02: the examples of the documentation, so that the reference itself is right.
    #[test]
    fn the_reference_reads_what_is_documented() {
        for (written, read) in [
            (r#""abc" d e"#, &["abc", "d", "e"][..]),
            (r#"a\\b d"e f"g h"#, &[r"a\\b", "de fg", "h"]),
            (r#"a\\\"b c d"#, &[r#"a\"b"#, "c", "d"]),
            (r#"a\\\\"b c" d e"#, &[r"a\\b c", "d", "e"]),
            (r#"a"b"" c d"#, &[r#"ab" c d"#]),
        ] {
            let read: Vec<_> = read.iter().map(|t| units(t)).collect();
            assert_eq!(parse(&units(written)), read, "{written}");
        }
    }

    proptest! {
        /// AP-02: every argument arrives exactly.
        #[test]
        fn what_is_written_is_read_again(args in prop::collection::vec(r#"[\\\\" \t\nax漢;&%]{0,8}"#, 0..6)) {
            let args: Vec<_> = args.iter().map(|a| units(a)).collect();
            prop_assert_eq!(parse(&line(&args)), args);
        }

        /// Halves of surrogate pairs, which are no text, as well.
        #[test]
        fn any_units_are_read_again(arg in prop::collection::vec(1..=u16::MAX, 0..20)) {
            let args = vec![arg];
            prop_assert_eq!(parse(&line(&args)), args);
        }
    }
}
