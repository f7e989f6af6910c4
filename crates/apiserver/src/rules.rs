//! What deleting means for Jobs and Tasks, beyond what it means for every object.

use crate::call::Call;
use crate::verbs::delete::Options;
use api::identity::Identity;
use machinery::metadata::Propagation;
use machinery::status::Status;
use serde_json::{Value, json};

/// Refuses deletes that would lose track of running work, and turns a delete without grace into a forced cancel.
/// Answers the object the delete goes on with, if it is another one.
pub(crate) fn before_delete(
    call: &Call<'_>,
    object: &Value,
    options: &Options,
) -> Result<Option<Value>, Status> {
    let kind = call.kind();
    if kind.group != api::GROUP {
        return Ok(None);
    }
    match kind.plural.as_str() {
        "tasks" if !is_part(call.user) => Err(Status::forbidden(
            kind,
            call.name,
            format!(
                "Tasks are deleted with their Job; to stop the work, cancel the Job: prow cancel {} -n {}",
                object["spec"]["jobRef"]["name"].as_str().unwrap_or_default(),
                call.namespace
            ),
        )),
        "jobs" => {
            let phase = object["status"]["phase"].as_str().unwrap_or("Pending");
            let finished = matches!(phase, "Succeeded" | "Failed" | "Cancelled" | "Unknown");
            if options.propagation == Some(Propagation::Orphan) && !finished {
                return Err(Status::forbidden(
                    kind,
                    call.name,
                    format!(
                        "a Job that is {phase} cannot be orphaned: nobody would end its Tasks; cancel it first, or delete it with --cascade=background"
                    ),
                ));
            }
            let forced = object["spec"]["cancel"]["force"] == true;
            Ok((options.grace == Some(0) && !finished && !forced).then(|| force(object)))
        }
        _ => Ok(None),
    }
}

/// The Job with a forced cancel.
fn force(job: &Value) -> Value {
    let mut job = job.clone();
    let reason = job["spec"]["cancel"]["reason"]
        .as_str()
        .unwrap_or("deleted without grace")
        .to_owned();
    job["spec"]["cancel"] = json!({"reason": reason, "force": true});
    let generation = job["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
    job["metadata"]["generation"] = generation.into();
    job
}

/// Whether a part of the control plane asks.
fn is_part(user: &Identity) -> bool {
    user.is_master() && user.name.starts_with("system:prow:")
}
