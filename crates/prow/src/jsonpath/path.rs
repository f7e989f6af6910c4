//! One JSONPath: a chain of selectors from the root or the current value.

use super::show;
use serde_json::Value;
use std::str::FromStr;

/// A parsed path.
#[derive(Clone, Debug)]
pub struct Path {
    from_root: bool,
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    Names(Vec<String>),
    Deep(String),
    All,
    Index(i64),
    Slice(Option<i64>, Option<i64>),
    Filter(Path, Option<(bool, String)>),
}

impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let from_root = text.starts_with('$');
        let mut rest = text.trim_start_matches(['$', '@']);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(tail) = rest.strip_prefix("..") {
                let (name, tail) = name(tail);
                steps.push(Step::Deep(name));
                rest = tail;
            } else if let Some(tail) = rest.strip_prefix('.') {
                if tail.is_empty() || tail.starts_with('[') {
                    rest = tail;
                    continue;
                }
                let (name, tail) = name(tail);
                steps.push(if name == "*" {
                    Step::All
                } else {
                    Step::Names(vec![name])
                });
                rest = tail;
            } else if rest.starts_with('[') {
                let close = closing(rest).ok_or_else(|| format!("JSONPath: a [ is not closed in {text}"))?;
                steps.push(bracket(&rest[1..close])?);
                rest = &rest[close + 1..];
            } else {
                return Err(format!("JSONPath: {rest:?} makes no sense in {text}"));
            }
        }
        Ok(Self { from_root, steps })
    }
}

/// A name up to the next selector; a backslash takes away the meaning of the next character.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '\\' => name.extend(chars.next().map(|(_, c)| c)),
            '.' | '[' => return (name, &text[i..]),
            c => name.push(c),
        }
    }
    (name, "")
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => depth += 1,
            (None, ']') if depth == 1 => return Some(i),
            (None, ']') => depth -= 1,
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Result<Step, String> {
    let inner = inner.trim();
    let wrong = || format!("JSONPath: [{inner}] is no index, slice, name or filter");
    if inner == "*" {
        return Ok(Step::All);
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|f| f.strip_suffix(')')) {
        let filter = filter.trim();
        if !filter.starts_with('@') {
            return Err(wrong());
        }
        for (operator, equal) in [("==", true), ("!=", false)] {
            if let Some((path, value)) = filter.split_once(operator) {
                let value = value.trim().trim_matches(['"', '\'']).to_owned();
                return Ok(Step::Filter(path.trim().parse()?, Some((equal, value))));
            }
        }
        return Ok(Step::Filter(filter.parse()?, None));
    }
    if inner.starts_with(['"', '\'']) {
        return Ok(Step::Names(
            inner
                .split(',')
                .map(|n| n.trim().trim_matches(['"', '\'']).to_owned())
                .collect(),
        ));
    }
    let number = |text: &str| text.trim().parse::<i64>().map_err(|_| wrong());
    match inner.split_once(':') {
        Some((from, to)) => {
            let bound = |text: &str| {
                if text.trim().is_empty() {
                    Ok(None)
                } else {
                    number(text).map(Some)
                }
            };
            Ok(Step::Slice(bound(from)?, bound(to)?))
        }
        None => Ok(Step::Index(number(inner)?)),
    }
}

impl Path {
    /// All values it leads to.
    pub fn find<'a>(&self, root: &'a Value, here: &'a Value) -> Result<Vec<&'a Value>, String> {
        let mut found = vec![if self.from_root { root } else { here }];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.apply(root, value, &mut next)?;
            }
            found = next;
        }
        Ok(found)
    }
}

impl Step {
    fn apply<'a>(&self, root: &'a Value, value: &'a Value, next: &mut Vec<&'a Value>) -> Result<(), String> {
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            Self::Names(names) => next.extend(names.iter().filter_map(|name| value.get(name))),
            Self::Deep(name) => deep(name, value, next),
            Self::All => match value {
                Value::Object(map) => next.extend(map.values()),
                _ => next.extend(list),
            },
            Self::Index(index) => {
                let at = from_end(*index, list.len());
                next.push(list.get(at).ok_or_else(|| {
                    format!(
                        "JSONPath: index {index} is beyond the {} values there",
                        list.len()
                    )
                })?);
            }
            Self::Slice(from, to) => {
                let from = from.map_or(0, |i| from_end(i, list.len())).min(list.len());
                let to = to.map_or(list.len(), |i| from_end(i, list.len())).min(list.len());
                next.extend(list.get(from..to).unwrap_or_default());
            }
            Self::Filter(path, comparison) => {
                for item in list {
                    let found = path.find(root, item)?;
                    let keep = match comparison {
                        None => !found.is_empty(),
                        Some((equal, text)) => found.first().is_some_and(|v| (show(v) == *text) == *equal),
                    };
                    if keep {
                        next.push(item);
                    }
                }
            }
        }
        Ok(())
    }
}

fn from_end(index: i64, len: usize) -> usize {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let at = if index < 0 { len + index } else { index };
    usize::try_from(at.max(0)).unwrap_or(usize::MAX)
}

fn deep<'a>(name: &str, value: &'a Value, next: &mut Vec<&'a Value>) {
    if name.is_empty() {
        next.push(value);
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == name {
                    next.push(value);
                }
                deep(name, value, next);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| deep(name, value, next)),
        _ => {}
    }
}
