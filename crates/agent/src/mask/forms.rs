//! The forms in which a secret may be printed, as bytes.
//!
//! As text, of each of its lines longer than two characters: plain, JSON-escaped (also with `\/` and with non-ASCII as `\u`), URL-escaped
//! (the usual sets, upper and lower hex, space as `+`). Of the whole, with line ends LF and CRLF: plain. Of both: base64 and base64url in
//! each of the three alignments it may have inside a larger text (also wrapped at 76 and 64 columns), of its bytes in each encoding.
//!
//! As bytes, each of these in UTF-8, UTF-16LE and the two code pages of the host, since a program's output is in any of them, whatever was
//! declared. What a page does not have is a `?` there, as programs write it. Of a secret over 16 KiB only its first 16 KiB count: the
//! forms take memory in every runner.

use crate::codepage::{CodePage, Pages};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE},
};
use std::collections::BTreeSet;

/// Shorter pieces of base64 would blot out ordinary words.
const SHORTEST_BASE64: usize = 6;

const LONGEST: usize = 16 << 10;

/// Adds the forms of a secret.
pub(super) fn add(secret: &[u8], pages: Pages, forms: &mut BTreeSet<Vec<u8>>) {
    let secret = &secret[..secret.len().min(LONGEST)];
    let whole = trim_line_end(secret);
    let unix = without_returns(whole);
    let lines: Vec<&[u8]> = unix.split(|b| *b == b'\n').collect();
    let mut adder = Adder { pages, forms };
    if lines.len() == 1 {
        adder.line(whole);
    } else {
        for line in lines.iter().map(|l| l.trim_ascii()) {
            if String::from_utf8_lossy(line).chars().count() > 2 {
                adder.line(line);
            }
        }
    }
    for text in [secret, whole, &unix, &lines.join(&b"\r\n"[..])] {
        adder.text(text);
    }
}

fn trim_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

fn without_returns(bytes: &[u8]) -> Vec<u8> {
    let lines = bytes.split(|b| *b == b'\n');
    lines
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l))
        .collect::<Vec<_>>()
        .join(&b'\n')
}

struct Adder<'a> {
    pages: Pages,
    forms: &'a mut BTreeSet<Vec<u8>>,
}

impl Adder<'_> {
    /// A line: all forms.
    fn line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        self.text(line);
        for bytes in self.narrow(line) {
            self.url(&bytes);
        }
        if let Ok(text) = std::str::from_utf8(line) {
            self.json(text);
        }
    }

    /// A text of any length: plain and base64.
    fn text(&mut self, value: &[u8]) {
        if value.is_empty() {
            return;
        }
        for bytes in self.narrow(value) {
            self.base64(&bytes);
            self.forms.insert(bytes);
        }
        if let Ok(text) = std::str::from_utf8(value) {
            let wide = wide(text);
            self.base64(&wide);
            self.forms.insert(wide);
        }
    }

    /// The encodings of a text that differ. In a page that has few of its characters it is not looked for: it would be nothing but `?`.
    fn narrow(&self, value: &[u8]) -> Vec<Vec<u8>> {
        let mut all = vec![value.to_vec()];
        if value.is_ascii() {
            return all;
        }
        if let Ok(text) = std::str::from_utf8(value) {
            let pages = [self.pages.oem, self.pages.ansi];
            all.extend(pages.into_iter().filter_map(|page| in_page(text, page)));
        }
        all
    }

    /// A form that is text itself, in each encoding.
    fn derived(&mut self, text: &str) {
        for bytes in self.narrow(text.as_bytes()) {
            self.forms.insert(bytes);
        }
        self.forms.insert(wide(text));
    }

    fn base64(&mut self, value: &[u8]) {
        for engine in [BASE64_STANDARD, BASE64_URL_SAFE] {
            for before in 0..3 {
                let mut bytes = vec![0; before];
                bytes.extend_from_slice(value);
                let text = engine.encode(&bytes);
                // characters that also hold bits of what stands before or after are not the secret's own
                let first = (before * 4).div_ceil(3);
                let last = bytes.len() / 3 * 4 + (bytes.len() % 3 * 8) / 6;
                let Some(own) = text.get(first..last).filter(|o| o.len() >= SHORTEST_BASE64) else {
                    continue;
                };
                self.derived(own);
                if before == 0 {
                    for width in [76, 64] {
                        for at in (0..own.len()).step_by(width) {
                            let piece = &own[at..own.len().min(at + width)];
                            if piece.len() >= SHORTEST_BASE64 {
                                self.derived(piece);
                            }
                        }
                    }
                }
            }
        }
    }

    fn url(&mut self, value: &[u8]) {
        // RFC 3986; the same with "/" (Python); encodeURIComponent; encodeURI
        for extra in ["", "/", "!'()*", "!'()*;/?:@&=+$,#"] {
            for space in ["%20", "+"] {
                for upper in [true, false] {
                    self.derived(&escaped(value, extra, space, upper));
                }
            }
        }
    }

    fn json(&mut self, text: &str) {
        let Ok(quoted) = serde_json::to_string(text) else {
            return;
        };
        let inner = &quoted[1..quoted.len() - 1];
        for form in [inner.to_owned(), inner.replace('/', "\\/")] {
            self.derived(&as_ascii(&form));
            self.derived(&form);
        }
    }
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn in_page(text: &str, page: CodePage) -> Option<Vec<u8>> {
    page.encode(text).ok().or_else(|| {
        let kept = text.chars().filter(|c| page.encode(&c.to_string()).is_ok());
        (kept.count() > 2).then(|| page.encode_lossy(text))
    })
}

fn escaped(value: &[u8], extra: &str, space: &str, upper: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for &byte in value {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            b' ' => out.push_str(space),
            _ if extra.as_bytes().contains(&byte) => out.push(char::from(byte)),
            _ if upper => out.push_str(&format!("%{byte:02X}")),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}

fn as_ascii(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|u| format!("\\u{u:04x}")));
        }
    }
    out
}
