//! `meta.k8s.io/v1` Tables: what `kubectl get` prints.

use crate::kind::Kind;
use jiff::Timestamp;
use serde_json::Value;

/// How much of each object goes into its row: the query parameter `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

/// A Table under construction.
pub struct Table<'a> {
    kind: &'a Kind,
    include: IncludeObject,
    now: Timestamp,
    body: Vec<u8>,
}

impl<'a> Table<'a> {
    /// Begins a table. `metadata` is its `ListMeta`; without `headers` (all but the first table of a watch) there
    /// are no column definitions.
    pub fn new(
        _kind: &'a Kind,
        _include: IncludeObject,
        _now: Timestamp,
        _metadata: &Value,
        _headers: bool,
    ) -> Self {
        todo!()
    }

    /// Adds the row of an object.
    pub fn push(&mut self, _object: &Value) {
        todo!()
    }

    /// Adds the row of an object given as JSON text; fails if it is none.
    pub fn push_bytes(&mut self, _object: &[u8]) -> Result<(), serde_json::Error> {
        let _ = (self.kind, self.include, self.now);
        todo!()
    }

    /// The table as JSON text.
    pub fn finish(self) -> Vec<u8> {
        self.body
    }
}
