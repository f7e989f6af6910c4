//! Checks a value against a schema: types, required fields, enumerations, bounds, patterns, list keys. All mistakes at
//! once, in the words of `field.Error`.

use super::{
    Schema,
    node::{Node, Type, Unique},
};
use api::field::{Error, Errors, Kind, Path};
use serde_json::{Map, Number, Value};
use std::collections::HashSet;

/// Where a value is, as a chain up the stack: a path is only made for what is reported.
enum Place<'p> {
    Root,
    Field(&'p Place<'p>, &'p str),
    Entry(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn path(&self) -> Path {
        match self {
            Place::Root => Path::default(),
            Place::Field(parent, name) => parent.path().child(name),
            Place::Entry(parent, key) => parent.path().key(key),
            Place::Item(parent, index) => parent.path().index(*index),
        }
    }
}

impl Schema {
    /// All mistakes in an object.
    pub fn check(&self, object: &Value) -> Errors {
        let mut errors = Errors::new();
        self.value(self.root, object, &Place::Root, &mut errors);
        errors
    }

    /// All mistakes in one top-level field of an object, such as `status`.
    pub fn check_field(&self, object: &Value, field: &str) -> Errors {
        let mut errors = Errors::new();
        if let (Some(node), Some(value)) = (self.node(self.root).properties.get(field), object.get(field)) {
            self.value(*node, value, &Place::Field(&Place::Root, field), &mut errors);
        }
        errors
    }

    fn value(&self, id: usize, value: &Value, place: &Place<'_>, errors: &mut Errors) {
        let node = self.node(id);
        if value.is_null() && node.nullable {
            return;
        }
        for part in &node.all_of {
            self.value(*part, value, place, errors);
        }
        self.alternatives(&node.any_of, value, place, errors);
        self.alternatives(&node.one_of, value, place, errors);
        if let Some(wanted) = node.type_.filter(|t| !t.fits(value)) {
            errors.add(type_error(place.path(), value, wanted.article()));
            return;
        }
        match value {
            Value::String(text) if !node.allowed.is_empty() => {
                if !node.allowed.contains(text) {
                    let allowed: Vec<&str> = node.allowed.iter().map(String::as_str).collect();
                    errors.not_supported(&place.path(), text, &allowed);
                }
            }
            Value::String(text) => check_text(node, text, place, errors),
            Value::Number(number) => check_range(node, number, place, errors),
            Value::Array(items) => self.list(node, items, place, errors),
            Value::Object(fields) => self.object(node, fields, place, errors),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// One of several forms must fit; if none does, what is wrong with the first that has the right type.
    fn alternatives(&self, forms: &[usize], value: &Value, place: &Place<'_>, errors: &mut Errors) {
        let mut nearest: Option<Errors> = None;
        for form in forms {
            let mut found = Errors::new();
            self.value(*form, value, place, &mut found);
            if found.is_empty() {
                return;
            }
            let right_type = self.node(*form).type_.is_none_or(|t| t.fits(value));
            if nearest.is_none() && right_type {
                nearest = Some(found);
            }
        }
        if let Some(found) = nearest {
            errors.extend(found);
        } else if !forms.is_empty() {
            let wanted: Vec<_> = forms
                .iter()
                .filter_map(|f| self.node(*f).type_)
                .map(Type::article)
                .collect();
            errors.add(type_error(place.path(), value, &wanted.join(" or ")));
        }
    }

    fn list(&self, node: &Node, items: &[Value], place: &Place<'_>, errors: &mut Errors) {
        check_count(node, items.len(), place, errors);
        if let Some(item) = node.items {
            for (i, value) in items.iter().enumerate() {
                self.value(item, value, &Place::Item(place, i), errors);
            }
        }
        let mut seen = HashSet::new();
        for (i, item) in items.iter().enumerate() {
            let at = Place::Item(place, i);
            match &node.unique {
                None => return,
                Some(Unique::Whole) if !seen.insert(item.to_string()) => {
                    errors.duplicate(&at.path(), plain(item));
                }
                Some(Unique::Keys(keys)) => {
                    let key: Vec<_> = keys.iter().map(|k| plain(&item[k])).collect();
                    if !seen.insert(key.join("\n")) {
                        let at = if let [only] = keys.as_slice() {
                            at.path().child(only)
                        } else {
                            at.path()
                        };
                        errors.duplicate(&at, key.join(", "));
                    }
                }
                Some(Unique::Whole) => {}
            }
        }
    }

    fn object(&self, node: &Node, fields: &Map<String, Value>, place: &Place<'_>, errors: &mut Errors) {
        check_count(node, fields.len(), place, errors);
        for name in node
            .required
            .iter()
            .filter(|name| fields.get(*name).is_none_or(Value::is_null))
        {
            let purpose = node.properties.get(name).and_then(|id| self.purpose(*id));
            errors.required(&place.path().child(name), purpose.unwrap_or("must be given"));
        }
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            if let Some(property) = node.properties.get(name) {
                self.value(*property, value, &Place::Field(place, name), errors);
            } else if let Some(entry) = node.entries {
                self.value(entry, value, &Place::Entry(place, name), errors);
            }
        }
    }

    /// What a field is for, said by itself or by the type it refers to.
    fn purpose(&self, id: usize) -> Option<&str> {
        self.parts(id)
            .into_iter()
            .find_map(|part| part.purpose.as_deref())
    }
}

impl Type {
    fn fits(self, value: &Value) -> bool {
        match self {
            Type::Text => value.is_string(),
            Type::Flag => value.is_boolean(),
            Type::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
            }
            Type::Number => value.is_number(),
            Type::List => value.is_array(),
            Type::Object => value.is_object(),
            Type::IntegerOrText => value.is_string() || value.is_number(),
        }
    }

    fn article(self) -> &'static str {
        match self {
            Type::Text => "a string",
            Type::Flag => "a boolean",
            Type::Integer => "an integer",
            Type::Number => "a number",
            Type::List => "a list",
            Type::Object => "a map of fields",
            Type::IntegerOrText => "an integer or a string",
        }
    }
}

/// A type error that says how to mend the usual traps of YAML.
fn type_error(path: Path, value: &Value, wanted: &str) -> Error {
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
        Value::String(_) | Value::Object(_) if wanted == "a list" => (
            if value.is_string() {
                "a string"
            } else {
                "a map of fields"
            },
            "; begin each item with \"- \"".to_owned(),
        ),
        Value::String(s) if s.parse::<f64>().is_ok() || s == "true" || s == "false" => {
            ("a string", "; remove the quotes".to_owned())
        }
        Value::String(_) => ("a string", String::new()),
        Value::Array(_) => ("a list", String::new()),
        Value::Object(_) => ("a map of fields", String::new()),
    };
    let shown = if value.is_object() || value.is_array() {
        String::new()
    } else {
        format!("\"{text}\": ")
    };
    let message = format!("Invalid value: {shown}expected {wanted}, found {found}{hint}");
    Error {
        path,
        kind: Kind::TypeInvalid,
        message,
    }
}

fn check_text(node: &Node, text: &str, place: &Place<'_>, errors: &mut Errors) {
    let (min, max) = node.length;
    if let Some(max) = max.filter(|max| text.len() as u64 > *max) {
        // Bytes bound characters, so that characters are counted only where it matters.
        let length = text.chars().count() as u64;
        if length > max {
            let message = format!("Too long: {length} characters, may not be more than {max}");
            errors.add(Error {
                path: place.path(),
                kind: Kind::TooLong,
                message,
            });
        }
    }
    if let Some(min) = min.filter(|min| (text.chars().count() as u64) < *min) {
        let hint = if min == 1 {
            "must not be empty".into()
        } else {
            format!("must have at least {min} characters")
        };
        errors.invalid(&place.path(), text, hint);
    } else if let Some(pattern) = node.pattern.as_ref().filter(|p| !p.is_match(text)) {
        errors.invalid(&place.path(), text, format_args!("must match {pattern}"));
    }
}

fn check_range(node: &Node, number: &Number, place: &Place<'_>, errors: &mut Errors) {
    let (min, max) = node.range;
    let Some(n) = number.as_f64() else { return };
    if min.is_some_and(|min| n < min) || max.is_some_and(|max| n > max) {
        let hint = match (min, max) {
            (Some(min), Some(max)) => format!("must be from {min} to {max}"),
            (Some(min), None) => format!("must be at least {min}"),
            (None, max) => format!("must be at most {}", max.unwrap_or_default()),
        };
        errors.invalid(&place.path(), number, hint);
    }
}

fn check_count(node: &Node, count: usize, place: &Place<'_>, errors: &mut Errors) {
    let (min, max) = node.length;
    if let Some(max) = max.filter(|max| count as u64 > *max) {
        errors.too_many(&place.path(), count, max as usize);
    }
    if let Some(min) = min.filter(|min| (count as u64) < *min) {
        errors.invalid(
            &place.path(),
            format_args!("{count} items"),
            format_args!("must have at least {min}"),
        );
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
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
            &json!({"type": "object", "properties": {"spec": spec}}),
            &[("Step".into(), step), ("Run".into(), run)],
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
