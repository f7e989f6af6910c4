//! `create`: a new object, or the answer of a review.

use super::admit;
use super::{Outcome, read};
use crate::call::Call;
use crate::wire::{answer, body};
use crate::{enrol, namespace, reviews};
use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use machinery::kind::{Scope, Storage};
use machinery::negotiate::Encoding;
use machinery::status::Status;
use machinery::{metadata, status};
use serde_json::Value;
use store::Guard;

/// Names tried for a `generateName`.
const NAMES: usize = 8;

/// Creates what the body describes.
pub(crate) async fn create(call: &Call<'_>, encoding: Encoding, sent: Body) -> Outcome {
    if call.kind().scope == Scope::Namespaced
        && call.namespace.is_empty()
        && call.kind().storage != Storage::Virtual
    {
        return Err(Status::method_not_allowed(
            call.kind(),
            "create without a namespace in the path",
        ));
    }
    let sent = body::read(sent).await?;
    let decoded = body::object(call.kind(), &sent, encoding)?;
    if decoded.value["metadata"]["resourceVersion"]
        .as_str()
        .is_some_and(|version| !version.is_empty())
    {
        return Err(Status::bad_request(
            "metadata.resourceVersion: resourceVersion should not be set on objects to be created",
        ));
    }
    let mut warnings = Vec::new();
    let object = admit::whole(call, decoded, &mut warnings)?;
    if call.kind().storage == Storage::Virtual {
        let object = reviews::answer(call, object)?;
        return respond(call, &Bytes::from(object.to_string()), &warnings);
    }
    let json = new_object(call, object, &mut warnings).await?;
    respond(call, &json, &warnings)
}

fn respond(call: &Call<'_>, json: &Bytes, warnings: &[String]) -> Outcome {
    let mut response = read::one(call, StatusCode::CREATED, json)?;
    answer::warn(&mut response, warnings);
    Ok(response)
}

/// Stores a decoded object as a new one; answers it as served.
pub(crate) async fn new_object(
    call: &Call<'_>,
    mut object: Value,
    warnings: &mut Vec<String>,
) -> Result<Bytes, Status> {
    let kind = call.kind();
    let base = generate_base(&object);
    let uid = call.inner.random.uuid();
    metadata::prepare_create(kind, &mut object, &uid, call.now);
    if base.is_some() {
        // Validated with a name like those it will get.
        set_name(
            &mut object,
            &metadata::generate_name(base.as_deref().unwrap_or_default(), call.inner.random.number()),
        );
    }
    namespace::admits(call, object["metadata"]["name"].as_str().unwrap_or_default())?;
    kind.strategy.prepare_create(&mut object, &call.context());
    admit::check_new(call, &object)?;
    warnings.extend(kind.strategy.warnings(&object));
    enrol::admit(call, &mut object).await?;
    let dry_run = call.dry_run()?;
    for _ in 0..NAMES {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let stored = admit::stored(call, &object)?;
        let taken = if dry_run {
            if call.cache.get(call.namespace, &name).is_none() {
                return Ok(stored.into());
            }
            true
        } else {
            match call.commit(&name, Some(stored), Guard::Absent).await? {
                Ok((_, Some(object))) => return Ok(object.json().clone()),
                Ok((_, None)) => return Err(Status::internal("the object is gone")),
                Err(_) => true,
            }
        };
        match &base {
            Some(base) if taken => set_name(
                &mut object,
                &metadata::generate_name(base, call.inner.random.number()),
            ),
            _ => return Err(Status::already_exists(kind, &name)),
        }
    }
    let name = object["metadata"]["generateName"].as_str().unwrap_or_default();
    let why = "the server was not able to generate a unique name for the object; try again";
    Err(status::Status {
        message: format!("{}: {why}", kind.qualified_plural()),
        ..Status::already_exists(kind, name)
    })
}

/// `generateName`, if the object has no name of its own.
fn generate_base(object: &Value) -> Option<String> {
    let meta = &object["metadata"];
    let text = |field: &str| meta[field].as_str().filter(|text| !text.is_empty());
    match text("name") {
        Some(_) => None,
        None => text("generateName").map(str::to_owned),
    }
}

fn set_name(object: &mut Value, name: &str) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.insert("name".into(), name.into());
    }
}
