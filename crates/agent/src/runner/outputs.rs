//! The files a step leaves values in: `PROW_OUTPUT` and `PROW_MASK`.
//!
//! PROW_OUTPUT holds `NAME=value` lines, and blocks `NAME<<END` … `END` for values of several lines. PROW_MASK holds one value a line.
//! Both are UTF-8, or UTF-16 with a byte order mark, or in the code page of the console, in which cmd writes; line ends LF or CRLF.

use crate::codepage::CodePage;
use encoding_rs::Encoding;
use std::collections::BTreeMap;

/// Most bytes of one step's outputs, names and values.
pub(super) const STEP_LIMIT: usize = 32 << 10;
/// Most bytes of all outputs of a task.
pub(super) const TASK_LIMIT: usize = 128 << 10;
const MOST: usize = 256;

/// What is wrong with an output file; users see it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error(
        "PROW_OUTPUT is neither UTF-8, nor UTF-16 with a byte order mark, nor in the console's code page {0}"
    )]
    Encoding(u16),
    #[error("PROW_OUTPUT line {0} is neither NAME=value nor NAME<<END")]
    Line(usize),
    #[error(
        "PROW_OUTPUT line {line}: \"{name}\" is no name: letters, digits, - and _, beginning with a letter or _, at most 63"
    )]
    Name { line: usize, name: String },
    #[error("PROW_OUTPUT line {line}: the block of {name} has no closing line \"{end}\"")]
    Unclosed { line: usize, name: String, end: String },
    #[error("PROW_OUTPUT holds {0} outputs; the limit is {MOST}")]
    TooMany(usize),
    #[error(
        "the outputs of {what} are {bytes} bytes; the limit is {limit}: leave files as artifacts instead"
    )]
    TooLarge {
        what: &'static str,
        bytes: usize,
        limit: usize,
    },
}

pub(super) type Outputs = BTreeMap<String, String>;

/// What a file was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Unicode,
    /// In the page of consoles, since it was nothing else: a guess, which the log tells.
    Console(CodePage),
}

/// Reads an output file; `taken` bytes are used by the task's other steps.
pub(super) fn parse(bytes: &[u8], oem: CodePage, taken: usize) -> Result<(Outputs, Written), Error> {
    let (text, written) = decode(bytes, oem).ok_or(Error::Encoding(oem.number()))?;
    let mut outputs = Outputs::new();
    let mut lines = text.lines().enumerate().map(|(i, l)| (i + 1, l));
    while let Some((line, content)) = lines.next() {
        if content.trim().is_empty() {
            continue;
        }
        let equals = content.find('=').unwrap_or(usize::MAX);
        let block = content.find("<<").unwrap_or(usize::MAX);
        let (name, value) = if equals < block {
            (&content[..equals], content[equals + 1..].to_owned())
        } else if block < equals {
            let (name, end) = (&content[..block], content[block + 2..].trim());
            let mut body = Vec::new();
            loop {
                match lines.next() {
                    Some((_, l)) if l == end && !end.is_empty() => break,
                    Some((_, l)) => body.push(l),
                    None => {
                        return Err(Error::Unclosed {
                            line,
                            name: name.to_owned(),
                            end: end.to_owned(),
                        });
                    }
                }
            }
            (name, body.join("\n"))
        } else {
            return Err(Error::Line(line));
        };
        if !is_name(name) {
            return Err(Error::Name {
                line,
                name: name.chars().take(80).collect(),
            });
        }
        outputs.insert(name.to_owned(), value);
    }
    if outputs.len() > MOST {
        return Err(Error::TooMany(outputs.len()));
    }
    let bytes = size(&outputs);
    let too_large = |what, bytes, limit| Err(Error::TooLarge { what, bytes, limit });
    if bytes > STEP_LIMIT {
        return too_large("the step", bytes, STEP_LIMIT);
    }
    if taken + bytes > TASK_LIMIT {
        return too_large("the task", taken + bytes, TASK_LIMIT);
    }
    Ok((outputs, written))
}

/// Bytes of names and values.
pub(super) fn size(outputs: &Outputs) -> usize {
    outputs.iter().map(|(n, v)| n.len() + v.len()).sum()
}

/// The values of a mask file; a last line not yet ended counts too.
pub(super) fn masks(bytes: &[u8], oem: CodePage) -> Vec<String> {
    let decoded = decode(bytes, oem).map(|(text, _)| text);
    let text = decoded.unwrap_or_else(|| String::from_utf8_lossy(bytes).into_owned());
    text.lines()
        .filter(|l| !l.is_empty())
        .map(str::to_owned)
        .collect()
}

fn decode(bytes: &[u8], oem: CodePage) -> Option<(String, Written)> {
    let (encoding, mark) = Encoding::for_bom(bytes).unwrap_or((encoding_rs::UTF_8, 0));
    match encoding.decode_without_bom_handling_and_without_replacement(&bytes[mark..]) {
        Some(text) => Some((text.into_owned(), Written::Unicode)),
        None if mark > 0 => None,
        None => Some((oem.decode(bytes)?, Written::Console(oem))),
    }
}

fn is_name(name: &str) -> bool {
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: u32 = 65001;

    fn read(bytes: &[u8]) -> Result<Outputs, Error> {
        parse(bytes, CodePage::of(UTF8), 0).map(|(outputs, written)| {
            assert_eq!(written, Written::Unicode);
            outputs
        })
    }

    fn pairs(text: &str) -> Result<Vec<(String, String)>, Error> {
        read(text.as_bytes()).map(|o| o.into_iter().collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn values_and_blocks_are_read() {
        let text = "a=1\r\nb=x=y<<z\n\nc<<END\none\n two\nEND\na=2\nd=\n";
        let expected = [
            pair("a", "2"),
            pair("b", "x=y<<z"),
            pair("c", "one\n two"),
            pair("d", ""),
        ];
        assert_eq!(pairs(text).unwrap(), expected);
    }

    #[test]
    fn marks_of_utf16_and_utf8_are_understood() {
        let le: Vec<u8> = "\u{feff}größe=漢\r\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert!(
            matches!(read(&le), Err(Error::Name { line: 1, .. })),
            "names are ASCII"
        );
        let le: Vec<u8> = "\u{feff}a=漢\r\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(read(&le).unwrap()["a"], "漢");
        assert_eq!(read("\u{feff}a=1".as_bytes()).unwrap()["a"], "1");
        assert_eq!(read(b"a=\xff"), Err(Error::Encoding(65001)));
    }

    /// What `cmd` appends with `echo >>` is in the page of its console.
    #[test]
    fn what_is_no_unicode_is_read_in_the_page_of_consoles_and_told() {
        let oem = CodePage::of(850);
        let (outputs, written) = parse(b"a=gr\x94\xe1e\r\n", oem, 0).unwrap();
        assert_eq!(outputs["a"], "größe");
        assert_eq!(written, Written::Console(oem));
        let (outputs, written) = parse("a=größe".as_bytes(), oem, 0).unwrap();
        assert_eq!((outputs["a"].as_str(), written), ("größe", Written::Unicode));
        let broken = [0xFF, 0xFE, b'a', 0, b'='];
        assert_eq!(parse(&broken, oem, 0), Err(Error::Encoding(850)));
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(pairs("a=1\nnonsense\n"), Err(Error::Line(2)));
        assert!(matches!(
            pairs("::prow output token=evil"),
            Err(Error::Name { line: 1, .. })
        ));
        assert!(matches!(
            pairs("a=1\nb<<EOT\nx\n"),
            Err(Error::Unclosed { line: 2, .. })
        ));
        assert!(matches!(pairs("b<<\nx\n"), Err(Error::Unclosed { .. })));
    }

    #[test]
    fn limits_hold_for_the_step_and_for_the_task() {
        let fits = format!("a={}", "x".repeat(STEP_LIMIT - 1));
        let of = |text: &str, taken| parse(text.as_bytes(), CodePage::of(UTF8), taken);
        assert!(of(&fits, 0).is_ok());
        assert!(of(&fits, TASK_LIMIT - STEP_LIMIT + 1).is_err());
        assert!(of(&format!("{fits}x"), 0).is_err());
        let many: String = (0..257).map(|i| format!("a{i}=\n")).collect();
        assert_eq!(pairs(&many), Err(Error::TooMany(257)));
    }

    #[test]
    fn a_mask_counts_before_its_line_ends() {
        assert_eq!(masks(b"one\r\n\ntw", CodePage::of(850)), ["one", "tw"]);
        assert_eq!(masks(b"gr\x94\xe1e\n", CodePage::of(850)), ["größe"]);
    }
}
