//! "A number or a percentage", as in `parallelism: 10%`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, fmt};

/// A count, or a percentage of a base that depends on the field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// A plain number.
    Count(i32),
    /// `"25%"`, kept as written.
    Percent(String),
}

/// Which way a percentage rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// Up, at least 1: parallelism, wave sizes.
    Up,
    /// Down: maxFailures.
    Down,
    /// Down, at least 1: maxUnavailable.
    DownAtLeastOne,
}

impl Amount {
    /// The percentage, if it is one and well formed: 0 to 100.
    pub fn percent(&self) -> Option<u8> {
        match self {
            Amount::Count(_) => None,
            Amount::Percent(text) => {
                let digits = text.strip_suffix('%')?;
                let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
                digits.parse().ok().filter(|p| plain && *p <= 100)
            }
        }
    }

    /// Whether it is a number from 0 up or a percentage from 0 to 100.
    pub fn is_valid(&self) -> bool {
        match self {
            Amount::Count(n) => *n >= 0,
            Amount::Percent(_) => self.percent().is_some(),
        }
    }

    /// The count it stands for, given the base of the percentage. A malformed one counts as zero: validation refuses
    /// it, so it can only come from a server that checks less, and nothing may start on a guess.
    pub fn of(&self, base: u32, round: Round) -> u32 {
        let exact = match self {
            Amount::Count(n) => u32::try_from(*n).unwrap_or(0),
            Amount::Percent(_) => {
                let hundredths = u64::from(self.percent().unwrap_or(0)) * u64::from(base);
                let whole = if round == Round::Up {
                    hundredths.div_ceil(100)
                } else {
                    hundredths / 100
                };
                u32::try_from(whole).unwrap_or(u32::MAX)
            }
        };
        match round {
            Round::Down => exact,
            Round::Up | Round::DownAtLeastOne => exact.max(1),
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Count(n) => n.fmt(f),
            Amount::Percent(p) => f.write_str(p),
        }
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": 4,
            "minimum": 0,
            "maximum": 2147483647,
            "pattern": "^(100|[0-9]{1,2})%$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn percent(text: &str) -> Amount {
        Amount::Percent(text.into())
    }

    #[test]
    fn percentages_round_as_each_field_says() {
        assert_eq!(percent("10%").of(212, Round::Up), 22);
        assert_eq!(percent("1%").of(3, Round::Up), 1);
        assert_eq!(percent("2%").of(99, Round::Down), 1);
        assert_eq!(percent("2%").of(49, Round::Down), 0);
        assert_eq!(percent("25%").of(3, Round::DownAtLeastOne), 1);
        assert_eq!(Amount::Count(0).of(9, Round::Up), 1);
        assert_eq!(Amount::Count(0).of(9, Round::Down), 0);
    }

    #[test]
    fn malformed_amounts_are_seen() {
        for bad in ["101%", "-1%", "10", "%", "1.5%", "+5%", "999%", ""] {
            assert!(!percent(bad).is_valid(), "{bad}");
        }
        assert!(!Amount::Count(-1).is_valid());
        assert!(percent("100%").is_valid());
    }

    proptest! {
        #[test]
        fn never_more_than_the_base_nor_off_by_more_than_one(p in 0u8..=100, base in 1u32..=1_000_000) {
            let amount = percent(&format!("{p}%"));
            let (down, up) = (amount.of(base, Round::Down), amount.of(base, Round::Up));
            prop_assert!(down <= base && up <= base);
            prop_assert!(up.max(1) - down <= 1);
        }
    }
}
