//! Picks the few fields the cache needs out of an object's JSON in one pass, without building the rest.
//!
//! A [`Wanted`] tree, made once a kind, says which paths matter; everything beside them is skipped by the parser.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The selectable fields, in the order they were asked for; empty where absent or no scalar.
    pub fields: Vec<Box<str>>,
    /// Labels, sorted by key.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

/// Which paths matter.
#[derive(Debug)]
pub(crate) struct Wanted {
    root: Node,
    fields: usize,
}

#[derive(Debug, Default)]
struct Node {
    children: Vec<(String, Node)>,
    /// What a scalar here is.
    leaves: Vec<Leaf>,
}

#[derive(Clone, Copy, Debug)]
enum Leaf {
    Field(usize),
    Uid,
    Deleting,
    Labels,
}

impl Wanted {
    /// The selectable `fields` beside what every object has.
    pub(crate) fn new(fields: &[String]) -> Self {
        let mut root = Node::default();
        root.want("metadata.uid", Leaf::Uid);
        root.want("metadata.deletionTimestamp", Leaf::Deleting);
        root.want("metadata.labels", Leaf::Labels);
        for (i, path) in fields.iter().enumerate() {
            root.want(path, Leaf::Field(i));
        }
        Self {
            root,
            fields: fields.len(),
        }
    }

    /// Reads `json`.
    pub(crate) fn find(&self, json: &[u8]) -> Result<Found, serde_json::Error> {
        let mut found = Found {
            fields: vec![Box::default(); self.fields],
            ..Found::default()
        };
        let mut reader = serde_json::Deserializer::from_slice(json);
        Walk {
            node: &self.root,
            found: &mut found,
        }
        .deserialize(&mut reader)?;
        found.labels.sort();
        Ok(found)
    }
}

impl Node {
    fn want(&mut self, path: &str, leaf: Leaf) {
        let mut node = self;
        for name in path.split('.') {
            let at = node
                .children
                .iter()
                .position(|(n, _)| n == name)
                .unwrap_or_else(|| {
                    node.children.push((name.to_owned(), Node::default()));
                    node.children.len() - 1
                });
            node = &mut node.children[at].1;
        }
        node.leaves.push(leaf);
    }
}

struct Walk<'a> {
    node: &'a Node,
    found: &'a mut Found,
}

impl Walk<'_> {
    fn scalar(&mut self, text: &str) {
        for leaf in &self.node.leaves {
            match leaf {
                Leaf::Field(i) => self.found.fields[*i] = text.into(),
                Leaf::Uid => self.found.uid = text.into(),
                Leaf::Deleting => self.found.deleting = true,
                Leaf::Labels => {}
            }
        }
    }

    fn labels(&self) -> bool {
        self.node.leaves.iter().any(|leaf| matches!(leaf, Leaf::Labels))
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.labels() {
            while let Some((key, value)) = map.next_entry::<Box<str>, Option<Box<str>>>()? {
                self.found.labels.push((key, value.unwrap_or_default()));
            }
            return Ok(());
        }
        while let Some(child) = map.next_key_seed(Key(self.node))? {
            match child {
                Some(node) => map.next_value_seed(Walk {
                    node,
                    found: self.found,
                })?,
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.scalar(text);
        Ok(())
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<(), E> {
        self.scalar(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<(), E> {
        self.scalar(&value.to_string());
        Ok(())
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<(), E> {
        self.scalar(&value.to_string());
        Ok(())
    }

    fn visit_f64<E>(mut self, value: f64) -> Result<(), E> {
        self.scalar(&value.to_string());
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Looks a key up among the wanted children without copying it.
struct Key<'a>(&'a Node);

impl<'de, 'a> DeserializeSeed<'de> for Key<'a> {
    type Value = Option<&'a Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Key<'a> {
    type Value = Option<&'a Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self
            .0
            .children
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, node)| node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(fields: &[&str], json: &str) -> Found {
        let fields: Vec<String> = fields.iter().map(|f| (*f).to_owned()).collect();
        Wanted::new(&fields).find(json.as_bytes()).unwrap()
    }

    #[test]
    fn picks_fields_labels_and_uid_from_among_the_rest() {
        let found = find(
            &["spec.nodeName", "status.phase", "spec.n", "spec.on"],
            r#"{"metadata":{"x":[1,{"uid":"no"}],"labels":{"b":"2","a":"1"},"uid":"u"},
                "spec":{"work":"{\"nodeName\":\"no\"}","nodeName":"web\u0030","n":3,"on":true}}"#,
        );
        assert_eq!(
            found.fields,
            ["web0".into(), "".into(), "3".into(), "true".into()]
        );
        assert_eq!(found.labels, [("a".into(), "1".into()), ("b".into(), "2".into())]);
        assert_eq!((&*found.uid, found.deleting), ("u", false));
    }

    #[test]
    fn a_field_that_is_no_scalar_is_empty() {
        let found = find(
            &["spec", "spec.a"],
            r#"{"spec":{"a":[1]},"metadata":{"deletionTimestamp":"x","labels":null}}"#,
        );
        assert_eq!(found.fields, ["".into(), "".into()]);
        assert!(found.deleting && found.labels.is_empty());
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        assert!(Wanted::new(&[]).find(b"{\"metadata\":").is_err());
    }
}
