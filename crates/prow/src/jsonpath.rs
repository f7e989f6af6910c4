//! kubectl's JSONPath templates: `{.items[*].metadata.name}`, `{range .items[*]}{.metadata.name}{"\n"}{end}`.
//!
//! A template is text with actions in braces. An action is a path, a quoted text, `range PATH` or `end`. A path is made of `.name`,
//! `['name']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `..name` and `[?(@.name=="text")]` (also `!=`, and without a comparison: it is there); a
//! dot within a name is written `\.`. As in kubectl, a missing field is an error within an array index and otherwise empty.
//! Source: the Kubernetes reference page on JSONPath support.

mod path;

pub use path::Path;

use serde_json::Value;
use std::str::FromStr;

/// A parsed template.
#[derive(Clone, Debug, Default)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Path(Path),
    Range(Path, Vec<Part>),
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // as in kubectl, a bare path may leave out braces and the leading dot
        let text = text.trim_matches('\'');
        let whole = if text.contains('{') {
            text.to_owned()
        } else {
            format!("{{.{}}}", text.trim_start_matches('.'))
        };
        let mut stack: Vec<(Option<Path>, Vec<Part>)> = vec![(None, Vec::new())];
        let mut rest = whole.as_str();
        while let Some(open) = rest.find('{') {
            push_text(&mut stack, &rest[..open]);
            let close = end_of_action(&rest[open..]).ok_or("JSONPath: a { is not closed")? + open;
            let action = rest[open + 1..close].trim();
            rest = &rest[close + 1..];
            if action == "end" {
                match stack.pop() {
                    Some((Some(path), parts)) => push(&mut stack, Part::Range(path, parts)),
                    _ => return Err("JSONPath: {end} without {range}".into()),
                }
            } else if let Some(path) = action.strip_prefix("range ") {
                stack.push((Some(path.trim().parse()?), Vec::new()));
            } else if action.starts_with('"') || action.starts_with('\'') {
                push_text(&mut stack, &unquote(action)?);
            } else {
                push(&mut stack, Part::Path(action.parse()?));
            }
        }
        push_text(&mut stack, rest);
        match stack.pop() {
            Some((None, parts)) if stack.is_empty() => Ok(Self(parts)),
            _ => Err("JSONPath: {range} without {end}".into()),
        }
    }
}

fn push(stack: &mut [(Option<Path>, Vec<Part>)], part: Part) {
    if let Some((_, parts)) = stack.last_mut() {
        parts.push(part);
    }
}

fn push_text(stack: &mut [(Option<Path>, Vec<Part>)], text: &str) {
    if !text.is_empty() {
        push(stack, Part::Text(text.to_owned()));
    }
}

/// Index of the brace that closes the action at the start of `text`; braces in quotes do not count.
fn end_of_action(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match quote {
            _ if escaped => escaped = false,
            _ if c == '\\' => escaped = true,
            Some(q) if c == q => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '}' => return Some(i),
            None => {}
        }
    }
    None
}

fn unquote(text: &str) -> Result<String, String> {
    let quote = &text[..1];
    let inner = text[1..]
        .strip_suffix(quote)
        .ok_or("JSONPath: a text is not closed")?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some(other) => other,
                None => return Err("JSONPath: a text ends with a backslash".into()),
            },
            c => c,
        });
    }
    Ok(out)
}

impl Template {
    /// The text with every action replaced by what it picks from `root`.
    pub fn fill(&self, root: &Value) -> Result<String, String> {
        let mut out = String::new();
        fill(&self.0, root, root, &mut out)?;
        Ok(out)
    }
}

fn fill(parts: &[Part], root: &Value, here: &Value, out: &mut String) -> Result<(), String> {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Path(path) => {
                let found = path.find(root, here)?;
                out.push_str(&found.into_iter().map(show).collect::<Vec<_>>().join(" "));
            }
            Part::Range(path, inner) => {
                for value in path.find(root, here)? {
                    fill(inner, root, value, out)?;
                }
            }
        }
    }
    Ok(())
}

/// A value as text: strings bare, everything else as JSON.
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fill(template: &str) -> Result<String, String> {
        let root = json!({"items": [
            {"metadata": {"name": "a", "labels": {"kubernetes.io/os": "linux"}}, "n": 1, "conditions": [{"type": "Ready", "status": "True"}]},
            {"metadata": {"name": "b"}, "n": 2, "conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}]},
        ]});
        template.parse::<Template>()?.fill(&root)
    }

    #[test]
    fn picks_what_kubectl_picks() {
        for (template, text) in [
            ("{.items[*].metadata.name}", "a b"),
            ("{.items[0].metadata.name}", "a"),
            ("{.items[-1:].n}", "2"),
            ("{.items[-1].n}", "2"),
            ("{.items[0:1].n}", "1"),
            ("{$.items[0].n}", "1"),
            ("{..name}", "a b"),
            ("{.items[0]['metadata']['name']}", "a"),
            ("{.items[0].metadata.labels.kubernetes\\.io/os}", "linux"),
            ("{.items[0].metadata.labels}", "{\"kubernetes.io/os\":\"linux\"}"),
            ("{.items[?(@.metadata.name==\"b\")].n}", "2"),
            ("{.items[?(@.n!=1)].n}", "2"),
            ("{.items[?(@.metadata.labels)].n}", "1"),
            (
                "{.items[*].conditions[?(@.type==\"Ready\")].status}",
                "True False",
            ),
            (
                "{range .items[*]}{.metadata.name}{\"\\t\"}{.n}{\"\\n\"}{end}",
                "a\t1\nb\t2\n",
            ),
            ("name={.items[0].metadata.name};", "name=a;"),
            ("{.nothing.at.all}", ""),
            ("items[1].n", "2"),
            (
                "{.items[0]['metadata','n']}",
                "{\"name\":\"a\",\"labels\":{\"kubernetes.io/os\":\"linux\"}} 1",
            ),
        ] {
            assert_eq!(fill(template).as_deref(), Ok(text), "{template}");
        }
    }

    #[test]
    fn says_what_is_wrong_with_a_template() {
        for template in [
            "{.a",
            "{end}",
            "{range .items[*]}",
            "{.items[x]}",
            "{.items[?(n)]}",
            "{\"a}",
        ] {
            assert!(fill(template).is_err(), "{template}");
        }
    }
}
