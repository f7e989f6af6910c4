//! What every object goes through on its way in: typed decoding, defaults, the kind's own rules, size.

use crate::call::Call;
use crate::wire::body::LIMIT;
use crate::{authz, namespace};
use machinery::negotiate::FieldValidation;
use machinery::status::Status;
use machinery::{decode, kind::Scope, metadata};
use serde_json::Value;

/// Fields the kind does not know or that were written twice: refused, or dropped with a warning, also for who asked not to be told:
/// a job must not run without the limit its author wrote and nobody know. Adds to `warnings`.
pub(crate) fn check_fields(
    call: &Call<'_>,
    mut problems: Vec<String>,
    warnings: &mut Vec<String>,
) -> Result<(), Status> {
    // Without the parameter Kubernetes warns; its clients rely on that.
    let validation = FieldValidation::parse(Some(call.query.get("fieldValidation").unwrap_or("Warn")))?;
    match validation {
        FieldValidation::Strict if !problems.is_empty() => Err(Status::strict(call.kind(), &problems)),
        FieldValidation::Strict => Ok(()),
        FieldValidation::Warn => {
            warnings.append(&mut problems);
            Ok(())
        }
    }
}

/// Makes typed data of an object and back. Answers it with defaults, and the paths of fields that are not known.
pub(crate) fn typed(call: &Call<'_>, object: Value) -> Result<(Value, Vec<String>), Status> {
    let decoded = call
        .kind()
        .strategy
        .decode(object)
        .map_err(|error| Status::undecodable(call.kind(), error))?;
    Ok((decoded.object, decoded.unknown))
}

/// Decodes the body of a create or replace, checks its fields, and that it is about what the path names.
pub(crate) fn whole(
    call: &Call<'_>,
    body: decode::Body,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let (mut object, unknown) = typed(call, body.value)?;
    let mut problems = body.strict;
    problems.extend(unknown);
    check_fields(call, problems, warnings)?;
    let named = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (name, namespace) = (named("name"), named("namespace"));
    if !call.name.is_empty() && !name.is_empty() && name != call.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        )));
    }
    if !namespace.is_empty() && namespace != call.namespace {
        return Err(Status::bad_request(format!(
            "the namespace of the provided object does not match the namespace sent on the request: \"{namespace}\" in the object, \"{}\" in the request",
            call.namespace
        )));
    }
    let metadata = object.as_object_mut().map(|o| {
        o.entry("metadata")
            .or_insert_with(|| Value::Object(Default::default()))
    });
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        if call.kind().scope == Scope::Namespaced {
            metadata.insert("namespace".into(), call.namespace.into());
        }
        if !call.name.is_empty() {
            metadata.insert("name".into(), call.name.into());
        }
    }
    Ok(object)
}

/// The rules for a new object, all mistakes at once.
pub(crate) fn check_new(call: &Call<'_>, object: &Value) -> Result<(), Status> {
    let mut errors = metadata::validate(call.kind(), object);
    errors.extend(call.kind().strategy.validate_create(object));
    if !errors.is_empty() {
        let meta = &object["metadata"];
        let name = meta["name"]
            .as_str()
            .or(meta["generateName"].as_str())
            .unwrap_or_default();
        return Err(Status::invalid(call.kind(), name, errors));
    }
    authz::node::admits(call, object)
}

/// The bytes to store; refuses what is too large or holds too much.
pub(crate) fn stored(call: &Call<'_>, object: &Value) -> Result<Vec<u8>, Status> {
    let bytes = call.cache.shape.encode(object).map_err(Status::internal)?;
    if bytes.len() > LIMIT {
        return Err(Status::too_large(LIMIT));
    }
    Ok(bytes)
}

/// Whether an object is being deleted and nothing holds it any more.
pub(crate) fn is_over(call: &Call<'_>, object: &Value) -> bool {
    metadata::is_finalized(object) && !namespace::is_held(call.kind(), object)
}
