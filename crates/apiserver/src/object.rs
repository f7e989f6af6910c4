//! An object as the cache holds it: the bytes that are served, and what selects it.
//!
//! A stored object has no resourceVersion, as that is known only after the commit. Stored bytes always start with
//! `{"apiVersion":…,"kind":…,"metadata":{`, a text fixed by the kind, so the resourceVersion is spliced in at a known
//! place and the bytes are never parsed to be served. Reads of the bytes go through [`Object::json`] alone: the seam
//! where bytes of finished objects can come from the store through an LRU one day; today all stay in memory.

mod extract;

use bytes::{BufMut, Bytes, BytesMut};
use extract::Wanted;
use machinery::kind::Kind;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use store::Revision;

/// A kind with what the cache works out of it once.
pub struct Shape {
    /// The kind.
    pub kind: Kind,
    /// What stored objects start with, up to and including the brace of the metadata.
    prefix: String,
    wanted: Wanted,
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shape({})", self.kind.qualified_plural())
    }
}

impl Shape {
    /// Works it out.
    pub fn new(kind: Kind) -> Self {
        let prefix = format!(
            "{{\"apiVersion\":\"{}\",\"kind\":\"{}\",\"metadata\":{{",
            kind.api_version(),
            kind.kind
        );
        let wanted = Wanted::new(&kind.selectable);
        Self { kind, prefix, wanted }
    }

    /// What the store's keys of this kind start with: `prow.windows/jobs/`.
    pub fn key_prefix(&self) -> String {
        let group = if self.kind.group.is_empty() {
            "core"
        } else {
            &self.kind.group
        };
        format!("{group}/{}/", self.kind.plural)
    }

    /// The store's key of an object; `namespace` is empty for cluster kinds.
    pub fn key(&self, namespace: &str, name: &str) -> String {
        format!("{}{namespace}/{name}", self.key_prefix())
    }

    /// The bytes to store: the prefix first, without resourceVersion, managedFields and selfLink.
    pub fn encode(&self, object: &Value) -> Result<Vec<u8>, serde_json::Error> {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(self.prefix.as_bytes());
        let empty = serde_json::Map::new();
        let metadata = object
            .get("metadata")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let rest = object.as_object().unwrap_or(&empty);
        let kept = metadata.iter().filter(|(key, value)| {
            !matches!(key.as_str(), "resourceVersion" | "managedFields" | "selfLink") && !value.is_null()
        });
        fields(&mut out, kept, true)?;
        out.push(b'}');
        let others = rest
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
        fields(&mut out, others, false)?;
        out.push(b'}');
        Ok(out)
    }
}

/// Writes `"key":value` pairs with commas between them, and before the first unless it is the `first` of its object.
fn fields<'a>(
    out: &mut Vec<u8>,
    pairs: impl Iterator<Item = (&'a String, &'a Value)>,
    mut first: bool,
) -> Result<(), serde_json::Error> {
    for (key, value) in pairs {
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        serde_json::to_writer(&mut *out, key)?;
        out.push(b':');
        serde_json::to_writer(&mut *out, value)?;
    }
    Ok(())
}

/// An object at a revision.
#[derive(Debug)]
pub struct Object {
    /// Namespace; empty for cluster kinds.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// The revision that put it.
    pub revision: Revision,
    /// Uid.
    pub uid: Box<str>,
    /// Whether it has a deletionTimestamp.
    pub deleting: bool,
    labels: Box<[(Box<str>, Box<str>)]>,
    /// In the order of [`Kind::selectable`].
    fields: Box<[Box<str>]>,
    served: Bytes,
    /// Where the digits of the resourceVersion lie in `served`.
    digits: std::ops::Range<usize>,
}

/// Stored bytes that are no object. Only another program's write could leave such.
#[derive(Debug, thiserror::Error)]
#[error("the stored object {key} is damaged: {why}")]
pub struct Damaged {
    key: String,
    why: serde_json::Error,
}

impl Object {
    /// Makes the served form of stored bytes.
    pub fn new(
        shape: &Shape,
        namespace: Arc<str>,
        name: Arc<str>,
        stored: &[u8],
        revision: Revision,
    ) -> Result<Self, Damaged> {
        let damaged = |why| Damaged {
            key: shape.key(&namespace, &name),
            why,
        };
        let rewritten;
        let stored = if stored.starts_with(shape.prefix.as_bytes()) {
            stored
        } else {
            let value: Value = serde_json::from_slice(stored).map_err(damaged)?;
            rewritten = shape.encode(&value).map_err(damaged)?;
            &rewritten
        };
        let found = shape.wanted.find(stored).map_err(damaged)?;
        let (served, digits) = splice(stored, shape.prefix.len(), revision);
        Ok(Self {
            namespace,
            name,
            revision,
            uid: found.uid,
            deleting: found.deleting,
            labels: found.labels.into(),
            fields: found.fields.into(),
            served,
            digits,
        })
    }

    /// The object as it is served.
    pub fn json(&self) -> &Bytes {
        &self.served
    }

    /// The same with another resourceVersion: a watch reports a deletion at the revision of the deletion.
    pub fn json_at(&self, revision: Revision) -> Bytes {
        let mut out = BytesMut::with_capacity(self.served.len() + 4);
        out.put_slice(&self.served[..self.digits.start]);
        out.put_slice(revision.to_string().as_bytes());
        out.put_slice(&self.served[self.digits.end..]);
        out.freeze()
    }

    /// Whether these stored bytes are its own.
    pub fn is_stored_as(&self, stored: &[u8]) -> bool {
        // What the resourceVersion adds: its name and quotes before the digits, a quote and mostly a comma after them.
        let (start, end) = (self.digits.start - FIELD.len(), self.digits.end + 1);
        let end = end + usize::from(self.served.get(end) == Some(&b','));
        stored.len() == self.served.len() - (end - start)
            && stored[..start] == self.served[..start]
            && stored[start..] == self.served[end..]
    }

    /// The object as a value, resourceVersion included.
    pub fn value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_slice(&self.served)
    }

    /// A label's value.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(k, _)| (**k).cmp(key)).ok()?;
        Some(&self.labels[at].1)
    }

    /// The selectable field number `i` of the kind.
    pub fn field(&self, i: usize) -> &str {
        self.fields.get(i).map_or("", |field| field)
    }

    /// How many selectable fields there are.
    pub fn field_count(&self) -> usize {
        self.fields.len()
    }

    /// A field a selector may name, by its path; empty if it is absent.
    pub fn field_at(&self, kind: &Kind, path: &str) -> Cow<'_, str> {
        Cow::Borrowed(match path {
            "metadata.name" => &self.name,
            "metadata.namespace" => &self.namespace,
            path => kind
                .selectable
                .iter()
                .position(|p| p == path)
                .map_or("", |i| self.field(i)),
        })
    }

    /// About how many bytes it takes in memory.
    pub fn size(&self) -> usize {
        self.served.len() + 200
    }
}

const FIELD: &[u8] = b"\"resourceVersion\":\"";

/// Puts the resourceVersion in at `at`; answers the bytes and where its digits lie.
fn splice(stored: &[u8], at: usize, revision: Revision) -> (Bytes, std::ops::Range<usize>) {
    let digits = revision.to_string();
    let mut out = BytesMut::with_capacity(stored.len() + FIELD.len() + digits.len() + 2);
    out.put_slice(&stored[..at]);
    out.put_slice(FIELD);
    let start = out.len();
    out.put_slice(digits.as_bytes());
    let end = out.len();
    out.put_u8(b'"');
    if stored.get(at) != Some(&b'}') {
        out.put_u8(b',');
    }
    out.put_slice(&stored[at..]);
    (out.freeze(), start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::config_map_shape;
    use serde_json::json;

    fn made(value: &Value, revision: Revision) -> (Object, Vec<u8>) {
        let shape = config_map_shape();
        let stored = shape.encode(value).unwrap();
        (
            Object::new(&shape, "ns".into(), "a".into(), &stored, revision).unwrap(),
            stored,
        )
    }

    #[test]
    fn the_resource_version_is_spliced_in_and_never_stored() {
        let value = json!({"data": {"k": "v"}, "metadata": {"name": "a", "resourceVersion": "1", "managedFields": [1], "labels": {"l": "m"}}});
        let (object, stored) = made(&value, 42);
        assert!(!String::from_utf8_lossy(&stored).contains("resourceVersion"));
        let served = object.value().unwrap();
        assert_eq!(
            served,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"resourceVersion": "42", "name": "a", "labels": {"l": "m"}}, "data": {"k": "v"}})
        );
        let later: Value = serde_json::from_slice(&object.json_at(1000)).unwrap();
        assert_eq!(later["metadata"]["resourceVersion"], "1000");
        assert_eq!((object.label("l"), object.label("x")), (Some("m"), None));
        assert!(object.is_stored_as(&stored));
        assert!(!object.is_stored_as(&made(&json!({"metadata": {"name": "a"}}), 42).1));
    }

    #[test]
    fn bytes_written_by_another_hand_are_put_in_order() {
        let shape = config_map_shape();
        let stored = br#"{"metadata":{"name":"a"},"kind":"ConfigMap","apiVersion":"v1"}"#;
        let object = Object::new(&shape, "ns".into(), "a".into(), stored, 7).unwrap();
        assert_eq!(
            object.value().unwrap()["metadata"],
            json!({"resourceVersion": "7", "name": "a"})
        );
        assert!(Object::new(&shape, "ns".into(), "a".into(), b"{\"metadata\":", 7).is_err());
    }

    #[test]
    fn an_object_without_any_metadata_is_served_too() {
        let (object, stored) = made(&json!({}), 3);
        assert_eq!(
            object.value().unwrap()["metadata"],
            json!({"resourceVersion": "3"})
        );
        assert!(object.is_stored_as(&stored));
    }
}
