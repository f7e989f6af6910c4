//! A kind's OpenAPI schema at work: checks values against it, and finds the names a misspelt field may have meant.
//!
//! Schemas are structural, as in a CRD, or refer to `#/components/schemas/<name>`, as those of core kinds do.

mod check;

use api::field::Path;
use regex::Regex;
use serde_json::Value;
use std::collections::HashMap;

/// Where the schemas that `$ref`s name are found.
pub const REFERENCE: &str = "#/components/schemas/";

/// One step into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To a field or the entry of a map.
    Field(String),
    /// To an item of a list.
    Item(usize),
}

/// A schema with all it refers to.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    definitions: HashMap<String, Value>,
    patterns: HashMap<String, Regex>,
}

impl Schema {
    /// A schema and the named ones it refers to. A pattern that is no regular expression is not checked; that all of
    /// them are is a test of the kinds.
    pub fn new(root: Value, definitions: Vec<(String, Value)>) -> Self {
        let definitions: HashMap<_, _> = definitions.into_iter().collect();
        let mut patterns = HashMap::new();
        collect_patterns(&root, &mut patterns);
        definitions
            .values()
            .for_each(|d| collect_patterns(d, &mut patterns));
        Self {
            root,
            definitions,
            patterns,
        }
    }

    /// Follows `$ref`s.
    fn resolve<'a>(&'a self, mut schema: &'a Value) -> &'a Value {
        while let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix(REFERENCE)) {
            match self.definitions.get(name) {
                Some(target) => schema = target,
                None => break,
            }
        }
        schema
    }

    /// The schema and the alternatives and parts it is put together from.
    fn parts<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let schema = self.resolve(schema);
        let inner = ["allOf", "anyOf", "oneOf"]
            .iter()
            .filter_map(|k| schema[k].as_array())
            .flatten();
        std::iter::once(schema)
            .chain(inner.flat_map(|s| self.parts(s)))
            .collect()
    }

    /// The schema at a place.
    pub fn at(&self, steps: &[Step]) -> Option<&Value> {
        let mut schema = self.resolve(&self.root);
        for step in steps {
            schema = self.parts(schema).into_iter().find_map(|part| {
                let below = match step {
                    Step::Field(name) => part["properties"]
                        .get(name)
                        .or_else(|| part.get("additionalProperties"))?,
                    Step::Item(_) => part.get("items")?,
                };
                below.is_object().then(|| self.resolve(below))
            })?;
        }
        Some(schema)
    }

    /// The path that steps make: entries of maps in brackets, fields after dots.
    pub fn path_of(&self, steps: &[Step]) -> Path {
        let mut path = Path::default();
        for (i, step) in steps.iter().enumerate() {
            path = match step {
                Step::Item(index) => path.index(*index),
                Step::Field(name) if self.is_map(&steps[..i]) => path.key(name),
                Step::Field(name) => path.child(name),
            };
        }
        path
    }

    /// Whether what is at a place is a map with free keys.
    fn is_map(&self, steps: &[Step]) -> bool {
        let parts = self.at(steps).map(|s| self.parts(s)).unwrap_or_default();
        parts.iter().any(|p| p["additionalProperties"].is_object())
            && parts.iter().all(|p| !p["properties"].is_object())
    }

    /// The names of the fields an object at a place may have.
    pub fn fields_at(&self, steps: &[Step]) -> Vec<&str> {
        let Some(schema) = self.at(steps) else {
            return Vec::new();
        };
        self.parts(schema)
            .into_iter()
            .filter_map(|part| part["properties"].as_object())
            .flat_map(|p| p.keys().map(String::as_str))
            .collect()
    }

    /// All expressions in `pattern` that could not be understood.
    #[cfg(test)]
    pub(crate) fn bad_patterns(&self) -> Vec<String> {
        let mut all = Vec::new();
        fn walk(value: &Value, all: &mut Vec<String>) {
            match value {
                Value::Object(map) => {
                    all.extend(map.get("pattern").and_then(Value::as_str).map(str::to_owned));
                    map.values().for_each(|v| walk(v, all));
                }
                Value::Array(list) => list.iter().for_each(|v| walk(v, all)),
                _ => {}
            }
        }
        walk(&self.root, &mut all);
        all.retain(|p| !self.patterns.contains_key(p));
        all
    }
}

fn collect_patterns(schema: &Value, patterns: &mut HashMap<String, Regex>) {
    match schema {
        Value::Object(map) => {
            if let Some(pattern) = map.get("pattern").and_then(Value::as_str)
                && !patterns.contains_key(pattern)
                && let Ok(regex) = Regex::new(pattern)
            {
                patterns.insert(pattern.to_owned(), regex);
            }
            map.values().for_each(|v| collect_patterns(v, patterns));
        }
        Value::Array(list) => list.iter().for_each(|v| collect_patterns(v, patterns)),
        _ => {}
    }
}
