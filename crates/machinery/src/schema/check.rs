//! Checks a value against a schema: types, required fields, enumerations, bounds, patterns, list keys. All mistakes at
//! once, in the words of `field.Error`.

use super::Schema;
use api::field::{Error, Errors, Kind, Path};
use serde_json::{Map, Value};
use std::collections::HashSet;

impl Schema {
    /// All mistakes in an object.
    pub fn check(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        self.value(&self.root, object, &Path::default(), &mut errors);
        errors
    }

    /// All mistakes in one top-level field of an object, such as `status`.
    pub fn check_field(&self, object: &Value, field: &str) -> Errors {
        let mut errors = Errors::new();
        let schema = self.resolve(&self.root)["properties"].get(field);
        if let (Some(schema), Some(value)) = (schema, object.get(field)) {
            self.value(schema, value, &Path::new(field), &mut errors);
        }
        errors
    }

    fn value(&self, schema: &Value, value: &Value, path: &Path, errors: &mut Errors) {
        let schema = self.resolve(schema);
        if value.is_null() && schema["nullable"] == true {
            return;
        }
        for part in array(&schema["allOf"]) {
            self.value(part, value, path, errors);
        }
        for alternatives in ["anyOf", "oneOf"] {
            self.alternatives(array(&schema[alternatives]), value, path, errors);
        }
        if let Some(wanted) = wrong_type(schema, value) {
            errors.add(type_error(path, value, &wanted));
            return;
        }
        let allowed: Vec<&str> = array(&schema["enum"]).iter().filter_map(Value::as_str).collect();
        match value {
            Value::String(text) if !allowed.is_empty() && !allowed.contains(&text.as_str()) => {
                errors.not_supported(path, text, &allowed);
            }
            Value::String(text) => self.text(schema, text, path, errors),
            Value::Number(number) => bounds(schema, number, path, errors),
            Value::Array(items) => self.list(schema, items, path, errors),
            Value::Object(fields) => self.object(schema, fields, path, errors),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// One of several forms must fit; if none does, what is wrong with the form that has the right type.
    fn alternatives(&self, forms: &[Value], value: &Value, path: &Path, errors: &mut Errors) {
        if forms.is_empty() {
            return;
        }
        let mut nearest: Option<Errors> = None;
        for form in forms {
            let mut found = Errors::new();
            self.value(form, value, path, &mut found);
            if found.is_empty() {
                return;
            }
            let wrong_type = found
                .iter()
                .any(|e| e.kind == Kind::TypeInvalid && e.path == *path);
            if nearest.is_none() && !wrong_type {
                nearest = Some(found);
            }
        }
        match nearest {
            Some(found) => errors.extend(found),
            None => {
                let wanted: Vec<_> = forms
                    .iter()
                    .filter_map(|f| self.resolve(f)["type"].as_str())
                    .map(article)
                    .collect();
                errors.add(type_error(path, value, &wanted.join(" or ")));
            }
        }
    }

    fn text(&self, schema: &Value, text: &str, path: &Path, errors: &mut Errors) {
        let length = text.chars().count() as u64;
        if schema["maxLength"].as_u64().is_some_and(|max| length > max) {
            let limit = schema["maxLength"].as_u64().unwrap_or_default();
            let message = format!("Too long: {length} characters, may not be more than {limit}");
            errors.add(Error {
                path: path.clone(),
                kind: Kind::TooLong,
                message,
            });
        }
        if let Some(min) = schema["minLength"].as_u64().filter(|min| length < *min) {
            let hint = if min == 1 {
                "must not be empty".into()
            } else {
                format!("must have at least {min} characters")
            };
            errors.invalid(path, text, hint);
            return;
        }
        if let Some(pattern) = schema["pattern"].as_str()
            && self.patterns.get(pattern).is_some_and(|p| !p.is_match(text))
        {
            errors.invalid(path, text, format_args!("must match {pattern}"));
        }
    }

    fn list(&self, schema: &Value, items: &[Value], path: &Path, errors: &mut Errors) {
        count(schema, ["minItems", "maxItems"], items.len(), path, errors);
        if let Some(item) = schema.get("items") {
            for (i, value) in items.iter().enumerate() {
                self.value(item, value, &path.index(i), errors);
            }
        }
        let keys: Vec<&str> = match schema["x-kubernetes-list-type"].as_str() {
            Some("map") => array(&schema["x-kubernetes-list-map-keys"])
                .iter()
                .filter_map(Value::as_str)
                .collect(),
            Some("set") => Vec::new(),
            _ => return,
        };
        let key_of = |item: &Value| -> Vec<Value> {
            if keys.is_empty() {
                vec![item.clone()]
            } else {
                keys.iter().map(|k| item[k].clone()).collect()
            }
        };
        let mut seen = HashSet::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let key = key_of(item);
            if !seen.insert(Value::from(key.clone()).to_string()) {
                let texts: Vec<_> = key.iter().map(plain).collect();
                let at = path.index(i);
                let at = if let [only] = keys.as_slice() {
                    at.child(only)
                } else {
                    at
                };
                errors.duplicate(&at, texts.join(", "));
            }
        }
    }

    fn object(&self, schema: &Value, fields: &Map<String, Value>, path: &Path, errors: &mut Errors) {
        count(
            schema,
            ["minProperties", "maxProperties"],
            fields.len(),
            path,
            errors,
        );
        let properties = &schema["properties"];
        let required: Vec<&str> = array(&schema["required"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        for name in required
            .iter()
            .filter(|name| fields.get(**name).is_none_or(Value::is_null))
        {
            let description = self.resolve(&properties[name])["description"].as_str();
            let description = description
                .or(properties[name]["description"].as_str())
                .unwrap_or("must be given");
            errors.required(&path.child(name), first_sentence(description));
        }
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            if let Some(property) = properties.get(name) {
                self.value(property, value, &path.child(name), errors);
            } else if let Some(entry) = schema.get("additionalProperties").filter(|s| s.is_object()) {
                self.value(entry, value, &path.key(name), errors);
            }
        }
    }
}

/// What was wanted, if the value has another type.
fn wrong_type(schema: &Value, value: &Value) -> Option<String> {
    if schema["x-kubernetes-int-or-string"] == true {
        return (!value.is_string() && !value.is_number()).then(|| "an integer or a string".into());
    }
    let wanted = schema["type"].as_str()?;
    let fits = match wanted {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    (!fits).then(|| article(wanted))
}

fn article(wanted: &str) -> String {
    let name = match wanted {
        "array" => "list",
        "object" => "map of fields",
        other => other,
    };
    if name.starts_with(['a', 'e', 'i', 'o', 'u']) {
        format!("an {name}")
    } else {
        format!("a {name}")
    }
}

/// A type error that says how to mend the usual traps of YAML.
fn type_error(path: &Path, value: &Value, wanted: &str) -> Error {
    let text = plain(value);
    let (found, hint) = match value {
        Value::Null => ("nothing (null)", "; give a value or remove the field".to_owned()),
        Value::Bool(_) | Value::Number(_) if wanted.contains("string") => (
            if value.is_boolean() {
                "a boolean"
            } else {
                "a number"
            },
            format!("; YAML reads it so unless it is quoted: quote it: \"{text}\""),
        ),
        Value::Bool(_) => ("a boolean", String::new()),
        Value::Number(_) => ("a number", String::new()),
        Value::String(s) if s.parse::<f64>().is_ok() || s == "true" || s == "false" => {
            ("a string", "; remove the quotes".to_owned())
        }
        Value::String(_) => ("a string", String::new()),
        Value::Array(_) => ("a list", String::new()),
        Value::Object(_) => ("a map of fields", String::new()),
    };
    let hint = match (value, wanted) {
        (Value::String(_) | Value::Object(_), "a list") => "; begin each item with \"- \"".to_owned(),
        _ => hint,
    };
    let shown = if value.is_object() || value.is_array() {
        String::new()
    } else {
        format!("\"{text}\": ")
    };
    let message = format!("Invalid value: {shown}expected {wanted}, found {found}{hint}");
    Error {
        path: path.clone(),
        kind: Kind::TypeInvalid,
        message,
    }
}

fn bounds(schema: &Value, number: &serde_json::Number, path: &Path, errors: &mut Errors) {
    let (min, max) = (&schema["minimum"], &schema["maximum"]);
    let below = matches!((min.as_f64(), number.as_f64()), (Some(min), Some(n)) if n < min);
    let above = matches!((max.as_f64(), number.as_f64()), (Some(max), Some(n)) if n > max);
    if below || above {
        let hint = match (min.as_f64(), max.as_f64()) {
            (Some(min), Some(max)) => format!("must be from {min} to {max}"),
            (Some(min), None) => format!("must be at least {min}"),
            _ => format!("must be at most {}", max.as_f64().unwrap_or_default()),
        };
        errors.invalid(path, number, hint);
    }
}

fn count(schema: &Value, [min, max]: [&str; 2], count: usize, path: &Path, errors: &mut Errors) {
    if let Some(max) = schema[max].as_u64().filter(|max| count as u64 > *max) {
        errors.too_many(path, count, max as usize);
    }
    if let Some(min) = schema[min].as_u64().filter(|min| (count as u64) < *min) {
        errors.invalid(
            path,
            format_args!("{count} items"),
            format_args!("must have at least {min}"),
        );
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn first_sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or(text);
    line.split_once(". ")
        .map_or(line, |(first, _)| first)
        .trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Step;
    use serde_json::json;

    fn schema() -> Schema {
        let spec = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "description": "What it is called. More words.", "minLength": 1, "maxLength": 5,
                "pattern": "^[a-zä]*$"},
            "size": {"type": "integer", "minimum": 0, "maximum": 9},
            "least": {"type": "integer", "minimum": 3},
            "on": {"type": "boolean"},
            "amount": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
            "shell": {"type": "string", "enum": ["powershell", "bash"]},
            "steps": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                "items": {"$ref": "#/components/schemas/Step"}},
            "labels": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
            "form": {"oneOf": [{"type": "string"}, {"type": "object", "required": ["x"]}]},
            "maybe": {"type": "string", "nullable": true}}});
        let step = json!({"type": "object", "properties": {"id": {"type": "string"}, "run": {"allOf": [{"$ref": "#/components/schemas/Run"}]}}});
        let run = json!({"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}});
        Schema::new(
            json!({"type": "object", "properties": {"spec": spec}}),
            vec![("Step".into(), step), ("Run".into(), run)],
        )
    }

    fn mistakes(spec: Value) -> Vec<String> {
        schema()
            .check(&json!({"spec": spec}))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn what_fits_passes() {
        let good = json!({"name": "äbc", "size": 9, "on": true, "amount": "10%", "shell": "bash", "maybe": null, "least": null,
            "steps": [{"id": "a", "run": {"command": ["x"]}}, {"id": "b"}], "labels": {"k": "v"}, "form": {"x": 1}});
        assert_eq!(mistakes(good), Vec::<String>::new());
    }

    #[test]
    fn yaml_traps_say_quote_it() {
        let found = mistakes(json!({"name": true}));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("spec.name: Invalid value: \"true\": expected a string, found a boolean"),
            "{}",
            found[0]
        );
        assert!(found[0].contains("quote it: \"true\""));
        assert!(mistakes(json!({"name": "a", "labels": {"v": 1.10}}))[0].contains("spec.labels[v]"));
        assert!(
            mistakes(json!({"name": "a", "steps": [{"run": {"command": [0]}}]}))[0]
                .contains("spec.steps[0].run.command[0]")
        );
        assert!(
            mistakes(json!({"name": "a", "size": "3"}))[0]
                .contains("expected an integer, found a string; remove the quotes")
        );
        assert!(mistakes(json!({"name": "a", "steps": {"id": "a"}}))[0].contains("begin each item with"));
    }

    #[test]
    fn every_bound_is_checked_and_all_mistakes_come_at_once() {
        let found = mistakes(
            json!({"name": "toolong", "size": 10, "least": 2, "shell": "powershel",
            "steps": [{"id": "a"}, {"id": "a"}, {"id": "c"}], "labels": {"a": "1", "b": "2"}, "amount": [], "form": 3}),
        );
        for part in [
            "spec.name: Too long: 7 characters",
            "spec.size: Invalid value: \"10\": must be from 0 to 9",
            "spec.least: Invalid value: \"2\": must be at least 3",
            "did you mean \"powershell\"?",
            "spec.steps: Too many: 3",
            "spec.steps[1].id: Duplicate value: \"a\"",
            "spec.labels: Too many: 2",
            "spec.amount: Invalid value",
            "spec.form: Invalid value: \"3\": expected a string or a map of fields",
        ] {
            assert!(
                found.iter().any(|f| f.contains(part)),
                "{part} is missing in {found:#?}"
            );
        }
        assert!(mistakes(json!({"name": "A"}))[0].contains("must match ^[a-zä]*$"));
        assert!(mistakes(json!({"name": ""}))[0].contains("must not be empty"));
    }

    #[test]
    fn a_missing_field_says_what_it_is_for() {
        assert_eq!(
            mistakes(json!({})),
            ["spec.name: Required value: What it is called"]
        );
        assert_eq!(mistakes(json!({"name": null})).len(), 1);
    }

    #[test]
    fn alternatives_report_what_is_wrong_with_the_nearest() {
        assert_eq!(
            mistakes(json!({"name": "a", "form": {}})),
            ["spec.form.x: Required value: must be given"]
        );
    }

    #[test]
    fn fields_are_found_through_references_and_lists() {
        let steps = [
            Step::Field("spec".into()),
            Step::Field("steps".into()),
            Step::Item(7),
        ];
        let schema = schema();
        assert_eq!(schema.fields_at(&steps), ["id", "run"]);
        let run = [&steps[..], &[Step::Field("run".into())]].concat();
        assert_eq!(schema.fields_at(&run), ["command"]);
        assert!(schema.fields_at(&[Step::Field("nope".into())]).is_empty());
    }
}
