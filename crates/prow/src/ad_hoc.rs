//! The Job behind `prow run`: one step, once on every chosen node.

use crate::outcome::usage;
use anyhow::Result;
use api::placement::{Operator, Requirement};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Which nodes, as typed.
#[derive(Debug, Default)]
pub struct Choice<'a> {
    /// Name of a Target.
    pub target: Option<&'a str>,
    /// A label selector, `role=web,tier!=test,zone in (a,b)`.
    pub selector: Option<&'a str>,
    /// Names of nodes.
    pub nodes: &'a [String],
    /// Names of nodes left out.
    pub exclude: &'a [String],
}

impl Choice<'_> {
    /// The fields of a Job's spec that choose these nodes.
    pub fn fields(&self) -> Result<Value> {
        if self.target.is_none()
            && self.selector.is_none_or(|text| text.trim().is_empty())
            && self.nodes.is_empty()
        {
            return Err(usage(
                "say where: --target NAME, --selector LABELS or --nodes NAMES (every node is --target all)",
            ));
        }
        let mut spec = json!({"completionMode": "PerNode"});
        if let Some(target) = self.target {
            spec["targetRef"] = json!({"name": target});
        }
        if !self.nodes.is_empty() {
            spec["nodeNames"] = json!(self.nodes);
        }
        if !self.exclude.is_empty() {
            spec["excludeNodes"] = json!(self.exclude);
        }
        let (labels, requirements) = selector(self.selector.unwrap_or_default())?;
        if !labels.is_empty() {
            spec["nodeSelector"] = json!(labels);
        }
        if !requirements.is_empty() {
            let terms = json!([{"matchExpressions": requirements}]);
            spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        }
        Ok(spec)
    }
}

/// A label selector in kubectl's words, as plain labels and everything else.
fn selector(text: &str) -> Result<(BTreeMap<String, String>, Vec<Requirement>)> {
    let mut labels = BTreeMap::new();
    let mut requirements = Vec::new();
    for part in split(text) {
        let part = part.trim();
        let requirement = |key: &str, operator, values: Vec<String>| Requirement {
            key: key.trim().to_owned(),
            operator,
            values,
        };
        if let Some((key, operator, values)) = set(part) {
            requirements.push(requirement(key, operator, values));
        } else if let Some((key, value)) = part.split_once("!=") {
            requirements.push(requirement(key, Operator::NotIn, vec![value.trim().to_owned()]));
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            labels.insert(key.trim().to_owned(), value.trim().to_owned());
        } else if let Some(key) = part.strip_prefix('!') {
            requirements.push(requirement(key, Operator::DoesNotExist, Vec::new()));
        } else if part.is_empty() || part.contains(char::is_whitespace) {
            return Err(usage(format!(
                "--selector {text:?} cannot be read at {part:?}: write role=web,tier!=test,zone in (a,b)"
            )));
        } else {
            requirements.push(requirement(part, Operator::Exists, Vec::new()));
        }
    }
    Ok((labels, requirements))
}

/// `zone in (a,b)` or `zone notin (a,b)`.
fn set(part: &str) -> Option<(&str, Operator, Vec<String>)> {
    let (head, values) = part.strip_suffix(')')?.split_once('(')?;
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    let (key, word) = head.trim().rsplit_once(char::is_whitespace)?;
    match word {
        "in" => Some((key, Operator::In, values)),
        "notin" => Some((key, Operator::NotIn, values)),
        _ => None,
    }
}

/// The parts between commas that are not in parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(selector: &str) -> Result<Value> {
        Choice {
            selector: Some(selector),
            ..Default::default()
        }
        .fields()
    }

    #[test]
    fn plain_labels_become_a_node_selector_and_the_rest_affinity() {
        let spec = fields("role=web, tier!=test,zone in (a, b),gpu,!old").unwrap();
        assert_eq!(spec["nodeSelector"], json!({"role": "web"}));
        let terms = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
        let words: Vec<String> = terms[0]["matchExpressions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| {
                format!(
                    "{} {} {}",
                    r["key"].as_str().unwrap(),
                    r["operator"].as_str().unwrap(),
                    r["values"]
                )
            })
            .collect();
        assert_eq!(
            words,
            [
                "tier NotIn [\"test\"]",
                "zone In [\"a\",\"b\"]",
                "gpu Exists null",
                "old DoesNotExist null"
            ]
        );
    }

    #[test]
    fn nobody_runs_on_every_host_by_leaving_something_out() {
        let error = Choice::default().fields().unwrap_err().to_string();
        assert!(error.contains("--target all"), "{error}");
        assert!(fields(" ").is_err());
    }

    #[test]
    fn a_selector_that_makes_no_sense_is_refused() {
        for text in ["role web", "a=b,,c=d", "zone within (a)"] {
            assert!(fields(text).is_err(), "{text}");
        }
    }
}
