//! Text in the code pages of Windows: OEM, which consoles and cmd use, and ANSI, which older programs use.
//!
//! A page goes by its number. 65001 is UTF-8, which is both pages of other systems. Tables of pages with several bytes a character and of
//! the ANSI ones are those of the WHATWG Encoding Standard, those of the consoles come from the mappings that Unicode publishes.

use encoding_rs::{
    BIG5, EUC_KR, Encoding, GBK, SHIFT_JIS, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253,
    WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, WINDOWS_1258,
};
use oem_cp::{
    OEMCPHashMap,
    code_table::{DECODING_TABLE_CP_MAP, ENCODING_TABLE_CP_MAP},
    code_table_type::TableType,
};

/// The two code pages of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// Of consoles, cmd and its files.
    pub oem: CodePage,
    /// Of programs that know no Unicode, and of scripts without a mark in Windows PowerShell.
    pub ansi: CodePage,
}

/// A code page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePage(u16);

const UTF8: u16 = 65001;

impl Default for CodePage {
    fn default() -> Self {
        Self(UTF8)
    }
}

enum Table {
    /// Also where there is no table of the page: bytes stay as they are.
    Utf8,
    Console(&'static TableType, &'static OEMCPHashMap<char, u8>),
    Standard(&'static Encoding),
}

impl CodePage {
    /// The page of a number.
    pub fn of(number: u32) -> Self {
        Self(u16::try_from(number).unwrap_or(UTF8))
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self.0
    }

    fn table(self) -> Table {
        let standard = match self.0 {
            932 => SHIFT_JIS,
            936 => GBK,
            949 => EUC_KR,
            950 => BIG5,
            1250 => WINDOWS_1250,
            1251 => WINDOWS_1251,
            1252 => WINDOWS_1252,
            1253 => WINDOWS_1253,
            1254 => WINDOWS_1254,
            1255 => WINDOWS_1255,
            1256 => WINDOWS_1256,
            1257 => WINDOWS_1257,
            1258 => WINDOWS_1258,
            number => {
                let tables = (
                    DECODING_TABLE_CP_MAP.get(&number),
                    ENCODING_TABLE_CP_MAP.get(&number),
                );
                return match tables {
                    (Some(from), Some(to)) => Table::Console(from, to),
                    _ => Table::Utf8,
                };
            }
        };
        Table::Standard(standard)
    }

    /// The bytes of a text, or the place of the first character that the page does not have.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, usize> {
        let mut bytes = Vec::with_capacity(text.len());
        let table = self.table();
        for (at, c) in text.char_indices() {
            if !push(&table, c, &mut bytes) {
                return Err(at);
            }
        }
        Ok(bytes)
    }

    /// The bytes of a text as programs write it that put `?` for what the page does not have.
    pub fn encode_lossy(self, text: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(text.len());
        let table = self.table();
        for c in text.chars() {
            if !push(&table, c, &mut bytes) {
                bytes.push(b'?');
            }
        }
        bytes
    }

    /// The text of bytes, or `None` where they hold what the page does not have.
    pub fn decode(self, bytes: &[u8]) -> Option<String> {
        match self.table() {
            Table::Utf8 => String::from_utf8(bytes.to_vec()).ok(),
            Table::Console(from, _) => from.decode_string_checked(bytes),
            Table::Standard(encoding) => encoding
                .decode_without_bom_handling_and_without_replacement(bytes)
                .map(Into::into),
        }
    }

    /// Decodes a stream.
    pub fn decoder(self) -> Decoder {
        match self.table() {
            Table::Utf8 => Decoder::Raw,
            Table::Console(from, _) => Decoder::Console(from),
            Table::Standard(encoding) => {
                Decoder::Standard(Box::new(encoding.new_decoder_without_bom_handling()))
            }
        }
    }
}

/// Appends a character's bytes; false where the page does not have it.
fn push(table: &Table, c: char, bytes: &mut Vec<u8>) -> bool {
    let mut utf8 = [0; 4];
    let text = c.encode_utf8(&mut utf8);
    match table {
        _ if c.is_ascii() => bytes.extend_from_slice(text.as_bytes()),
        Table::Utf8 => bytes.extend_from_slice(text.as_bytes()),
        Table::Console(_, to) => match to.get(&c) {
            Some(byte) => bytes.push(*byte),
            None => return false,
        },
        Table::Standard(encoding) => {
            let (encoded, _, replaced) = encoding.encode(text);
            if replaced {
                return false;
            }
            bytes.extend_from_slice(&encoded);
        }
    }
    true
}

/// Turns a stream in one encoding into UTF-8. What cannot be decoded becomes U+FFFD.
pub enum Decoder {
    /// Bytes stay as they are.
    Raw,
    /// A page of one byte a character.
    Console(&'static TableType),
    /// Any other encoding.
    Standard(Box<encoding_rs::Decoder>),
}

impl Decoder {
    /// Appends the next bytes to `out`; with `last` also what was begun.
    pub fn feed(&mut self, bytes: &[u8], last: bool, out: &mut Vec<u8>) {
        match self {
            Decoder::Raw => out.extend_from_slice(bytes),
            Decoder::Console(table) => out.extend_from_slice(table.decode_string_lossy(bytes).as_bytes()),
            Decoder::Standard(decoder) => {
                let room = decoder.max_utf8_buffer_length(bytes.len());
                let mut text = String::with_capacity(room.unwrap_or(bytes.len() * 3 + 16));
                let _ = decoder.decode_to_string(bytes, &mut text, last); // the room suffices by the length just asked for
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IO-07, the decoder.
    #[test]
    fn pages_of_consoles_and_of_windows_go_there_and_back() {
        for (page, text, bytes) in [
            (437, "prüfung ½", &b"pr\x81fung \xab"[..]),
            (850, "größe", b"gr\x94\xe1e"),
            (852, "żółć", b"\xbe\xa2\x88\x86"),
            (866, "привет", b"\xaf\xe0\xa8\xa2\xa5\xe2"),
            (932, "漢字", b"\x8a\xbf\x8e\x9a"),
            (936, "größe", b""),
            (1252, "größe €", b"gr\xf6\xdfe \x80"),
            (65001, "größe", "größe".as_bytes()),
        ] {
            let page = CodePage::of(page);
            if bytes.is_empty() {
                assert_eq!(page.encode(text), Err(2), "{page:?} has no ö");
                continue;
            }
            assert_eq!(page.encode(text).as_deref(), Ok(bytes), "{page:?}");
            assert_eq!(page.decode(bytes).as_deref(), Some(text));
            for size in [1, 2, 100] {
                let (mut decoder, mut out) = (page.decoder(), Vec::new());
                bytes
                    .chunks(size)
                    .for_each(|chunk| decoder.feed(chunk, false, &mut out));
                decoder.feed(&[], true, &mut out);
                assert_eq!(String::from_utf8(out).unwrap(), text);
            }
        }
    }

    #[test]
    fn what_a_page_does_not_have_is_told_by_its_place() {
        let oem = CodePage::of(437);
        assert_eq!(oem.encode("aü☃b"), Err(3));
        assert_eq!(oem.encode_lossy("aü☃b"), b"a\x81?b");
    }
}
