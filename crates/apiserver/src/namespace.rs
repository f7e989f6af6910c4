//! What is special about namespaces: nothing is made in one that is missing or going, and a namespace goes only after
//! a controller has emptied it and taken `kubernetes` out of `spec.finalizers` through `finalize`.

use crate::call::Call;
use machinery::kind::{Kind, Scope};
use machinery::metadata::{self, Deletion};
use machinery::status::Status;
use serde_json::Value;

fn is_namespace(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "namespaces"
}

/// Whether `spec.finalizers` still holds a namespace.
pub(crate) fn is_held(kind: &Kind, object: &Value) -> bool {
    is_namespace(kind)
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
}

/// Whether something new may be made in the namespace of the request.
pub(crate) fn admits(call: &Call<'_>, name: &str) -> Result<(), Status> {
    if call.kind().scope == Scope::Cluster {
        return Ok(());
    }
    let Some(namespaces) = call.inner.cache.plural("", "namespaces") else {
        return Ok(());
    };
    match namespaces.get("", call.namespace) {
        None => Err(Status::not_found(&namespaces.shape.kind, call.namespace)),
        Some(namespace) if namespace.deleting => {
            Err(Status::namespace_terminating(call.kind(), name, call.namespace))
        }
        Some(_) => Ok(()),
    }
}

/// Corrects what a delete does: a namespace that is held is marked as terminating, never removed.
pub(crate) fn begin_deletion(kind: &Kind, old: &Value, deletion: Deletion, now: jiff::Timestamp) -> Deletion {
    if !is_held(kind, old) {
        return deletion;
    }
    let mut marked = match deletion {
        Deletion::Unchanged => return Deletion::Unchanged,
        Deletion::Mark(marked) => marked,
        Deletion::Remove if metadata::is_deleting(old) => return Deletion::Unchanged,
        Deletion::Remove => {
            let mut marked = old.clone();
            marked["metadata"]["deletionTimestamp"] = metadata::timestamp(now);
            marked
        }
    };
    if !marked["status"].is_object() {
        marked["status"] = Value::Object(Default::default());
    }
    marked["status"]["phase"] = "Terminating".into();
    Deletion::Mark(marked)
}
