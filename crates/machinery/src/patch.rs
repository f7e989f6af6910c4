//! Patches: JSON patch, JSON merge patch and, for core kinds, strategic merge patch.

use crate::{kind::Kind, status::Status};
use serde_json::Value;

/// The three kinds of patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchType {
    /// RFC 6902.
    Json,
    /// RFC 7386.
    Merge,
    /// Kubernetes' own, for core kinds only.
    Strategic,
}

impl PatchType {
    /// Reads a `Content-Type` header; 415 for anything else, with a hint for server-side apply.
    pub fn of_content_type(_content_type: Option<&str>, _kind: &Kind) -> Result<Self, Status> {
        todo!()
    }
}

/// A decoded patch; it can be applied again and again, as when a write came in between.
#[derive(Debug)]
pub struct Patch {}

impl Patch {
    /// Decodes a patch body.
    pub fn decode(_kind: PatchType, _body: &[u8]) -> Result<Self, Status> {
        todo!()
    }

    /// Keys the body has twice, as strict validation reports them.
    pub fn strict(&self) -> &[String] {
        todo!()
    }

    /// The patched object.
    pub fn apply(&self, _kind: &Kind, _name: &str, _object: &Value) -> Result<Value, Status> {
        todo!()
    }
}
