//! Kubernetes-style durations in manifests: `90s`, `1h30m`, `500ms`.

use std::{fmt::Write as _, time::Duration};

/// Why a text is no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is nothing to read.
    #[error("is empty; write for example \"90s\" or \"1h30m\"")]
    Empty,
    /// A number without a unit, as in `90`.
    #[error("has a number without a unit; write for example \"90s\"")]
    NoUnit,
    /// A unit that is not known.
    #[error("has an unknown unit; known are ms, s, m and h")]
    UnknownUnit,
    /// Something that is no number where one must stand.
    #[error("is not a duration; write for example \"90s\" or \"1h30m\"")]
    NoNumber,
    /// Longer than fits.
    #[error("is too long; the limit is 10000h")]
    TooLong,
}

const LIMIT: Duration = Duration::from_secs(10_000 * 3600);

/// Reads a duration: one or more of `<number><unit>`, units ms, s, m, h, in any order. Negative ones are refused.
pub fn parse(text: &str) -> Result<Duration, ParseError> {
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let number: f64 = number.parse().map_err(|_| ParseError::NoNumber)?;
        let letters = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let seconds = match unit {
            "" => return Err(ParseError::NoUnit),
            "ms" => number / 1000.0,
            "s" => number,
            "m" => number * 60.0,
            "h" => number * 3600.0,
            _ => return Err(ParseError::UnknownUnit),
        };
        let part = Duration::try_from_secs_f64(seconds).map_err(|_| ParseError::TooLong)?;
        total = total
            .checked_add(part)
            .filter(|t| *t <= LIMIT)
            .ok_or(ParseError::TooLong)?;
        rest = tail;
    }
    Ok(total)
}

/// Writes a duration as people write it, to the second above a second: `1h30m`, `45s`, `250ms`.
pub fn format(duration: Duration) -> String {
    let (seconds, ms) = (duration.as_secs(), duration.subsec_millis());
    if seconds == 0 {
        return if ms == 0 { "0s".into() } else { format!("{ms}ms") };
    }
    let mut text = String::new();
    for (value, unit) in [
        (seconds / 3600, 'h'),
        (seconds / 60 % 60, 'm'),
        (seconds % 60, 's'),
    ] {
        if value > 0 {
            let _ = write!(text, "{value}{unit}"); // writing to a String cannot fail
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn says_what_is_wrong() {
        assert_eq!(parse(""), Err(ParseError::Empty));
        assert_eq!(parse("90"), Err(ParseError::NoUnit));
        assert_eq!(parse("5d"), Err(ParseError::UnknownUnit));
        assert_eq!(parse("-5s"), Err(ParseError::NoNumber));
        assert_eq!(parse("s"), Err(ParseError::NoNumber));
        assert_eq!(parse("1..5s"), Err(ParseError::NoNumber));
        assert_eq!(parse("99999999999999999999h"), Err(ParseError::TooLong));
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["1h30m", "45s", "250ms", "0s", "2h", "1h1s"] {
            assert_eq!(parse(text).map(format).as_deref(), Ok(text));
        }
    }
}
