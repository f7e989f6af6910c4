//! The log format: `<RFC3339Nano> stdout|stderr F|P <payload>`, one record a line; `P` is a piece of a line that goes on in the next
//! record of the same stream. Source: the Kubernetes CRI logging format.

use std::borrow::Cow;

/// A whole line a step printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When its first piece was written.
    pub time: String,
    /// Whether it came from stderr.
    pub is_error: bool,
    /// What it says, without the line feed.
    pub text: String,
}

/// Puts lines together from bytes as they arrive.
#[derive(Default)]
pub struct Reader {
    buffer: Vec<u8>,
    /// Unfinished lines of stdout and stderr.
    pieces: [Option<(String, Vec<u8>)>; 2],
}

impl Reader {
    /// Takes bytes and gives the lines they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Line> {
        self.buffer.extend_from_slice(bytes);
        let mut lines = Vec::new();
        let mut start = 0;
        while let Some(length) = self.buffer[start..].iter().position(|b| *b == b'\n') {
            let record = &self.buffer[start..start + length];
            lines.extend(take(&mut self.pieces, record));
            start += length + 1;
        }
        self.buffer.drain(..start);
        lines
    }

    /// What is left at the end: lines without their end.
    pub fn finish(mut self) -> Vec<Line> {
        let record = std::mem::take(&mut self.buffer);
        let mut lines: Vec<Line> = if record.is_empty() {
            Vec::new()
        } else {
            take(&mut self.pieces, &record).into_iter().collect()
        };
        for (stream, piece) in self.pieces.into_iter().enumerate() {
            lines.extend(piece.map(|(time, text)| Line {
                time,
                is_error: stream == 1,
                text: decode(&text),
            }));
        }
        lines
    }
}

fn take(pieces: &mut [Option<(String, Vec<u8>)>; 2], record: &[u8]) -> Option<Line> {
    let mut fields = record.splitn(4, |b| *b == b' ');
    let time = String::from_utf8_lossy(fields.next()?).into_owned();
    let is_error = fields.next()? == b"stderr";
    let is_piece = fields.next()? == b"P";
    let payload = fields.next().unwrap_or_default();
    let slot = &mut pieces[usize::from(is_error)];
    let (time, mut text) = slot.take().unwrap_or((time, Vec::new()));
    text.extend_from_slice(payload);
    if is_piece {
        *slot = Some((time, text));
        return None;
    }
    Some(Line {
        time,
        is_error,
        text: decode(&text),
    })
}

fn decode(bytes: &[u8]) -> String {
    let text: Cow<'_, str> = String::from_utf8_lossy(bytes);
    text.strip_suffix('\r').unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn bytes_may_be_cut_anywhere() {
        let log = b"2026-01-01T00:00:00.1Z stdout F one\n2026-01-01T00:00:00.2Z stderr F two words\n2026-01-01T00:00:00.3Z stdout F \n";
        for cut in 0..log.len() {
            let mut reader = Reader::default();
            let mut lines = reader.push(&log[..cut]);
            lines.extend(reader.push(&log[cut..]));
            assert_eq!(texts(&lines), ["one", "two words", ""], "cut at {cut}");
            assert_eq!(
                lines.iter().map(|l| l.is_error).collect::<Vec<_>>(),
                [false, true, false]
            );
            assert!(reader.finish().is_empty());
        }
    }

    #[test]
    fn pieces_of_a_line_are_joined_each_stream_on_its_own() {
        let mut reader = Reader::default();
        let lines = reader.push(b"1 stdout P ab\n2 stderr F err\n3 stdout P cd\n4 stdout F ef\n");
        assert_eq!(texts(&lines), ["err", "abcdef"]);
        assert_eq!(lines[1].time, "1");
    }

    #[test]
    fn an_unfinished_line_is_not_lost() {
        let mut reader = Reader::default();
        assert!(
            reader
                .push(b"1 stdout P never ended\n2 stderr F cut of")
                .is_empty()
        );
        assert_eq!(texts(&reader.finish()), ["cut of", "never ended"]);
    }
}
