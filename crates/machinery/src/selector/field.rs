//! Field selectors: `spec.nodeName=web03,metadata.name!=x`.

use super::Invalid;
use crate::kind::{Kind, Scope};
use serde_json::Value;
use std::{borrow::Cow, fmt, str::FromStr};

/// One part of a selector; all parts must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Path, such as `spec.nodeName`.
    pub path: String,
    /// The field has this value (true) or another (false).
    pub equal: bool,
    /// The value; an absent field is the empty text.
    pub value: String,
}

/// A field selector. The default one matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The parts.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Whether an object matches; `field` gives the text of a selectable field, empty if absent ([`field_value`]).
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.requirements
            .iter()
            .all(|r| (field(&r.path) == r.value) == r.equal)
    }

    /// The value a field must have, if the selector fixes it; for indexes.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.requirements
            .iter()
            .find(|r| r.equal && r.path == path)
            .map(|r| r.value.as_str())
    }

    /// Whether `kind` can select by all these fields; the error lists the ones it can.
    pub fn check(&self, kind: &Kind) -> Result<(), Invalid> {
        let mut known = vec!["metadata.name"];
        if kind.scope == Scope::Namespaced {
            known.push("metadata.namespace");
        }
        known.extend(kind.selectable.iter().map(String::as_str));
        match self
            .requirements
            .iter()
            .find(|r| !known.contains(&r.path.as_str()))
        {
            None => Ok(()),
            Some(r) => Err(Invalid(format!(
                "field label not supported: {}; {} can be selected by {}",
                r.path,
                kind.qualified_plural(),
                known.join(", ")
            ))),
        }
    }
}

impl FromStr for FieldSelector {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let requirements = split(text)
            .into_iter()
            .filter(|part| !part.trim().is_empty())
            .map(|part| {
                parse(part).map_err(|why| {
                    Invalid(format!(
                        "unable to parse field selector \"{text}\": requirement \"{part}\": {why}"
                    ))
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { requirements })
    }
}

/// Cuts at commas that are not escaped by a backslash.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut escaped) = (Vec::new(), 0, false);
    for (i, c) in text.char_indices() {
        if c == ',' && !escaped {
            parts.push(&text[start..i]);
            start = i + 1;
        }
        escaped = c == '\\' && !escaped;
    }
    parts.push(&text[start..]);
    parts
}

fn parse(part: &str) -> Result<FieldRequirement, String> {
    let at = part.find('=').ok_or("wants `path=value` or `path!=value`")?;
    let (path, equal) = match part[..at].strip_suffix('!') {
        Some(path) => (path, false),
        None => (&part[..at], true),
    };
    let value = part[at + 1..]
        .strip_prefix('=')
        .filter(|_| equal)
        .unwrap_or(&part[at + 1..]);
    if path.trim().is_empty() {
        return Err("has no path".into());
    }
    Ok(FieldRequirement {
        path: path.trim().into(),
        equal,
        value: unescape(value)?,
    })
}

/// `\,`, `\=` and `\\` stand for the character itself.
fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                _ => return Err("has a backslash that escapes nothing; write `\\\\`".into()),
            },
            '=' => return Err("has a second `=`; write `\\=`".into()),
            c => out.push(c),
        }
    }
    Ok(out)
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.requirements.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let value = r
                .value
                .replace('\\', "\\\\")
                .replace(',', "\\,")
                .replace('=', "\\=");
            write!(f, "{comma}{}{}{value}", r.path, if r.equal { "=" } else { "!=" })?;
        }
        Ok(())
    }
}

/// The text of a field for selection: strings as they are, other scalars as JSON, anything else or absent empty.
pub fn field_value<'a>(object: &'a Value, path: &str) -> Cow<'a, str> {
    match path.split('.').try_fold(object, |value, name| value.get(name)) {
        Some(Value::String(text)) => Cow::Borrowed(text),
        Some(scalar @ (Value::Bool(_) | Value::Number(_))) => Cow::Owned(scalar.to_string()),
        _ => Cow::Borrowed(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn matches(selector: &str, object: &Value) -> bool {
        selector
            .parse::<FieldSelector>()
            .unwrap()
            .matches(|path| field_value(object, path))
    }

    #[test]
    fn equality_inequality_and_absence() {
        let task = json!({"metadata": {"name": "x"}, "spec": {"nodeName": "web03", "suspend": true, "n": 3}});
        for yes in [
            "spec.nodeName=web03",
            "spec.nodeName==web03",
            "status.phase=",
            "status.phase!=Failed",
            "metadata.name=x,spec.nodeName!=web04",
            "spec.suspend=true",
            "spec.n=3",
            "",
        ] {
            assert!(matches(yes, &task), "{yes}");
        }
        for no in [
            "spec.nodeName=",
            "spec.nodeName!=web03",
            "status.phase!=",
            "spec=x",
        ] {
            assert!(!matches(no, &task), "{no}");
        }
    }

    #[test]
    fn escapes_stand_for_themselves_and_read_back() {
        let selector: FieldSelector = r"reason=a\,b\=c\\d".parse().unwrap();
        assert_eq!(selector.exact("reason"), Some(r"a,b=c\d"));
        assert_eq!(selector.to_string(), r"reason=a\,b\=c\\d");
    }

    #[test]
    fn errors_quote_the_requirement() {
        for bad in ["spec.nodeName", "=x", r"a=b\c", "a=b=c"] {
            let text = bad.parse::<FieldSelector>().unwrap_err().to_string();
            assert!(text.contains(&format!("requirement \"{bad}\"")), "{text}");
        }
    }
}
