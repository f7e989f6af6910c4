//! A kind's OpenAPI schema at work: checks values against it, and finds the names a misspelt field may have meant.
//!
//! Schemas are structural, as in a CRD, or refer to `#/components/schemas/<name>`, as those of core kinds do. Every
//! write is checked, so a schema is read once into nodes that can be walked without looking anything up by text.

mod check;
mod node;

use api::field::Path;
use node::{Compiler, Node};
use serde_json::Value;

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
    nodes: Vec<Node>,
    root: usize,
}

impl Schema {
    /// A schema and the named ones it refers to. A pattern that is no regular expression is not checked; that all of
    /// them are is a test of the kinds.
    pub fn new(root: &Value, definitions: &[(String, Value)]) -> Self {
        let mut compiler = Compiler::new(definitions);
        let root = compiler.node(root);
        Self {
            nodes: compiler.finish(),
            root,
        }
    }

    fn node(&self, id: usize) -> &Node {
        &self.nodes[id]
    }

    /// A node and the alternatives and parts it is put together from.
    fn parts(&self, id: usize) -> Vec<&Node> {
        let node = self.node(id);
        let inner = [&node.all_of, &node.any_of, &node.one_of].into_iter().flatten();
        std::iter::once(node)
            .chain(inner.flat_map(|id| self.parts(*id)))
            .collect()
    }

    /// The node at a place.
    fn at(&self, steps: &[Step]) -> Option<usize> {
        steps.iter().try_fold(self.root, |id, step| {
            self.parts(id).into_iter().find_map(|part| match step {
                Step::Field(name) => part.properties.get(name).copied().or(part.entries),
                Step::Item(_) => part.items,
            })
        })
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
        let parts = self.at(steps).map(|id| self.parts(id)).unwrap_or_default();
        parts.iter().any(|p| p.entries.is_some()) && parts.iter().all(|p| p.properties.is_empty())
    }

    /// The names of the fields an object at a place may have, sorted.
    pub fn fields_at(&self, steps: &[Step]) -> Vec<&str> {
        let parts = self.at(steps).map(|id| self.parts(id)).unwrap_or_default();
        let mut names: Vec<_> = parts
            .into_iter()
            .flat_map(|p| p.properties.keys().map(String::as_str))
            .collect();
        names.sort_unstable();
        names
    }
}
