//! Kubernetes quantities: `100m`, `64Mi`, `2`, `1.5Gi`, `1e3`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// An amount of a resource as written; [`Quantity::milli`] and [`Quantity::value`] read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Quantity(#[schemars(schema_with = "schema")] pub String);

fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 32,
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    })
}

impl Quantity {
    /// The amount in whole units, rounded up; `None` where it is malformed, negative or too large.
    pub fn value(&self) -> Option<u64> {
        self.scaled(1)
    }

    /// The amount in thousandths (CPU), rounded up; `None` where it is malformed, negative or too large.
    pub fn milli(&self) -> Option<u64> {
        self.scaled(1000)
    }

    fn scaled(&self, factor: u32) -> Option<u64> {
        let text = self.0.trim();
        let end = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at(end);
        let unit: f64 = match suffix {
            "" => 1.0,
            "n" => 1e-9,
            "u" => 1e-6,
            "m" => 1e-3,
            "k" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            "P" => 1e15,
            "E" => 1e18,
            "Ki" => 1024.0,
            "Mi" => 1_048_576.0,
            "Gi" => 1_073_741_824.0,
            "Ti" => 1_099_511_627_776.0,
            "Pi" => 1_125_899_906_842_624.0,
            "Ei" => 1_152_921_504_606_846_976.0,
            exponent => {
                let digits = exponent.strip_prefix(['e', 'E'])?;
                10f64.powi(digits.parse::<i16>().ok()?.into())
            }
        };
        let number: f64 = number.parse().ok()?;
        let exact = number * unit * f64::from(factor);
        // a billionth below the next whole number is a rounding error of the arithmetic, not of the user
        let rounded = (exact - 1e-6).ceil().max(0.0);
        (rounded <= 9.0e18).then_some(rounded as u64)
    }
}

/// Takes a bare number too (`cpu: 2`), as Kubernetes does.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(serde_json::Number),
            Text(String),
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Number(n) => Self(n.to_string()),
            Written::Text(t) => Self(t),
        })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_all_suffixes() {
        for (text, value, milli) in [
            ("2", 2, 2000),
            ("100m", 1, 100),
            ("64Mi", 64 << 20, (64 << 20) * 1000),
            ("1.5Gi", 3 << 29, (3 << 29) * 1000),
            ("1e3", 1000, 1_000_000),
            ("0.1", 1, 100),
            ("0", 0, 0),
            (".5", 1, 500),
        ] {
            let q = Quantity::from(text);
            assert_eq!((q.value(), q.milli()), (Some(value), Some(milli)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_quantity() {
        for text in ["", "-1", "abc", "1x", "1ee3", "1e99", "..", "1 Gi"] {
            assert_eq!(Quantity::from(text).value(), None, "{text}");
        }
    }
}
