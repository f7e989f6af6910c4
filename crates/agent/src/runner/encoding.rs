//! The encoding of a stream, fixed before lines are cut: what is UTF-16 or in the console's code page becomes UTF-8, everything else
//! stays as its bytes are.
//!
//! `auto` decides on the first bytes: a byte order mark, or zero bytes at every second place as UTF-16 text in Latin letters has them.
//! Else on the first character beyond ASCII: UTF-8 where it is one, the console's code page where it is not. Both are then kept for the
//! whole stream. Where the console's page is UTF-8, as on Unix, nothing else is ever guessed.
//!
//! It takes the pieces that masking leaves ([`Piece`]). A secret's bytes count for the place of the others, in UTF-16 every second one
//! begins a character, but are not decoded.

use crate::{
    codepage::{self, CodePage},
    mask::{MASK, Piece},
};
use api::step::OutputEncoding;
use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

/// How many of the first bytes are looked at.
const LOOK: usize = 64;
/// So many are needed to tell zero bytes of UTF-16 from stray ones.
const ENOUGH: usize = 4;

/// Decodes one stream.
pub(super) struct Decoder {
    state: State,
    oem: CodePage,
}

enum State {
    /// The first bytes, also hidden ones, and the pieces they came in.
    Undecided {
        seen: Vec<u8>,
        kept: Vec<Kept>,
    },
    /// ASCII so far, but for the beginning of what may be a character of UTF-8.
    Ascii {
        begun: Vec<u8>,
    },
    Raw,
    Page(codepage::Decoder),
    Wide(Wide),
}

enum Kept {
    Shown(Vec<u8>),
    Mask,
    Hidden(Vec<u8>),
}

impl Decoder {
    /// For output that is declared so, on a host whose consoles have the page `oem`.
    pub fn new(encoding: OutputEncoding, oem: CodePage) -> Self {
        let state = match encoding {
            OutputEncoding::Auto => State::Undecided {
                seen: Vec::new(),
                kept: Vec::new(),
            },
            OutputEncoding::Utf16 => State::Wide(Wide::new(UTF_16LE)),
            OutputEncoding::Utf8 => State::Raw,
            OutputEncoding::Oem => State::Page(oem.decoder()),
        };
        Self { state, oem }
    }

    /// Whether what comes out differs from what went in.
    pub fn changes(&self) -> bool {
        match &self.state {
            State::Undecided { .. } | State::Ascii { .. } | State::Raw => false,
            State::Page(decoder) => !matches!(decoder, codepage::Decoder::Raw),
            State::Wide(_) => true,
        }
    }

    /// Appends the next piece to `out` as it will be stored.
    pub fn feed(&mut self, piece: Piece<'_>, out: &mut Vec<u8>) {
        match (&mut self.state, piece) {
            (State::Undecided { seen, kept }, piece) => {
                kept.push(match piece {
                    Piece::Shown(bytes) => Kept::Shown(bytes.to_vec()),
                    Piece::Hidden(bytes) => Kept::Hidden(bytes.to_vec()),
                    Piece::Mask => Kept::Mask,
                });
                if let Piece::Shown(bytes) | Piece::Hidden(bytes) = piece {
                    seen.extend_from_slice(bytes);
                }
                if seen.len() >= ENOUGH {
                    self.decide(out);
                }
            }
            (State::Ascii { .. }, Piece::Shown(bytes)) => self.ascii(bytes, out),
            (State::Raw, Piece::Shown(bytes)) => out.extend_from_slice(bytes),
            (State::Page(decoder), Piece::Shown(bytes)) => decoder.feed(bytes, false, out),
            (State::Wide(wide), Piece::Shown(bytes)) => wide.feed(bytes, out),
            (State::Wide(wide), Piece::Hidden(bytes)) => wide.skip(bytes.len()),
            (_, Piece::Hidden(_)) => {}
            (_, Piece::Mask) => {
                self.break_off(out);
                out.extend_from_slice(MASK);
            }
        }
    }

    /// Decides on what there is: nothing more came for a while.
    pub fn decide(&mut self, out: &mut Vec<u8>) {
        if let State::Undecided { seen, kept } = &mut self.state
            && !kept.is_empty()
        {
            let (seen, kept) = (std::mem::take(seen), std::mem::take(kept));
            self.state = self.guess(&seen);
            for piece in &kept {
                let piece = match piece {
                    Kept::Shown(bytes) => Piece::Shown(bytes),
                    Kept::Hidden(bytes) => Piece::Hidden(bytes),
                    Kept::Mask => Piece::Mask,
                };
                self.feed(piece, out);
            }
        }
    }

    /// The stream is over.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.decide(out);
        self.break_off(out);
        if let State::Wide(wide) = &mut self.state {
            wide.finish(out);
        }
    }

    fn guess(&self, first: &[u8]) -> State {
        let look = &first[..first.len().min(LOOK)];
        let zeros = |odd: usize| {
            look.len() >= ENOUGH
                && look.iter().skip(odd).step_by(2).all(|b| *b == 0)
                && look.iter().skip(1 - odd).step_by(2).all(|b| *b != 0)
        };
        match look {
            [0xFF, 0xFE, ..] => State::Wide(Wide::new(UTF_16LE)),
            [0xFE, 0xFF, ..] => State::Wide(Wide::new(UTF_16BE)),
            _ if zeros(1) => State::Wide(Wide::new(UTF_16LE)),
            _ if zeros(0) => State::Wide(Wide::new(UTF_16BE)),
            _ if self.oem == CodePage::default() => State::Raw,
            _ => State::Ascii { begun: Vec::new() },
        }
    }

    /// Looks for the first character beyond ASCII.
    fn ascii(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let State::Ascii { begun } = &mut self.state else {
            return;
        };
        let mut text = std::mem::take(begun);
        text.extend_from_slice(bytes);
        let end = text.iter().position(|b| !b.is_ascii()).unwrap_or(text.len());
        out.extend_from_slice(&text[..end]);
        let rest = &text[end..];
        let Some(first) = rest.first() else { return };
        let valid = match std::str::from_utf8(rest) {
            Ok(_) => true,
            Err(error) if error.valid_up_to() > 0 => true,
            Err(error) if error.error_len().is_none() && *first >= 0xC2 => {
                *begun = rest.to_vec();
                return;
            }
            Err(_) => false,
        };
        self.state = if valid {
            State::Raw
        } else {
            State::Page(self.oem.decoder())
        };
        self.feed(Piece::Shown(rest), out);
    }

    /// What was begun does not go on.
    fn break_off(&mut self, out: &mut Vec<u8>) {
        match &mut self.state {
            State::Ascii { begun } if !begun.is_empty() => {
                let begun = std::mem::take(begun);
                let mut decoder = self.oem.decoder();
                decoder.feed(&begun, true, out);
                self.state = State::Page(self.oem.decoder());
            }
            State::Page(decoder) => {
                decoder.feed(&[], true, out);
                *decoder = self.oem.decoder();
            }
            State::Wide(wide) => wide.break_off(out),
            _ => {}
        }
    }
}

/// A stream of UTF-16.
struct Wide {
    encoding: &'static Encoding,
    decoder: Box<encoding_rs::Decoder>,
    /// The first half of a unit whose second has not come.
    half: Option<u8>,
    /// The next byte is the second half of a unit whose first was hidden.
    misses_first: bool,
}

impl Wide {
    fn new(encoding: &'static Encoding) -> Self {
        Self {
            encoding,
            decoder: Box::new(encoding.new_decoder_with_bom_removal()),
            half: None,
            misses_first: false,
        }
    }

    fn feed(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.misses_first) {
            bytes = &bytes[1..];
        }
        if let (Some(half), Some((second, rest))) = (self.half, bytes.split_first()) {
            self.half = None;
            self.decode(&[half, *second], false, out);
            bytes = rest;
        }
        let (whole, half) = bytes.split_at(bytes.len() / 2 * 2);
        self.decode(whole, false, out);
        self.half = half.first().copied().or(self.half);
    }

    /// So many bytes are hidden; a unit that is hidden in part is not shown at all.
    fn skip(&mut self, hidden: usize) {
        let begun = usize::from(self.half.take().is_some()) + usize::from(self.misses_first);
        self.misses_first = (hidden + begun) % 2 == 1;
    }

    fn break_off(&mut self, out: &mut Vec<u8>) {
        self.decode(&[], true, out);
        *self.decoder = self.encoding.new_decoder_without_bom_handling();
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        if self.half.take().is_some() {
            out.extend_from_slice("\u{FFFD}".as_bytes());
        }
    }

    fn decode(&mut self, bytes: &[u8], last: bool, out: &mut Vec<u8>) {
        let room = self.decoder.max_utf8_buffer_length(bytes.len());
        let mut text = String::with_capacity(room.unwrap_or(bytes.len() * 3 + 16));
        // the room suffices by the length just asked for; what cannot be decoded becomes U+FFFD
        let _ = self.decoder.decode_to_string(bytes, &mut text, last);
        out.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded_on(oem: u32, encoding: OutputEncoding, bytes: &[u8]) -> Vec<u8> {
        let answers: Vec<Vec<u8>> = [1, 2, 3, 5, 1000]
            .map(|size| {
                let (mut decoder, mut out) = (Decoder::new(encoding, CodePage::of(oem)), Vec::new());
                let chunks = bytes.chunks(size);
                chunks.for_each(|chunk| decoder.feed(Piece::Shown(chunk), &mut out));
                decoder.finish(&mut out);
                out
            })
            .into();
        assert!(answers.windows(2).all(|w| w[0] == w[1]), "depends on the chunks");
        answers[0].clone()
    }

    fn decoded(encoding: OutputEncoding, bytes: &[u8]) -> Vec<u8> {
        decoded_on(65001, encoding, bytes)
    }

    fn le(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn be(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_be_bytes).collect()
    }

    #[test]
    fn utf16_is_told_by_its_mark_or_its_zeros() {
        let marked = [vec![0xFF, 0xFE], le("größe 漢\n")].concat();
        assert_eq!(decoded(OutputEncoding::Auto, &marked), "größe 漢\n".as_bytes());
        assert_eq!(
            decoded(OutputEncoding::Auto, &le("plain words\n")),
            b"plain words\n"
        );
        assert_eq!(decoded(OutputEncoding::Auto, &be("plain")), b"plain");
        assert_eq!(decoded(OutputEncoding::Utf16, &le("漢字😀")), "漢字😀".as_bytes());
        assert_eq!(decoded(OutputEncoding::Utf16, b"a\0b"), "a\u{FFFD}".as_bytes());
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let odd = b"\xff\x00\xc3\x28\x0a\x1b[31m\r\nA\n";
        assert_eq!(decoded(OutputEncoding::Auto, odd), odd);
        for few in [&b""[..], b"A", b"A\0", b"\0", b"ok\n"] {
            assert_eq!(decoded(OutputEncoding::Auto, few), few);
        }
        assert_eq!(decoded(OutputEncoding::Utf8, &le("ab")), le("ab"));
        assert_eq!(decoded(OutputEncoding::Oem, odd), odd, "UTF-8 is the page here");
    }

    /// IO-07: the first character beyond ASCII decides, for the whole stream.
    #[test]
    fn what_is_not_utf8_is_in_the_page_of_consoles() {
        let auto = |oem, bytes: &[u8]| {
            String::from_utf8_lossy(&decoded_on(oem, OutputEncoding::Auto, bytes)).into_owned()
        };
        assert_eq!(auto(850, b"plain, then gr\x94\xe1e\n"), "plain, then größe\n");
        assert_eq!(auto(850, "größe, dann ".as_bytes()), "größe, dann ");
        assert_eq!(auto(936, b"plain \xb4\xf3\xd0\xa1"), "plain 大小");
        assert_eq!(auto(850, b"ends with \xe1"), "ends with ß");
        assert_eq!(auto(850, b"h\x81bsch \xe1"), "hübsch ß");
        let kept = decoded_on(850, OutputEncoding::Auto, b"gr\xc3\xb6\xc3\x9fe gr\x94\xe1e");
        assert_eq!(kept, b"gr\xc3\xb6\xc3\x9fe gr\x94\xe1e", "what was decided stays");
        let declared = decoded_on(850, OutputEncoding::Oem, "ö".as_bytes());
        assert_eq!(
            String::from_utf8(declared).unwrap(),
            "├Â",
            "what is declared is believed"
        );
        assert_eq!(decoded_on(850, OutputEncoding::Utf8, b"\x94"), b"\x94");
    }
}
