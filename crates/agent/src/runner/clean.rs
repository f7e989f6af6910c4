//! From a stream's bytes to what may be stored: secrets taken out of the bytes as they come, then the rest decoded, and where that changed
//! something, secrets taken out once more.

use super::encoding::Decoder;
use crate::{
    codepage::CodePage,
    mask::{Masker, Patterns, append},
};
use api::step::OutputEncoding;

/// Cleans one stream.
pub(super) struct Cleaner {
    masker: Masker,
    decoder: Decoder,
    again: Masker,
}

impl Cleaner {
    /// For output that is declared so, on a host whose consoles have the page `oem`.
    pub fn new(encoding: OutputEncoding, oem: CodePage) -> Self {
        Self {
            masker: Masker::default(),
            decoder: Decoder::new(encoding, oem),
            again: Masker::default(),
        }
    }

    /// Takes the next bytes and appends to `out` what may be stored.
    pub fn feed(&mut self, patterns: &Patterns, bytes: &[u8], out: &mut Vec<u8>) {
        let (decoder, mut text) = (&mut self.decoder, Vec::with_capacity(bytes.len()));
        self.masker
            .feed(patterns, bytes, |piece| decoder.feed(piece, &mut text));
        self.store(patterns, text, out);
    }

    /// Nothing more came for a while: what waited only for more to tell its encoding by is shown.
    pub fn decide(&mut self, patterns: &Patterns, out: &mut Vec<u8>) {
        let mut text = Vec::new();
        self.decoder.decide(&mut text);
        self.store(patterns, text, out);
    }

    /// The stream is over.
    pub fn finish(&mut self, patterns: &Patterns, out: &mut Vec<u8>) {
        let (decoder, mut text) = (&mut self.decoder, Vec::new());
        self.masker
            .finish(patterns, |piece| decoder.feed(piece, &mut text));
        decoder.finish(&mut text);
        self.store(patterns, text, out);
        self.again.finish(patterns, |piece| append(piece, out));
    }

    fn store(&mut self, patterns: &Patterns, text: Vec<u8>, out: &mut Vec<u8>) {
        if self.decoder.changes() {
            self.again.feed(patterns, &text, |piece| append(piece, out));
        } else {
            out.extend(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codepage::Pages;

    fn le(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn be(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_be_bytes).collect()
    }

    /// What is stored of a stream, in chunks of every size.
    fn shown(oem: u32, encoding: OutputEncoding, secret: &str, stream: &[u8]) -> String {
        let pages = Pages {
            oem: CodePage::of(oem),
            ansi: CodePage::of(1252),
        };
        let patterns = Patterns::new(pages).with([secret.as_bytes()]).unwrap();
        let answers: Vec<Vec<u8>> = (1..=stream.len())
            .map(|size| {
                let (mut cleaner, mut out) = (Cleaner::new(encoding, pages.oem), Vec::new());
                for chunk in stream.chunks(size) {
                    cleaner.feed(&patterns, chunk, &mut out);
                }
                cleaner.finish(&patterns, &mut out);
                out
            })
            .collect();
        assert!(answers.windows(2).all(|w| w[0] == w[1]), "depends on the chunks");
        String::from_utf8_lossy(&answers[0]).into_owned()
    }

    #[test]
    fn a_mask_leaves_the_text_around_it_readable_in_every_encoding() {
        let text = "größe pässwörd, ende";
        let utf16 = [vec![0xFF, 0xFE], le(text)].concat();
        let oem = CodePage::of(850).encode(text).unwrap();
        for stream in [text.as_bytes(), &utf16, &oem] {
            let shown = shown(850, OutputEncoding::Auto, "pässwörd", stream);
            assert_eq!(shown, "größe ***, ende", "{stream:?}");
        }
        let first = le("secret and more");
        assert_eq!(shown(850, OutputEncoding::Auto, "secret", &first), "*** and more");
        assert_eq!(shown(850, OutputEncoding::Auto, "secret", b"secret"), "***");
        let other = [vec![0xFE, 0xFF], be("ab漢cd")].concat();
        let shown = shown(850, OutputEncoding::Auto, "漢", &other);
        assert_eq!(shown, "ab***cd", "found once it is decoded");
    }

    #[test]
    fn a_secret_at_an_odd_place_hides_whole_units_only() {
        // the narrow form of the secret lies across units of UTF-16
        let stream = [le("one "), b"\x41hunter2\x42\x43".to_vec(), le(" two")].concat();
        let shown = shown(850, OutputEncoding::Utf16, "hunter2", &stream);
        assert!(
            shown.starts_with("one ***") && shown.ends_with(" two"),
            "{shown:?}"
        );
    }

    #[test]
    fn a_program_that_lies_about_its_encoding_gives_nothing_away() {
        for (declared, stream) in [
            (OutputEncoding::Oem, "pässwörd".as_bytes().to_vec()),
            (OutputEncoding::Utf8, le("pässwörd")),
            (
                OutputEncoding::Utf8,
                CodePage::of(850).encode("pässwörd").unwrap(),
            ),
            (
                OutputEncoding::Oem,
                CodePage::of(1252).encode("pässwörd").unwrap(),
            ),
            (OutputEncoding::Utf16, b"xpassword".to_vec()),
        ] {
            let secret = if declared == OutputEncoding::Utf16 {
                "password"
            } else {
                "pässwörd"
            };
            let shown = shown(850, declared, secret, &stream);
            assert!(
                !shown.contains("ssw") && shown.contains("***"),
                "{declared:?}: {shown}"
            );
        }
    }
}
