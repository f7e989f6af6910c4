//! Any object: its head, and its fields as an outline.

use crate::{output::labels, terminal};
use api::clock::{Clock, SystemClock};
use serde_json::Value;
use std::io;

/// Name, namespace, labels, annotations, age.
pub fn head(object: &Value) -> io::Result<()> {
    let metadata = &object["metadata"];
    field("Name", metadata["name"].as_str().unwrap_or_default())?;
    if let Some(namespace) = metadata["namespace"].as_str() {
        field("Namespace", namespace)?;
    }
    field("Labels", &labels(&metadata["labels"]))?;
    let mut annotations = metadata["annotations"].clone();
    if let Some(map) = annotations.as_object_mut() {
        map.remove(crate::apply::LAST_APPLIED);
    }
    field("Annotations", &labels(&annotations))?;
    if let Some(created) = metadata["creationTimestamp"].as_str() {
        let age = created
            .parse()
            .map(|at| crate::output::age(at, SystemClock.now()))
            .unwrap_or_default();
        field("Created", &format!("{created} ({age} ago)"))?;
    }
    if let Some(deleted) = metadata["deletionTimestamp"].as_str() {
        field(
            "Deleted",
            &format!("{deleted}, waiting for {}", metadata["finalizers"]),
        )?;
    }
    Ok(())
}

/// A line of the description.
pub fn field(name: &str, value: &str) -> io::Result<()> {
    terminal::line(format!("{:<14}{value}", format!("{name}:")))
}

/// Everything but the head; values of Secrets as their sizes.
pub fn body(object: &Value) -> io::Result<()> {
    let is_secret = object["kind"] == "Secret";
    for (name, value) in object.as_object().into_iter().flatten() {
        match name.as_str() {
            "apiVersion" | "kind" | "metadata" => {}
            "data" if is_secret => {
                terminal::line("Data:")?;
                for (key, value) in value.as_object().into_iter().flatten() {
                    let bytes = value
                        .as_str()
                        .map_or(0, |text| text.trim_end_matches('=').len() * 3 / 4);
                    terminal::line(format!("  {key}: {bytes} bytes"))?;
                }
            }
            _ => outline(&title(name), value, 0)?,
        }
    }
    Ok(())
}

/// `nodeName` as `Node Name`.
fn title(name: &str) -> String {
    let mut title = String::new();
    for (i, c) in name.chars().enumerate() {
        if i == 0 {
            title.extend(c.to_uppercase());
        } else {
            if c.is_uppercase() {
                title.push(' ');
            }
            title.push(c);
        }
    }
    title
}

fn outline(name: &str, value: &Value, depth: usize) -> io::Result<()> {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            terminal::line(format!("{indent}{name}:"))?;
            // keys of maps such as labels are data, and stay as they are
            map.iter().try_for_each(|(key, value)| {
                let plain = key.chars().all(|c| c.is_ascii_alphanumeric());
                outline(&if plain { title(key) } else { key.clone() }, value, depth + 1)
            })
        }
        Value::Array(list) if list.iter().all(|item| !item.is_object()) => {
            let items: Vec<String> = list.iter().map(crate::jsonpath::show).collect();
            terminal::line(format!("{indent}{name}:  {}", items.join(", ")))
        }
        Value::Array(list) => {
            terminal::line(format!("{indent}{name}:"))?;
            for (i, item) in list.iter().enumerate() {
                if i > 0 {
                    terminal::line("")?;
                }
                for (key, value) in item.as_object().into_iter().flatten() {
                    outline(&title(key), value, depth + 1)?;
                }
            }
            Ok(())
        }
        Value::String(text) if text.contains('\n') => {
            terminal::line(format!("{indent}{name}:"))?;
            text.lines()
                .try_for_each(|line| terminal::line(format!("{indent}  {line}")))
        }
        other => terminal::line(format!("{indent}{name}:  {}", crate::jsonpath::show(other))),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn field_names_read_as_words() {
        assert_eq!(super::title("observedGeneration"), "Observed Generation");
        assert_eq!(super::title("spec"), "Spec");
    }
}
