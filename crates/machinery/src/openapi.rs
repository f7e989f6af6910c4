//! OpenAPI v3: the index and one document a group version, as `kubectl explain` and client-side validation read them.

use crate::kind::Kind;
use serde_json::Value;

/// All documents, made once at start.
#[derive(Debug, Default)]
pub struct OpenApi {
    documents: Vec<Document>,
}

/// The document of one group version.
#[derive(Debug)]
pub struct Document {
    /// Path below `/openapi/v3/`: `api/v1`, `apis/prow.windows/v1`.
    pub path: String,
    /// Hash of the content, upper-case hex; the `hash` query parameter and the ETag.
    pub hash: String,
    /// The document as JSON.
    pub body: bytes::Bytes,
}

impl OpenApi {
    /// Makes the documents of all `kinds`.
    pub fn new(_kinds: &[Kind]) -> Self {
        todo!()
    }

    /// `GET /openapi/v3`.
    pub fn index(&self) -> Value {
        todo!()
    }

    /// The document at a path below `/openapi/v3/`.
    pub fn document(&self, path: &str) -> Option<&Document> {
        self.documents.iter().find(|d| d.path == path)
    }
}
