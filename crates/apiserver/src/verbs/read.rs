//! `get`: one object from the cache.

use super::Outcome;
use crate::call::Call;
use crate::wire::answer;
use bytes::Bytes;
use http::StatusCode;

/// Answers the object the path names; a subresource reads as the whole object, as in Kubernetes.
pub(crate) async fn get(call: &Call<'_>) -> Outcome {
    super::list::wait_for_version(call, call.query.get("resourceVersion")).await?;
    let object = call.current()?;
    one(call, StatusCode::OK, object.json())
}

/// One object in the form the client wants.
pub(crate) fn one(call: &Call<'_>, code: StatusCode, json: &Bytes) -> Outcome {
    let body = answer::form(call.kind(), call.accept, call.include()?, call.now, json, true)?;
    Ok(answer::rendered(code, call.accept, body))
}
