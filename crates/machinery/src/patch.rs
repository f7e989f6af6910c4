//! Patches: JSON patch, JSON merge patch and, for core kinds, strategic merge patch.

mod json;
mod strategic;

use crate::{
    decode,
    kind::Kind,
    status::{Reason, Status},
};
use serde_json::Value;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch";

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
    pub fn of_content_type(content_type: Option<&str>, kind: &Kind) -> Result<Self, Status> {
        let header = content_type.unwrap_or_default();
        let strategic = kind.strategy.strategic_merge();
        match header
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
            .as_str()
        {
            JSON => Ok(PatchType::Json),
            MERGE => Ok(PatchType::Merge),
            STRATEGIC if strategic => Ok(PatchType::Strategic),
            apply if apply.starts_with(APPLY) => Err(Status::new(
                Reason::UnsupportedMediaType,
                "server-side apply is not supported yet; use `kubectl apply` without --server-side",
            )),
            _ => {
                let accepted = [JSON, MERGE, STRATEGIC];
                Err(Status::unsupported_media_type(
                    header,
                    if strategic { &accepted } else { &accepted[..2] },
                ))
            }
        }
    }
}

#[derive(Debug)]
enum Change {
    Json(Vec<json_patch::PatchOperation>),
    Merge(Value),
    Strategic(Value),
}

/// A decoded patch; it can be applied again and again, as when a write came in between.
#[derive(Debug)]
pub struct Patch {
    change: Change,
    strict: Vec<String>,
}

impl Patch {
    /// Decodes a patch body.
    pub fn decode(kind: PatchType, body: &[u8]) -> Result<Self, Status> {
        let body = decode::json(body)?;
        let change = match kind {
            PatchType::Json => Change::Json(json::operations(body.value)?),
            _ if !body.value.is_object() => {
                return Err(Status::bad_request(
                    "the patch must be a JSON object with the fields to change",
                ));
            }
            PatchType::Merge => Change::Merge(body.value),
            PatchType::Strategic => Change::Strategic(body.value),
        };
        Ok(Self {
            change,
            strict: body.strict,
        })
    }

    /// Keys the body has twice, as strict validation reports them.
    pub fn strict(&self) -> &[String] {
        &self.strict
    }

    /// The patched object; `name` is for errors. What comes out still goes through the kind's decoding.
    pub fn apply(&self, kind: &Kind, name: &str, object: &Value) -> Result<Value, Status> {
        let mut patched = object.clone();
        match &self.change {
            Change::Json(operations) => json::apply(operations, &mut patched, kind, name)?,
            Change::Merge(patch) => json_patch::merge(&mut patched, patch),
            Change::Strategic(patch) => strategic::apply(&kind.kind, patch, &mut patched)?,
        }
        if patched.is_object() {
            Ok(patched)
        } else {
            Err(Status::bad_request("the patch leaves no object"))
        }
    }
}

#[cfg(test)]
mod tests;
