//! The JSONPath of CRD printer columns: fields, indexes, `[*]` and `[?(@.type=="Ready")]`.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// Items whose field (a dotted path) equals, or does not equal, a value.
    Filter {
        path: Vec<String>,
        equal: bool,
        value: Value,
    },
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Parses `.status.conditions[?(@.type=="Ready")].status`, with or without braces; `None` if it is more than this
    /// subset.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut rest = text
            .strip_prefix('{')
            .and_then(|t| t.strip_suffix('}'))
            .unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let step;
            (step, rest) = match rest.strip_prefix('[') {
                Some(inside) => bracket(inside)?,
                None => field(rest.strip_prefix('.')?)?,
            };
            steps.push(step);
        }
        Some(Self(steps))
    }

    /// All values at the path.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        self.0.iter().fold(vec![object], |found, step| {
            found.into_iter().flat_map(|v| step.take(v)).collect()
        })
    }
}

/// A field name up to the next dot or bracket; `\.` is a dot in the name.
fn field(text: &str) -> Option<(Step, &str)> {
    let (mut name, mut escaped) = (String::new(), false);
    let mut end = text.len();
    for (i, c) in text.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            '.' | '[' if !escaped => {
                end = i;
                break;
            }
            c => {
                name.push(c);
                escaped = false;
            }
        }
    }
    (!name.is_empty()).then(|| {
        (
            if name == "*" { Step::All } else { Step::Field(name) },
            &text[end..],
        )
    })
}

/// What follows a `[`.
fn bracket(text: &str) -> Option<(Step, &str)> {
    if let Some(filter) = text.strip_prefix("?(") {
        let end = filter.find(")]")?;
        return Some((filter_step(&filter[..end])?, &filter[end + 2..]));
    }
    let (inside, rest) = text.split_once(']')?;
    let step = match inside {
        "*" => Step::All,
        quoted if quoted.starts_with(['\'', '"']) => Step::Field(literal(quoted)?.as_str()?.to_owned()),
        index => Step::Index(index.parse().ok()?),
    };
    Some((step, rest))
}

fn filter_step(text: &str) -> Option<Step> {
    let (path, equal, value) = match (text.split_once("=="), text.split_once("!=")) {
        (Some((path, value)), _) => (path, true, value),
        (_, Some((path, value))) => (path, false, value),
        _ => return None,
    };
    let path = path
        .trim()
        .strip_prefix("@.")?
        .split('.')
        .map(str::to_owned)
        .collect();
    Some(Step::Filter {
        path,
        equal,
        value: literal(value.trim())?,
    })
}

fn literal(text: &str) -> Option<Value> {
    match text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')) {
        Some(quoted) => Some(quoted.into()),
        None => serde_json::from_str(text).ok(),
    }
}

impl Step {
    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match (self, value) {
            (Step::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
            (Step::Index(i), Value::Array(list)) => {
                let i = if *i < 0 { *i + list.len() as i64 } else { *i };
                usize::try_from(i)
                    .ok()
                    .and_then(|i| list.get(i))
                    .into_iter()
                    .collect()
            }
            (Step::All, Value::Array(list)) => list.iter().collect(),
            (Step::All, Value::Object(map)) => map.values().collect(),
            (Step::Filter { path, equal, value }, Value::Array(list)) => {
                let at = |item: &'a Value| path.iter().try_fold(item, |v, name| v.get(name));
                list.iter()
                    .filter(|item| at(item).is_some_and(|v| (v == value) == *equal))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find(path: &str) -> Value {
        let object = json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "False", "n": {"x": 1}}, {"type": "Complete", "status": "True"}], "waiting": []},
            "metadata": {"labels": {"prow.windows/role": "web"}}});
        JsonPath::parse(path)
            .unwrap()
            .find(&object)
            .into_iter()
            .cloned()
            .collect()
    }

    #[test]
    fn paths_of_printer_columns() {
        assert_eq!(find(".status.phase"), json!(["Running"]));
        assert_eq!(find("{.status.phase}"), json!(["Running"]));
        assert_eq!(
            find(r#".status.conditions[?(@.type=="Ready")].status"#),
            json!(["False"])
        );
        assert_eq!(
            find(".status.conditions[?(@.type != 'Ready')].status"),
            json!(["True"])
        );
        assert_eq!(find(".status.conditions[?(@.n.x==1)].type"), json!(["Ready"]));
        assert_eq!(find(".status.conditions[*].type"), json!(["Ready", "Complete"]));
        assert_eq!(find(".status.conditions[-1].type"), json!(["Complete"]));
        assert_eq!(find(r".metadata.labels.prow\.windows/role"), json!(["web"]));
        assert_eq!(find(".metadata.labels['prow.windows/role']"), json!(["web"]));
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        for path in [
            ".status.nope",
            ".status.waiting[0].reason",
            ".status.phase.deeper",
            ".status.conditions[9]",
        ] {
            assert_eq!(find(path), json!([]), "{path}");
        }
    }

    #[test]
    fn what_is_beyond_the_subset_is_refused() {
        for path in [
            "status",
            "..phase",
            ".a[",
            ".a[x]",
            ".a[?(@.b>1)]",
            ".a[?(b==1)]",
            ".a[1:2]",
        ] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
