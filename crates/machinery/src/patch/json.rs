//! JSON patch, bounded: a few bytes of `copy` operations must not grow into gigabytes or into bottomless nesting.

use crate::{
    decode::MAX_DEPTH,
    kind::Kind,
    status::{Cause, Reason, Status},
};
use json_patch::PatchOperation;
use serde_json::Value;

/// Most operations in a patch, as in Kubernetes.
const OPERATIONS: usize = 10_000;
/// Most values that copies and moves may touch, counted with all that is inside them.
const TOUCHED: usize = 1_000_000;

/// Decodes the list of operations.
pub(super) fn operations(body: Value) -> Result<Vec<PatchOperation>, Status> {
    let count = body.as_array().map_or(0, Vec::len);
    if count > OPERATIONS {
        let message =
            format!("the patch has {count} operations; the limit is {OPERATIONS}: send several patches");
        return Err(Status::new(Reason::RequestEntityTooLarge, message));
    }
    if !body.is_array() {
        return Err(Status::bad_request(
            "a JSON patch must be a list of operations, such as [{\"op\": \"remove\", \"path\": \"/spec/x\"}]",
        ));
    }
    serde_path_to_error::deserialize(body)
        .map_err(|e| Status::bad_request(format!("the JSON patch is wrong at {}: {}", e.path(), e.inner())))
}

/// Applies the operations one by one.
pub(super) fn apply(
    operations: &[PatchOperation],
    object: &mut Value,
    kind: &Kind,
    name: &str,
) -> Result<(), Status> {
    let mut budget = TOUCHED;
    for (i, operation) in operations.iter().enumerate() {
        let failed = |why: String| failure(kind, name, i, operation, &why);
        let steps = operation.path().as_str().matches('/').count();
        let moved = source(operation).and_then(|from| object.pointer(from));
        let depth = moved.map_or(0, |value| {
            let (depth, size) = measure(value);
            budget = budget.saturating_sub(size);
            depth
        });
        if budget == 0 {
            return Err(failed(format!(
                "copies and moves touch more than {TOUCHED} values"
            )));
        }
        if steps + depth > MAX_DEPTH {
            return Err(failed(format!(
                "the object would be nested more than {MAX_DEPTH} levels deep"
            )));
        }
        json_patch::patch_unsafe(object, std::slice::from_ref(operation))
            .map_err(|e| failed(e.kind.to_string()))?;
    }
    Ok(())
}

/// Where a copy or move takes its value from.
fn source(operation: &PatchOperation) -> Option<&str> {
    match operation {
        PatchOperation::Copy(copy) => Some(copy.from.as_str()),
        PatchOperation::Move(move_) => Some(move_.from.as_str()),
        _ => None,
    }
}

/// Levels of nesting and number of values.
fn measure(value: &Value) -> (usize, usize) {
    let children: Vec<(usize, usize)> = match value {
        Value::Array(items) => items.iter().map(measure).collect(),
        Value::Object(fields) => fields.values().map(measure).collect(),
        _ => return (0, 1),
    };
    let depth = children.iter().map(|(depth, _)| *depth).max().unwrap_or(0);
    (
        depth + 1,
        children.iter().map(|(_, size)| *size).sum::<usize>() + 1,
    )
}

fn failure(kind: &Kind, name: &str, index: usize, operation: &PatchOperation, why: &str) -> Status {
    let op = match operation {
        PatchOperation::Add(_) => "add",
        PatchOperation::Remove(_) => "remove",
        PatchOperation::Replace(_) => "replace",
        PatchOperation::Move(_) => "move",
        PatchOperation::Copy(_) => "copy",
        PatchOperation::Test(_) => "test",
    };
    let path = operation.path().as_str();
    let mut status = Status::new(
        Reason::Invalid,
        format!(
            "{} \"{name}\" cannot be patched: operation {index} ({op} \"{path}\"): {why}",
            kind.qualified_plural()
        ),
    );
    status.details.name = name.into();
    status.details.group = kind.group.clone();
    status.details.kind = kind.kind.clone();
    let message = format!("{op} \"{path}\": {why}");
    status.details.causes.push(Cause {
        reason: "FieldValueInvalid".into(),
        message,
        field: format!("patch[{index}]"),
    });
    status
}
