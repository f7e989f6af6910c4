//! `update` and `patch`, of objects and of their subresources.
//!
//! Both make a new object from the current one and write it if nobody wrote in between. Who sends a resourceVersion
//! gets a conflict if somebody did; a patch without one is applied again to what is there now.

use super::admit;
use super::{Outcome, read};
use crate::authz;
use crate::call::{Call, Lost};
use crate::object::Object;
use crate::wire::{answer, body};
use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use machinery::metadata;
use machinery::negotiate::Encoding;
use machinery::patch::{Patch, PatchType};
use machinery::status::Status;
use serde_json::Value;
use std::sync::Arc;
use store::{Guard, Revision};

/// How often a write without resourceVersion is tried anew.
const TRIES: usize = 32;

/// Replaces the object by the body.
pub(crate) async fn update(call: &Call<'_>, encoding: Encoding, sent: Body) -> Outcome {
    let sent = body::read(sent).await?;
    let decoded = body::object(call.kind(), &sent, encoding)?;
    let mut warnings = Vec::new();
    let object = admit::whole(call, decoded, &mut warnings)?;
    if call.kind().group == api::GROUP && version_of(&object).is_empty() {
        let mut errors = api::field::Errors::new();
        let at = api::field::Path::new("metadata").child("resourceVersion");
        errors.invalid(
            &at,
            "",
            "must be specified for an update: read the object, change it, send it back",
        );
        return Err(Status::invalid(call.kind(), call.name, errors));
    }
    change(call, |_| Ok((object.clone(), warnings.clone()))).await
}

/// Patches the object with the body.
pub(crate) async fn patch(call: &Call<'_>, content_type: Option<&str>, sent: Body) -> Outcome {
    let patch_type = PatchType::of_content_type(content_type, call.kind())?;
    let sent = body::read(sent).await?;
    let patch = Patch::decode(patch_type, &sent)?;
    change(call, |old| {
        let patched = patch.apply(call.kind(), call.name, old)?;
        let (object, unknown) = admit::typed(call, patched)?;
        let mut problems = patch.strict().to_vec();
        problems.extend(unknown);
        let mut warnings = Vec::new();
        admit::check_fields(call, problems, &mut warnings)?;
        Ok((object, warnings))
    })
    .await
}

fn version_of(object: &Value) -> &str {
    object["metadata"]["resourceVersion"]
        .as_str()
        .filter(|version| *version != "0")
        .unwrap_or_default()
}

/// Writes what `edit` makes of the current object; it also answers warnings. Whoever sent a resourceVersion is refused
/// in the second round, as then it is no longer the current one.
async fn change(call: &Call<'_>, edit: impl Fn(&Value) -> Result<(Value, Vec<String>), Status>) -> Outcome {
    let mut current = call.current()?;
    for _ in 0..TRIES {
        let old = current.value().map_err(Status::internal)?;
        let (mut new, mut warnings) = edit(&old)?;
        let version = version_of(&new).to_owned();
        let uid = new["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        metadata::check_preconditions(
            call.kind(),
            call.name,
            (Some(&uid), &current.uid),
            (Some(&version), version_of(&old)),
        )?;
        prepare(call, &mut new, &old, &mut warnings)?;
        match write(call, &current, &new).await? {
            Ok(json) => {
                let mut response = read::one(call, StatusCode::OK, &json)?;
                answer::warn(&mut response, &warnings);
                return Ok(response);
            }
            Err(Lost(None)) => return Err(Status::not_found(call.kind(), call.name)),
            Err(Lost(Some(now))) => current = now,
        }
    }
    Err(Status::modified(call.kind(), call.name))
}

/// Keeps what this write cannot change, and checks the rest.
fn prepare(call: &Call<'_>, new: &mut Value, old: &Value, warnings: &mut Vec<String>) -> Result<(), Status> {
    let kind = call.kind();
    let errors = match call.subresource {
        "" => {
            kind.strategy.prepare_update(new, old, &call.context());
            metadata::prepare_update(kind, new, old); // last, as what a client may not change raises no generation
            let mut errors = metadata::validate(kind, new);
            errors.extend(metadata::validate_update(new, old));
            errors.extend(kind.strategy.validate_update(new, old));
            warnings.extend(kind.strategy.warnings(new));
            errors
        }
        "status" => {
            metadata::prepare_status_update(new, old);
            kind.strategy.validate_status(new, old)
        }
        other => {
            kind.strategy
                .prepare_subresource(other, new, old, &call.context());
            let mut errors = metadata::validate_update(new, old);
            errors.extend(kind.strategy.validate_update(new, old));
            errors
        }
    };
    if !errors.is_empty() {
        return Err(Status::invalid(kind, call.name, errors));
    }
    authz::node::admits(call, old)?;
    authz::node::admits(call, new)
}

/// Stores `new` in place of `current`, or removes it if that was the last thing that held it. A write that changes
/// nothing is not made.
async fn write(call: &Call<'_>, current: &Arc<Object>, new: &Value) -> Result<Result<Bytes, Lost>, Status> {
    let stored = admit::stored(call, new)?;
    let guard = Guard::Revision(current.revision);
    if call.dry_run()? {
        return Ok(Ok(served(call, current, &stored, current.revision)?));
    }
    if admit::is_over(call, new) {
        return Ok(match call.commit(call.name, None, guard).await? {
            Ok((revision, _)) => Ok(served(call, current, &stored, revision)?),
            Err(lost) => Err(lost),
        });
    }
    if current.is_stored_as(&stored) {
        return Ok(Ok(current.json().clone()));
    }
    Ok(match call.commit(call.name, Some(stored), guard).await? {
        Ok((_, Some(object))) => Ok(object.json().clone()),
        Ok((_, None)) => return Err(Status::internal("the object is gone")),
        Err(lost) => Err(lost),
    })
}

/// What stored bytes look like to a client at a revision.
fn served(call: &Call<'_>, like: &Object, stored: &[u8], revision: Revision) -> Result<Bytes, Status> {
    let object = Object::new(
        &call.cache.shape,
        like.namespace.clone(),
        like.name.clone(),
        stored,
        revision,
    );
    Ok(object.map_err(Status::internal)?.json().clone())
}
