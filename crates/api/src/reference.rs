//! The reference pages of our kinds as Markdown, made from the same schemas the server enforces.

use crate::crd;
use serde_json::Value;
use std::fmt::Write as _;

/// A page: its file name without ending, and its text.
pub struct Page {
    /// Lower-case kind, such as `job`.
    pub name: String,
    /// Markdown.
    pub text: String,
}

/// One page a kind.
pub fn pages() -> Result<Vec<Page>, serde_json::Error> {
    crd::all()
        .into_iter()
        .map(|crd| Ok(page(&serde_json::to_value(crd)?)))
        .collect()
}

fn page(crd: &Value) -> Page {
    let names = &crd["spec"]["names"];
    let word = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let version = &crd["spec"]["versions"][0];
    let schema = &version["schema"]["openAPIV3Schema"];
    let mut text = String::new();
    line(&mut text, format_args!("# {}", word(&names["kind"])));
    line(&mut text, format_args!(""));
    line(
        &mut text,
        format_args!("Made from the types by `BLESS=1 cargo test -p api --test generated`; do not edit."),
    );
    line(&mut text, format_args!(""));
    line(
        &mut text,
        format_args!("{}", word(&schema["properties"]["spec"]["description"])),
    );
    line(&mut text, format_args!(""));
    line(
        &mut text,
        format_args!(
            "`{}` · short name `{}` · {}",
            word(&crd["metadata"]["name"]),
            word(&names["shortNames"][0]),
            if crd["spec"]["scope"] == "Namespaced" {
                "in a namespace"
            } else {
                "not in a namespace"
            }
        ),
    );
    for section in ["spec", "status"] {
        line(&mut text, format_args!("\n## {section}\n"));
        line(&mut text, format_args!("| field | type | meaning |"));
        line(&mut text, format_args!("| --- | --- | --- |"));
        rows(&schema["properties"][section], section, &mut text);
    }
    Page {
        name: word(&names["singular"]),
        text,
    }
}

/// Lists of steps have the same fields; they are shown once.
const SAME_AS_STEPS: [&str; 3] = ["spec.preflight[]", "spec.rollback[]", "spec.finally[]"];

fn rows(schema: &Value, path: &str, text: &mut String) {
    if SAME_AS_STEPS.contains(&path) {
        return;
    }
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let list = field["type"] == "array";
        let inner = if list { &field["items"] } else { field };
        let path = if list { format!("{path}[]") } else { path };
        let mut meaning = field["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " ")
            .replace('|', "\\|");
        if required.contains(&name.as_str()) {
            meaning.push_str(" **Required.**");
        }
        if SAME_AS_STEPS.contains(&path.as_str()) {
            meaning.push_str(" Fields as in `spec.steps[]`.");
        }
        line(
            text,
            format_args!("| `{path}` | {} | {meaning} |", type_of(field)),
        );
        rows(inner, &path, text);
        rows(&inner["additionalProperties"], &format!("{path}.*"), text);
    }
}

/// What a value looks like: type, allowed values, bounds and default.
fn type_of(schema: &Value) -> String {
    let mut text = match (schema["type"].as_str(), schema["enum"].as_array()) {
        _ if schema["x-kubernetes-int-or-string"] == true => "number or text".to_owned(),
        (_, Some(values)) => values
            .iter()
            .filter_map(Value::as_str)
            .map(|v| format!("`{v}`"))
            .collect::<Vec<_>>()
            .join(" \\| "),
        (Some("array"), _) => format!("list of {}", type_of(&schema["items"])),
        (Some("object"), _) if schema["additionalProperties"].is_object() => "map".to_owned(),
        (Some(plain), _) => plain.to_owned(),
        (None, _) => "any".to_owned(),
    };
    if schema["type"] == "integer" {
        let (low, high) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
        if let (Some(low), Some(high)) = (low, high) {
            let _ = write!(text, ", {low} to {high}"); // writing to a String cannot fail
        }
    }
    if !schema["default"].is_null() && !schema["default"].is_object() {
        let default = schema["default"]
            .as_str()
            .map_or_else(|| schema["default"].to_string(), str::to_owned);
        let _ = write!(text, "; default `{default}`"); // writing to a String cannot fail
    }
    text
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{arguments}"); // writing to a String cannot fail
}
