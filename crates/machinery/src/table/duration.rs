//! Ages as kubectl writes them: two units at most, fewer the longer ago.

use jiff::Timestamp;

/// How long ago an RFC 3339 time was: `95s`, `3d4h`; `<unknown>` if it is no time.
pub fn age_of(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => human_duration(now.duration_since(then).as_millis().div_euclid(1000) as i64),
        Err(_) => "<unknown>".into(),
    }
}

/// A duration in seconds: `95s`, `3m20s`, `5h12m`, `3d4h`, `2y31d`. One second below zero, the error of clocks that
/// nearly agree, is 0; anything further is `<invalid>`.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let one = |unit: i64, name: &str| format!("{}{name}", seconds / unit);
    let two = |unit: i64, name: &str, small: i64, small_name: &str| match seconds % unit / small {
        0 => one(unit, name),
        rest => format!("{}{name}{rest}{small_name}", seconds / unit),
    };
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        _ if seconds < 2 * MINUTE => one(1, "s"),
        _ if seconds < 10 * MINUTE => two(MINUTE, "m", 1, "s"),
        _ if seconds < 3 * HOUR => one(MINUTE, "m"),
        _ if seconds < 8 * HOUR => two(HOUR, "h", MINUTE, "m"),
        _ if seconds < 2 * DAY => one(HOUR, "h"),
        _ if seconds < 8 * DAY => two(DAY, "d", HOUR, "h"),
        _ if seconds < 2 * YEAR => one(DAY, "d"),
        _ if seconds < 8 * YEAR => two(YEAR, "y", DAY, "d"),
        _ => one(YEAR, "y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_texts_as_kubectl() {
        let (m, h, d, y) = (60, 3600, 86_400, 365 * 86_400);
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (9 * m + 59, "9m59s"),
            (10 * m, "10m"),
            (3 * h - 1, "179m"),
            (3 * h, "3h"),
            (7 * h + 59 * m, "7h59m"),
            (8 * h, "8h"),
            (2 * d - 1, "47h"),
            (2 * d, "2d"),
            (7 * d + 23 * h, "7d23h"),
            (8 * d, "8d"),
            (2 * y - 1, "729d"),
            (2 * y, "2y"),
            (2 * y + 31 * d, "2y31d"),
            (8 * y, "8y"),
        ] {
            assert_eq!(human_duration(seconds), text);
        }
    }

    #[test]
    fn ages_count_whole_seconds() {
        let now = Timestamp::constant(1_800_000_000, 0);
        assert_eq!(age_of("2027-01-15T07:59:58.100000Z", now), "1s");
        assert_eq!(age_of("2027-01-15T08:00:00.5Z", now), "0s");
        assert_eq!(age_of("", now), "<unknown>");
    }
}
