//! The encoding of a stream, fixed before lines are cut: UTF-16 becomes UTF-8, everything else stays as its bytes are.
//!
//! `auto` decides on the first bytes: a byte order mark, or zero bytes at every second place as UTF-16 text in Latin letters has them.

use api::step::OutputEncoding;
use encoding_rs::{UTF_16BE, UTF_16LE};

/// How many of the first bytes are looked at.
const LOOK: usize = 64;
/// So many are needed to tell zero bytes of UTF-16 from stray ones.
const ENOUGH: usize = 4;

/// Decodes one stream.
pub(super) enum Decoder {
    Undecided(Vec<u8>),
    Raw,
    Utf16(Box<encoding_rs::Decoder>),
}

impl Decoder {
    pub fn new(encoding: OutputEncoding) -> Self {
        match encoding {
            OutputEncoding::Auto => Decoder::Undecided(Vec::new()),
            OutputEncoding::Utf16 => utf16(UTF_16LE),
            // there is no code page of a console here: the bytes stay, and views say what they cannot show
            OutputEncoding::Utf8 | OutputEncoding::Oem => Decoder::Raw,
        }
    }

    /// Appends the next bytes to `out` as they will be stored.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Decoder::Undecided(first) => {
                first.extend_from_slice(bytes);
                if first.len() >= ENOUGH {
                    self.decide(out);
                }
            }
            Decoder::Raw => out.extend_from_slice(bytes),
            Decoder::Utf16(decoder) => decode(decoder, bytes, false, out),
        }
    }

    /// Decides on what there is: nothing more came for a while.
    pub fn decide(&mut self, out: &mut Vec<u8>) {
        if let Decoder::Undecided(first) = self
            && !first.is_empty()
        {
            let first = std::mem::take(first);
            *self = guess(&first);
            self.feed(&first, out);
        }
    }

    /// The stream is over.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.decide(out);
        if let Decoder::Utf16(decoder) = self {
            decode(decoder, &[], true, out);
            *self = Decoder::Raw;
        }
    }
}

fn utf16(encoding: &'static encoding_rs::Encoding) -> Decoder {
    Decoder::Utf16(Box::new(encoding.new_decoder_with_bom_removal()))
}

fn guess(first: &[u8]) -> Decoder {
    let look = &first[..first.len().min(LOOK)];
    let zeros = |odd: usize| {
        look.len() >= ENOUGH
            && look.iter().skip(odd).step_by(2).all(|b| *b == 0)
            && look.iter().skip(1 - odd).step_by(2).all(|b| *b != 0)
    };
    match look {
        [0xFF, 0xFE, ..] => utf16(UTF_16LE),
        [0xFE, 0xFF, ..] => utf16(UTF_16BE),
        _ if zeros(1) => utf16(UTF_16LE),
        _ if zeros(0) => utf16(UTF_16BE),
        _ => Decoder::Raw,
    }
}

fn decode(decoder: &mut encoding_rs::Decoder, bytes: &[u8], last: bool, out: &mut Vec<u8>) {
    let mut text = String::with_capacity(
        decoder
            .max_utf8_buffer_length(bytes.len())
            .unwrap_or(bytes.len() * 3 + 16),
    );
    // the room suffices by the length just asked for; what cannot be decoded becomes U+FFFD
    let _ = decoder.decode_to_string(bytes, &mut text, last);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: OutputEncoding, bytes: &[u8]) -> Vec<u8> {
        let answers: Vec<Vec<u8>> = [1, 2, 3, 5, 1000]
            .map(|size| {
                let (mut decoder, mut out) = (Decoder::new(encoding), Vec::new());
                bytes.chunks(size).for_each(|c| decoder.feed(c, &mut out));
                decoder.finish(&mut out);
                out
            })
            .into();
        assert!(answers.windows(2).all(|w| w[0] == w[1]), "depends on the chunks");
        answers[0].clone()
    }

    fn le(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn utf16_is_told_by_its_mark_or_its_zeros() {
        let marked = [vec![0xFF, 0xFE], le("größe 漢\n")].concat();
        assert_eq!(decoded(OutputEncoding::Auto, &marked), "größe 漢\n".as_bytes());
        assert_eq!(
            decoded(OutputEncoding::Auto, &le("plain words\n")),
            b"plain words\n"
        );
        let be: Vec<u8> = "plain".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decoded(OutputEncoding::Auto, &be), b"plain");
        assert_eq!(decoded(OutputEncoding::Utf16, &le("漢字")), "漢字".as_bytes());
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let odd = b"\xff\x00\xc3\x28\x0a\x1b[31m\r\nA\n";
        assert_eq!(decoded(OutputEncoding::Auto, odd), odd);
        for few in [&b""[..], b"A", b"A\0", b"\0", b"ok\n"] {
            assert_eq!(decoded(OutputEncoding::Auto, few), few);
        }
        assert_eq!(decoded(OutputEncoding::Utf8, &le("ab")), le("ab"));
    }
}
