//! Label selectors: `env=prod,tier in (web,db),!legacy`.

use super::Invalid;
use crate::metadata::{label_key, label_value};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use std::{fmt, str::FromStr};

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is one of the values: `=`, `==`, `in`.
    In,
    /// The label is absent or none of the values: `!=`, `notin`.
    NotIn,
    /// The label is there: `key`.
    Exists,
    /// The label is not there: `!key`.
    DoesNotExist,
}

/// One part of a selector; all parts must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Label key.
    pub key: String,
    /// How it compares.
    pub operator: Operator,
    /// The values, sorted; empty for the existence operators.
    pub values: Vec<String>,
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let among = |v: &str| self.values.iter().any(|w| w == v);
        match self.operator {
            Operator::In => value.is_some_and(among),
            Operator::NotIn => !value.is_some_and(among),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }

    fn checked(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, String> {
        label_key(key).map_err(|why| format!("key \"{key}\": {why}"))?;
        for value in &values {
            label_value(value).map_err(|why| format!("value \"{value}\" of key \"{key}\": {why}"))?;
        }
        values.sort();
        values.dedup();
        Ok(Self {
            key: key.into(),
            operator,
            values,
        })
    }
}

/// A label selector. The default one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The parts.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object matches; `label` looks a label up.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|r| r.holds(label(&r.key)))
    }

    /// The value a label must have, if the selector fixes it to one; for indexes.
    pub fn exact(&self, key: &str) -> Option<&str> {
        self.requirements
            .iter()
            .find_map(|r| match (r.operator, r.values.as_slice()) {
                (Operator::In, [only]) if r.key == key => Some(only.as_str()),
                _ => None,
            })
    }

    /// A selector from an object: `{matchLabels, matchExpressions}`. An empty object matches everything; what an
    /// absent one means is the caller's to say.
    pub fn of_object(selector: &meta::LabelSelector) -> Result<Self, Invalid> {
        let mut requirements = Vec::new();
        for (key, value) in selector.match_labels.iter().flatten() {
            let one = Requirement::checked(key, Operator::In, vec![value.clone()]);
            requirements.push(one.map_err(|why| Invalid(format!("matchLabels: {why}")))?);
        }
        for (i, e) in selector.match_expressions.iter().flatten().enumerate() {
            let at = |why: String| Invalid(format!("matchExpressions[{i}]: {why}"));
            let values = e.values.clone().unwrap_or_default();
            let operator = match (e.operator.as_str(), values.is_empty()) {
                ("In", false) => Operator::In,
                ("NotIn", false) => Operator::NotIn,
                ("Exists", true) => Operator::Exists,
                ("DoesNotExist", true) => Operator::DoesNotExist,
                ("In" | "NotIn", true) => return Err(at(format!("{} needs values", e.operator))),
                ("Exists" | "DoesNotExist", false) => {
                    return Err(at(format!("{} takes no values", e.operator)));
                }
                (other, _) => {
                    return Err(at(format!(
                        "operator \"{other}\" is none of In, NotIn, Exists, DoesNotExist"
                    )));
                }
            };
            requirements.push(Requirement::checked(&e.key, operator, values).map_err(at)?);
        }
        Ok(Self { requirements })
    }
}

impl FromStr for LabelSelector {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let requirements = split(text)
            .into_iter()
            .map(|part| {
                parse(part).map_err(|why| {
                    Invalid(format!(
                        "unable to parse label selector \"{text}\": requirement \"{part}\": {why}"
                    ))
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { requirements })
    }
}

/// Cuts at the commas that are not in parentheses. Nothing at all is no requirement.
fn split(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn parse(part: &str) -> Result<Requirement, String> {
    if part.is_empty() {
        return Err("is empty; remove the extra comma".into());
    }
    if let Some(key) = part.strip_prefix('!') {
        return Requirement::checked(key.trim(), Operator::DoesNotExist, Vec::new());
    }
    if let Some(set) = part.strip_suffix(')') {
        let (head, list) = set.split_once('(').ok_or("has `)` without `(`")?;
        let mut words = head.split_whitespace();
        let operator = match (words.next(), words.next(), words.next()) {
            (Some(_), Some("in"), None) => Operator::In,
            (Some(_), Some("notin"), None) => Operator::NotIn,
            _ => return Err("wants `key in (a,b)` or `key notin (a,b)`".into()),
        };
        let key = head.split_whitespace().next().unwrap_or_default();
        let values = list.split(',').map(|v| v.trim().to_owned()).collect();
        return Requirement::checked(key, operator, values);
    }
    if part.contains('(') {
        return Err("has `(` without `)`".into());
    }
    let (key, operator, value) = if let Some((key, value)) = part.split_once("!=") {
        (key, Operator::NotIn, value)
    } else if let Some((key, value)) = part.split_once("==") {
        (key, Operator::In, value)
    } else if let Some((key, value)) = part.split_once('=') {
        (key, Operator::In, value)
    } else {
        return Requirement::checked(part, Operator::Exists, Vec::new());
    };
    Requirement::checked(key.trim(), operator, vec![value.trim().to_owned()])
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.requirements.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { "," })?;
            match (r.operator, r.values.as_slice()) {
                (Operator::Exists, _) => f.write_str(&r.key)?,
                (Operator::DoesNotExist, _) => write!(f, "!{}", r.key)?,
                (Operator::In, [one]) => write!(f, "{}={one}", r.key)?,
                (Operator::NotIn, [one]) => write!(f, "{}!={one}", r.key)?,
                (Operator::In, all) => write!(f, "{} in ({})", r.key, all.join(","))?,
                (Operator::NotIn, all) => write!(f, "{} notin ({})", r.key, all.join(","))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let selector: LabelSelector = selector.parse().unwrap();
        selector.matches(|key| labels.iter().find(|(k, _)| *k == key).map(|(_, v)| *v))
    }

    fn refusal(selector: &str) -> String {
        selector.parse::<LabelSelector>().unwrap_err().to_string()
    }

    #[test]
    fn every_operator_on_a_label_that_is_there() {
        let web = [("role", "web"), ("env", "")];
        for yes in [
            "role=web",
            "role==web",
            "role in (db, web)",
            "role notin (db)",
            "role!=db",
            "role",
            "!gone",
            "env=",
        ] {
            assert!(matches(yes, &web), "{yes}");
        }
        for no in [
            "role=db",
            "role in (db)",
            "role notin (web,db)",
            "role!=web",
            "!role",
            "gone",
            "gone=x",
        ] {
            assert!(!matches(no, &web), "{no}");
        }
    }

    #[test]
    fn an_absent_label_satisfies_the_negative_operators_only() {
        assert!(matches("role!=web", &[]) && matches("role notin (web)", &[]) && matches("!role", &[]));
        assert!(!matches("role=", &[]) && !matches("role in (web)", &[]));
    }

    #[test]
    fn all_requirements_must_hold_and_none_is_everything() {
        let labels = [("a", "1"), ("b", "2")];
        assert!(matches("a=1,b in (2,3),!c", &labels));
        assert!(!matches("a=1,b=3", &labels));
        assert!(matches("", &labels) && matches("  ", &labels));
    }

    #[test]
    fn keys_may_have_a_domain() {
        assert!(matches("prow.windows/role=web", &[("prow.windows/role", "web")]));
        assert!(refusal("a/b/c=web").contains("a/b/c"));
    }

    #[test]
    fn errors_quote_the_requirement() {
        for (bad, part) in [
            ("a=1,b in (x", "b in (x"),
            ("a=1,,b", "\"\""),
            ("x y=1", "x y=1"),
            ("a=b=c", "a=b=c"),
            ("a within (b)", "a within (b)"),
            ("=x", "=x"),
            ("a>1", "a>1"),
            ("a=sp ace", "a=sp ace"),
        ] {
            let text = refusal(bad);
            assert!(
                text.contains(&format!("requirement \"{}", part.trim_matches('"'))),
                "{bad}: {text}"
            );
        }
    }

    #[test]
    fn an_open_parenthesis_is_called_so() {
        assert!(refusal("a in (b").ends_with("has `(` without `)`"));
    }

    #[test]
    fn display_reads_back() {
        for text in ["a=1,b!=2,c in (x,y),d notin (p,q),e,!f", ""] {
            let selector: LabelSelector = text.parse().unwrap();
            assert_eq!(selector.to_string(), text);
        }
        assert_eq!(
            "b in (z,a,z)".parse::<LabelSelector>().unwrap().to_string(),
            "b in (a,z)"
        );
    }

    #[test]
    fn selector_objects() {
        let object = |json: serde_json::Value| {
            LabelSelector::of_object(&serde_json::from_value(json).unwrap()).map(|s| s.to_string())
        };
        let both = serde_json::json!({"matchLabels": {"a": "1"}, "matchExpressions": [
            {"key": "b", "operator": "NotIn", "values": ["2"]}, {"key": "c", "operator": "Exists"}]});
        assert_eq!(object(both).unwrap(), "a=1,b!=2,c");
        assert_eq!(object(serde_json::json!({})).unwrap(), "");
        let bad = serde_json::json!({"matchExpressions": [{"key": "b", "operator": "in", "values": ["2"]}]});
        assert!(
            object(bad)
                .unwrap_err()
                .to_string()
                .contains("matchExpressions[0]: operator \"in\"")
        );
        let empty = serde_json::json!({"matchExpressions": [{"key": "b", "operator": "In"}]});
        assert!(object(empty).unwrap_err().to_string().contains("needs values"));
    }

    #[test]
    fn exact_finds_the_one_value_an_index_can_use() {
        let selector: LabelSelector = "a=1,b in (2,3),c!=4".parse().unwrap();
        assert_eq!(
            (selector.exact("a"), selector.exact("b"), selector.exact("c")),
            (Some("1"), None, None)
        );
    }
}
