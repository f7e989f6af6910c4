//! A schema read into nodes.

use super::REFERENCE;
use regex::Regex;
use serde_json::Value;
use std::collections::HashMap;

/// A JSON type as a schema names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Flag,
    Integer,
    Number,
    List,
    Object,
    /// `x-kubernetes-int-or-string`.
    IntegerOrText,
}

/// What makes two items of a list the same.
#[derive(Debug)]
pub(super) enum Unique {
    /// Everything: `x-kubernetes-list-type: set`.
    Whole,
    /// These fields: `x-kubernetes-list-type: map`.
    Keys(Vec<String>),
}

/// One schema; others are named by their place in the list of all nodes.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub type_: Option<Type>,
    pub nullable: bool,
    /// First sentence of the description.
    pub purpose: Option<String>,
    pub all_of: Vec<usize>,
    pub any_of: Vec<usize>,
    pub one_of: Vec<usize>,
    pub allowed: Vec<String>,
    pub pattern: Option<Regex>,
    /// Least and most characters, items or entries.
    pub length: (Option<u64>, Option<u64>),
    /// Least and greatest number.
    pub range: (Option<f64>, Option<f64>),
    pub items: Option<usize>,
    pub unique: Option<Unique>,
    pub properties: HashMap<String, usize>,
    pub required: Vec<String>,
    /// What the entries of a map are.
    pub entries: Option<usize>,
}

/// Reads schemas, each definition once.
pub(super) struct Compiler<'a> {
    definitions: HashMap<&'a str, &'a Value>,
    done: HashMap<&'a str, usize>,
    nodes: Vec<Node>,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(definitions: &'a [(String, Value)]) -> Self {
        let definitions = definitions
            .iter()
            .map(|(name, schema)| (name.as_str(), schema))
            .collect();
        Self {
            definitions,
            done: HashMap::new(),
            nodes: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> Vec<Node> {
        self.nodes
    }

    /// The place of a schema's node. A reference to nothing is a schema that allows anything.
    pub(super) fn node(&mut self, schema: &'a Value) -> usize {
        let target = schema["$ref"].as_str().and_then(|r| r.strip_prefix(REFERENCE));
        let Some((name, definition)) = target.and_then(|n| Some((n, *self.definitions.get(n)?))) else {
            return self.new_node(None, schema);
        };
        match self.done.get(name) {
            Some(id) => *id,
            None => self.new_node(Some(name), definition),
        }
    }

    fn new_node(&mut self, name: Option<&'a str>, schema: &'a Value) -> usize {
        let id = self.nodes.len();
        self.nodes.push(Node::default()); // its place is known before its parts, which may refer back to it
        if let Some(name) = name {
            self.done.insert(name, id);
        }
        let node = self.read(schema);
        self.nodes[id] = node;
        id
    }

    fn read(&mut self, schema: &'a Value) -> Node {
        let type_ = type_of(schema);
        let size = match type_ {
            Some(Type::List) => ["minItems", "maxItems"],
            Some(Type::Object) => ["minProperties", "maxProperties"],
            _ => ["minLength", "maxLength"],
        };
        let properties = schema["properties"].as_object().into_iter().flatten();
        Node {
            type_,
            nullable: schema["nullable"] == true,
            purpose: schema["description"].as_str().map(first_sentence),
            all_of: self.all(&schema["allOf"]),
            any_of: self.all(&schema["anyOf"]),
            one_of: self.all(&schema["oneOf"]),
            allowed: texts(&schema["enum"]),
            pattern: schema["pattern"].as_str().and_then(|p| Regex::new(p).ok()),
            length: (schema[size[0]].as_u64(), schema[size[1]].as_u64()),
            range: (schema["minimum"].as_f64(), schema["maximum"].as_f64()),
            items: schema.get("items").map(|s| self.node(s)),
            unique: unique(schema),
            properties: properties.map(|(name, s)| (name.clone(), self.node(s))).collect(),
            required: texts(&schema["required"]),
            entries: schema
                .get("additionalProperties")
                .filter(|s| s.is_object())
                .map(|s| self.node(s)),
        }
    }

    fn all(&mut self, schemas: &'a Value) -> Vec<usize> {
        schemas
            .as_array()
            .into_iter()
            .flatten()
            .map(|s| self.node(s))
            .collect()
    }
}

fn type_of(schema: &Value) -> Option<Type> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(Type::IntegerOrText);
    }
    Some(match schema["type"].as_str()? {
        "string" => Type::Text,
        "boolean" => Type::Flag,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "array" => Type::List,
        "object" => Type::Object,
        _ => return None,
    })
}

fn unique(schema: &Value) -> Option<Unique> {
    match schema["x-kubernetes-list-type"].as_str()? {
        "set" => Some(Unique::Whole),
        "map" => Some(Unique::Keys(texts(&schema["x-kubernetes-list-map-keys"]))),
        _ => None,
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or(text);
    line.split_once(". ")
        .map_or(line, |(first, _)| first)
        .trim_end_matches('.')
        .to_owned()
}
