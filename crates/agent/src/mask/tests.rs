use super::*;
use crate::codepage::CodePage;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use proptest::prelude::*;

fn pages() -> Pages {
    Pages {
        oem: CodePage::of(850),
        ansi: CodePage::of(1252),
    }
}

fn patterns(secrets: &[&[u8]]) -> Patterns {
    Patterns::new(pages())
        .with(secrets.iter().copied())
        .unwrap_or_default()
}

/// Masks `text` in chunks of every size from 1 to its length and demands one answer.
fn masked(secrets: &[&[u8]], text: &[u8]) -> String {
    let patterns = patterns(secrets);
    let mut answers: Vec<Vec<u8>> = (1..=text.len().max(1))
        .map(|size| {
            let (mut masker, mut out) = (Masker::default(), Vec::new());
            for chunk in text.chunks(size) {
                masker.feed(&patterns, chunk, |piece| append(piece, &mut out));
            }
            masker.finish(&patterns, |piece| append(piece, &mut out));
            out
        })
        .collect();
    answers.dedup();
    assert_eq!(answers.len(), 1, "depends on the chunks");
    String::from_utf8_lossy(&answers[0]).into_owned()
}

const KEY: &[u8] = b"-----BEGIN KEY-----\nq8/Zx+9=abc def\nsecond line\"\\\n-----END KEY-----\n";

/// SE-01.
#[test]
fn a_secret_of_several_lines_is_masked_in_all_forms() {
    let text = std::str::from_utf8(KEY).unwrap();
    let utf16: Vec<u8> = text
        .trim_end()
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let forms: Vec<(&str, Vec<u8>)> = vec![
        ("plain", KEY.to_vec()),
        ("CRLF", text.replace('\n', "\r\n").into_bytes()),
        (
            "prefixed",
            text.lines()
                .map(|l| format!("out: {l}\n"))
                .collect::<String>()
                .into_bytes(),
        ),
        ("base64", BASE64_STANDARD.encode(KEY).into_bytes()),
        ("json", serde_json::to_string(text).unwrap().into_bytes()),
        ("url", b"q8%2FZx%2B9%3Dabc%20def".to_vec()),
        ("form", b"q8%2fZx%2b9%3dabc+def".to_vec()),
        ("utf-16", utf16),
    ];
    for (form, bytes) in forms {
        let shown = masked(&[KEY], &bytes);
        for piece in ["q8", "Zx", "abc", "second", "LS0tLS1C", "c2Vjb25k"] {
            assert!(!shown.contains(piece), "{form}: {shown}");
        }
        assert!(shown.contains("***"), "{form}: {shown}");
    }
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// SE-01: every form in each of the four encodings, also where a form is split between lines and chunks.
#[test]
fn every_form_is_masked_in_every_encoding() {
    let secret = "pässwörd für/alles\nzweite Zeile \"größer\"";
    let (oem, ansi) = (pages().oem, pages().ansi);
    type Encode = Box<dyn Fn(&str) -> Vec<u8>>;
    let encodings: [(&str, Encode); 4] = [
        ("UTF-8", Box::new(|t| t.as_bytes().to_vec())),
        ("UTF-16LE", Box::new(utf16)),
        ("OEM", Box::new(move |t| oem.encode_lossy(t))),
        ("ANSI", Box::new(move |t| ansi.encode_lossy(t))),
    ];
    let forms = |encode: &dyn Fn(&str) -> Vec<u8>| -> Vec<(&str, String)> {
        vec![
            ("plain", secret.to_owned()),
            ("CRLF", secret.replace('\n', "\r\n")),
            (
                "prefixed",
                secret.lines().map(|l| format!("out: {l}\n")).collect(),
            ),
            ("json", serde_json::to_string(secret).unwrap()),
            ("base64", BASE64_STANDARD.encode(encode(secret))),
            (
                "base64 of a line",
                BASE64_STANDARD.encode(encode("pässwörd für/alles")),
            ),
        ]
    };
    for (printed, print) in &encodings {
        for (inner, encode) in &encodings {
            for (form, text) in forms(encode) {
                let shown = masked(&[secret.as_bytes()], &print(&format!("before {text} after")));
                let plain = shown.replace('\0', "");
                for piece in ["ssw", "alles", "zweite", "Zeile", "er\\\""] {
                    assert!(!plain.contains(piece), "{form} of {inner} as {printed}: {shown}");
                }
                assert!(plain.contains("***"), "{form} of {inner} as {printed}: {shown}");
                assert!(
                    plain.starts_with("before ") && plain.ends_with(" after"),
                    "{shown}"
                );
                assert!(plain.len() < 60, "{form} of {inner} as {printed}: {shown}");
            }
        }
        for url in [
            "p%84ssw%94rd%20f%81r%2Falles",
            "p%e4ssw%f6rd+f%fcr%2falles",
            "p%C3%A4ssw%C3%B6rd%20f%C3%BCr/alles",
        ] {
            let shown = masked(&[secret.as_bytes()], &print(url));
            assert_eq!(shown.replace('\0', ""), "***", "{url} as {printed}");
        }
    }
}

#[test]
fn what_a_page_does_not_have_is_masked_as_programs_write_it() {
    assert_eq!(
        masked(&["Schlüssel☃漢".as_bytes()], b"a Schl\x81ssel?? b"),
        "a *** b"
    );
    assert_eq!(
        masked(&["漢字".as_bytes()], b"what?? really??"),
        "what?? really??"
    );
}

#[test]
fn hidden_bytes_are_told_too_and_nothing_is_lost_between_pieces() {
    let patterns = patterns(&[b"abcabc", b"cab"]);
    let text = b"xxabcabcabcyycabz";
    for size in 1..text.len() {
        let (mut masker, mut all, mut masks) = (Masker::default(), Vec::new(), 0);
        let mut tell = |piece: Piece<'_>| match piece {
            Piece::Shown(bytes) | Piece::Hidden(bytes) => all.extend_from_slice(bytes),
            Piece::Mask => masks += 1,
        };
        text.chunks(size)
            .for_each(|chunk| masker.feed(&patterns, chunk, &mut tell));
        masker.finish(&patterns, &mut tell);
        assert_eq!((all.as_slice(), masks), (&text[..], 2), "chunks of {size}");
    }
}

#[test]
fn base64_inside_a_larger_text_is_masked_in_each_alignment() {
    let secret = b"correct horse battery staple";
    for before in ["", "u", "us", "user:"] {
        let whole = BASE64_STANDARD.encode([before.as_bytes(), secret, b"@host"].concat());
        let shown = masked(&[secret], whole.as_bytes());
        assert!(shown.len() < 24, "{before:?}: {shown}");
    }
}

#[test]
fn base64_wrapped_into_lines_is_masked() {
    let secret: Vec<u8> = (0..200_u8).map(|i| b'a' + i % 26).collect();
    for width in [64, 76] {
        let text = BASE64_STANDARD.encode(&secret);
        let lines: Vec<&str> = text
            .as_bytes()
            .chunks(width)
            .map(|c| std::str::from_utf8(c).unwrap())
            .collect();
        let shown = masked(&[&secret], lines.join("\n").as_bytes());
        assert!(
            shown.chars().filter(char::is_ascii_alphanumeric).count() <= 4,
            "{shown}"
        );
    }
}

#[test]
fn secrets_that_overlap_leave_nothing_of_either() {
    assert_eq!(masked(&[b"abcd", b"cdef"], b"xabcdefy"), "x***y");
    assert_eq!(masked(&[b"pass", b"password1"], b"a password1 b"), "a *** b");
    assert_eq!(masked(&[b"pass", b"password1"], b"a password b"), "a ***word b");
    assert_eq!(masked(&[b"word"], b"wordword wor"), "****** wor");
}

#[test]
fn a_beginning_that_goes_on_differently_is_shown() {
    assert_eq!(masked(&[b"secret"], b"secre secrex sec"), "secre secrex sec");
}

#[test]
fn nothing_that_may_begin_a_secret_is_shown_early() {
    let patterns = patterns(&[b"hunter2hunter3"]);
    let (mut masker, mut out) = (Masker::default(), Vec::new());
    masker.feed(&patterns, b"pw=hunter2", |piece| append(piece, &mut out));
    assert_eq!(out, b"pw=");
    masker.feed(&patterns, b"hunter3", |piece| append(piece, &mut out));
    assert_eq!(out, b"pw=***");
}

#[test]
fn a_secret_learnt_in_the_middle_of_a_stream_is_masked_from_there() {
    let (mut masker, mut out) = (Masker::default(), Vec::new());
    masker.feed(&Patterns::default(), b"before ", |piece| append(piece, &mut out));
    masker.feed(&patterns(&[b"token-1"]), b"token-1 after", |piece| {
        append(piece, &mut out)
    });
    assert_eq!(out, b"before *** after");
}

#[test]
fn short_lines_of_a_long_secret_do_not_blot_out_everything() {
    assert_eq!(
        masked(&[b"{\n  \"a\"\n}\nlong enough"], b"x } y { long enough"),
        "x } y { ***"
    );
}

proptest! {
    /// A slow obvious way: mark every byte that any form covers, then write runs of marks as one mask.
    #[test]
    fn agrees_with_a_slow_search(
        secrets in prop::collection::vec("[ab]{3,5}", 1..4),
        text in "[abc]{0,40}",
        size in 1..10_usize,
    ) {
        let patterns = patterns(&secrets.iter().map(|s| s.as_bytes()).collect::<Vec<_>>());
        let text = text.as_bytes();
        let (mut masker, mut out) = (Masker::default(), Vec::new());
        for chunk in text.chunks(size) {
            masker.feed(&patterns, chunk, |piece| append(piece, &mut out));
        }
        masker.finish(&patterns, |piece| append(piece, &mut out));

        let mut shown = Vec::new();
        let mut until = 0;
        for at in 0..text.len() {
            let ends = patterns.forms.iter().filter(|f| text[at..].starts_with(f)).map(|f| at + f.len());
            if let Some(end) = ends.max() {
                if at >= until {
                    shown.extend_from_slice(MASK);
                }
                until = until.max(end);
            }
            if at >= until {
                shown.push(text[at]);
            }
        }
        prop_assert_eq!(String::from_utf8(out), String::from_utf8(shown));
    }
}

#[test]
fn the_masks_of_a_large_secret_take_bounded_memory() {
    let line = |i: usize| format!("{:064}\n", i * 7919);
    for (lines, most) in [(52, 8 << 20), (100_000, 28 << 20)] {
        let secret: String = (0..lines).map(line).collect();
        let patterns = patterns(&[secret.as_bytes()]);
        let used = patterns.finder.as_ref().map_or(0, AhoCorasick::memory_usage);
        assert!(used < most, "{lines} lines: {used} bytes");
    }
}
