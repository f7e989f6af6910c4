//! Checks a JSON value against an OpenAPI v3 structural schema and reports every mistake at once, by path.
//!
//! A real Kubernetes API server enforces a CRD's schema before anything else; this does the same, so that the bounds in our
//! types hold on both. Unknown fields are not its business (strict decoding reports them with a hint).

use crate::field::{Errors, Path};
use regex::Regex;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// All mistakes of `value` against `schema`, named below `path`.
pub fn check(schema: &Value, value: &Value, path: &Path) -> Errors {
    let mut errors = Errors::new();
    walk(schema, value, path, &mut errors);
    errors
}

fn walk(schema: &Value, value: &Value, path: &Path, errors: &mut Errors) {
    if value.is_null() {
        // an explicit null is the absence of the field; decoding decides whether it may be absent
        return;
    }
    if schema["x-kubernetes-int-or-string"] == true {
        if !(value.is_string() || value.is_i64() || value.is_u64() || value.is_f64()) {
            return errors.invalid(path, show(value), "must be a number or a string");
        }
    } else if let Some(wanted) = schema["type"].as_str()
        && !has_type(value, wanted)
    {
        return errors.invalid(path, show(value), wrong_type(value, wanted));
    }
    if let (Some(allowed), Some(text)) = (schema["enum"].as_array(), value.as_str()) {
        let allowed: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        if !allowed.contains(&text) {
            return errors.not_supported(path, text, &allowed);
        }
    }
    match value {
        Value::Number(_) => number(schema, value, path, errors),
        Value::String(text) => string(schema, text, path, errors),
        Value::Array(items) => {
            limit(schema, "maxItems", items.len(), path, errors);
            if let Some(least) = schema["minItems"].as_u64().filter(|l| (items.len() as u64) < *l) {
                errors.required(path, format_args!("must have at least {least} items"));
            }
            for (i, item) in items.iter().enumerate() {
                walk(&schema["items"], item, &path.index(i), errors);
            }
        }
        Value::Object(fields) => {
            limit(schema, "maxProperties", fields.len(), path, errors);
            for name in schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                if fields.get(name).is_none_or(Value::is_null) {
                    let hint = schema["properties"][name]["description"]
                        .as_str()
                        .unwrap_or("must be set");
                    errors.required(&path.child(name), hint);
                }
            }
            for (name, field) in fields {
                match schema["properties"].get(name) {
                    Some(property) => walk(property, field, &path.child(name), errors),
                    None if schema["additionalProperties"].is_object() => {
                        walk(&schema["additionalProperties"], field, &path.key(name), errors);
                    }
                    None => {}
                }
            }
        }
        Value::Bool(_) | Value::Null => {}
    }
}

fn has_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn wrong_type(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    };
    match (wanted, value) {
        ("string", Value::Bool(_) | Value::Number(_)) => {
            format!(
                "must be of type string, not {found}: quote it, as in \"{}\"",
                show(value)
            )
        }
        ("integer" | "number" | "boolean", Value::String(_)) => {
            format!("must be of type {wanted}, not {found}: write it without quotes")
        }
        _ => format!("must be of type {wanted}, not {found}"),
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn number(schema: &Value, value: &Value, path: &Path, errors: &mut Errors) {
    let Some(n) = value.as_f64() else { return };
    if let Some(least) = schema["minimum"].as_f64().filter(|least| n < *least) {
        errors.invalid(path, value, format_args!("must be at least {least}"));
    } else if let Some(most) = schema["maximum"].as_f64().filter(|most| n > *most) {
        errors.invalid(path, value, format_args!("must be at most {most}"));
    }
}

fn string(schema: &Value, text: &str, path: &Path, errors: &mut Errors) {
    // Kubernetes counts characters in maxLength
    let length = || text.chars().count() as u64;
    if let Some(most) = schema["maxLength"]
        .as_u64()
        .filter(|most| text.len() as u64 > *most && length() > *most)
    {
        return errors.too_long(path, text.len(), most as usize, "");
    }
    if schema["minLength"].as_u64().is_some_and(|least| length() < least) {
        return errors.required(path, "may not be empty");
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && !matches_pattern(pattern, text)
    {
        errors.invalid(path, text, format_args!("must match {pattern}"));
    }
}

fn limit(schema: &Value, key: &str, count: usize, path: &Path, errors: &mut Errors) {
    if let Some(most) = schema[key].as_u64().filter(|most| count as u64 > *most) {
        errors.too_many(path, count, most as usize);
    }
}

/// Patterns come from our own types, so there are few of them and each compiles; one that did not would let all pass.
fn matches_pattern(pattern: &str, text: &str) -> bool {
    static COMPILED: LazyLock<Mutex<HashMap<String, Option<Regex>>>> = LazyLock::new(Mutex::default);
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    compiled
        .entry(pattern.to_owned())
        .or_insert_with(|| Regex::new(pattern).ok())
        .as_ref()
        .is_none_or(|r| r.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(value: Value) -> Vec<String> {
        let schema = json!({
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]*$", "description": "Its name."},
                "count": {"type": "integer", "minimum": 1, "maximum": 9},
                "mode": {"type": "string", "enum": ["Apply", "Audit"]},
                "share": {"x-kubernetes-int-or-string": true},
                "list": {"type": "array", "maxItems": 2, "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "boolean"}}
            }
        });
        check(&schema, &value, &Path::new("spec"))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn all_mistakes_are_reported_at_once_with_their_paths() {
        let errors = found(json!({
            "count": 10, "mode": "audit", "share": [], "list": ["a", true, 1.1], "map": {"x": "yes"}
        }));
        assert_eq!(
            errors,
            [
                "spec.name: Required value: Its name.",
                "spec.count: Invalid value: \"10\": must be at most 9",
                "spec.mode: Unsupported value: \"audit\": supported values: \"Apply\", \"Audit\", did you mean \"Audit\"?",
                "spec.share: Invalid value: \"[]\": must be a number or a string",
                "spec.list: Too many: 3: must have at most 2 items",
                "spec.list[1]: Invalid value: \"true\": must be of type string, not boolean: quote it, as in \"true\"",
                "spec.list[2]: Invalid value: \"1.1\": must be of type string, not number: quote it, as in \"1.1\"",
                "spec.map[x]: Invalid value: \"yes\": must be of type boolean, not string: write it without quotes",
            ]
        );
    }

    #[test]
    fn texts_are_bounded_in_characters() {
        assert_eq!(found(json!({"name": "abcde"})), Vec::<String>::new());
        assert_eq!(found(json!({"name": "ab"})), Vec::<String>::new());
        assert_eq!(
            found(json!({"name": "äöüäö"})),
            ["spec.name: Invalid value: \"äöüäö\": must match ^[a-z]*$"]
        );
        assert_eq!(
            found(json!({"name": "abcdef"})),
            ["spec.name: Too long: 6 bytes, may not be more than 5"]
        );
        assert_eq!(
            found(json!({"name": ""})),
            ["spec.name: Required value: may not be empty"]
        );
    }
}
