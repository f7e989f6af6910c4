//! The forms in which a secret may be printed.
//!
//! Of each of its lines longer than two characters: plain, JSON-escaped (also with `\/` and with non-ASCII as `\u`), URL-escaped (the
//! usual sets, upper and lower hex, space as `+`). Of the whole, with line ends LF and CRLF: plain. Of both: base64 and base64url in each
//! of the three alignments it may have inside a larger text (also wrapped at 76 and 64 columns), and the plain and base64 forms of
//! the UTF-16LE encoding. Of a secret over 16 KiB only its first 16 KiB count: the forms take memory in every runner.

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE},
};
use std::collections::BTreeSet;

/// Shorter pieces of base64 would blot out ordinary words.
const SHORTEST_BASE64: usize = 6;

const LONGEST: usize = 16 << 10;

pub(super) fn add(secret: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    let secret = &secret[..secret.len().min(LONGEST)];
    let whole = trim_line_end(secret);
    let unix = without_returns(whole);
    let lines: Vec<&[u8]> = unix.split(|b| *b == b'\n').collect();
    if lines.len() == 1 {
        of_line(whole, forms);
    } else {
        for line in lines.iter().map(|l| l.trim_ascii()) {
            if String::from_utf8_lossy(line).chars().count() > 2 {
                of_line(line, forms);
            }
        }
    }
    for text in [secret, whole, &unix, &lines.join(&b"\r\n"[..])] {
        of_text(text, forms);
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

fn of_line(line: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    if line.is_empty() {
        return;
    }
    of_text(line, forms);
    url(line, forms);
    if let Ok(text) = std::str::from_utf8(line) {
        json(text, forms);
    }
}

fn of_text(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    if value.is_empty() {
        return;
    }
    forms.insert(value.to_vec());
    base64(value, forms);
    if let Ok(text) = std::str::from_utf8(value) {
        let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        base64(&utf16, forms);
        forms.insert(utf16);
    }
}

fn base64(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
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
            forms.insert(own.as_bytes().to_vec());
            if before == 0 {
                for width in [76, 64] {
                    let pieces = own
                        .as_bytes()
                        .chunks(width)
                        .filter(|c| c.len() >= SHORTEST_BASE64);
                    forms.extend(pieces.map(<[u8]>::to_vec));
                }
            }
        }
    }
}

fn url(value: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    // RFC 3986; the same with "/" (Python); encodeURIComponent; encodeURI
    for extra in ["", "/", "!'()*", "!'()*;/?:@&=+$,#"] {
        for space in ["%20", "+"] {
            for upper in [true, false] {
                forms.insert(escaped(value, extra, space, upper));
            }
        }
    }
}

fn escaped(value: &[u8], extra: &str, space: &str, upper: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for &byte in value {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            b' ' => out.extend_from_slice(space.as_bytes()),
            _ if extra.as_bytes().contains(&byte) => out.push(byte),
            _ if upper => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
            _ => out.extend_from_slice(format!("%{byte:02x}").as_bytes()),
        }
    }
    out
}

fn json(text: &str, forms: &mut BTreeSet<Vec<u8>>) {
    let Ok(quoted) = serde_json::to_string(text) else {
        return;
    };
    let inner = &quoted[1..quoted.len() - 1];
    let ascii = |text: &str| {
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
    };
    for form in [inner.to_owned(), inner.replace('/', "\\/")] {
        forms.insert(ascii(&form).into_bytes());
        forms.insert(form.into_bytes());
    }
}
