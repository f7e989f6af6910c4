//! Request bodies: read up to the limit, decoded to JSON values.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use machinery::decode;
use machinery::kind::Kind;
use machinery::negotiate::Encoding;
use machinery::status::Status;
use serde_json::Value;

/// The largest object, as JSON and as sent.
pub(crate) const LIMIT: usize = 1 << 20;
/// What is read and thrown away of a larger body, so that the client gets to read the answer.
const DRAINED: usize = 16 * LIMIT;

/// Reads a whole body.
pub(crate) async fn read(mut body: Body) -> Result<Bytes, Status> {
    let mut first: Option<Bytes> = None;
    let mut more = BytesMut::new();
    let mut total = 0;
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("the body could not be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        total += data.len();
        if total > DRAINED {
            break;
        }
        match (&first, total > LIMIT) {
            (_, true) => more.clear(),
            (None, _) => first = Some(data),
            (Some(start), _) => {
                if more.is_empty() {
                    more.extend_from_slice(start);
                }
                more.extend_from_slice(&data);
            }
        }
    }
    if total > LIMIT {
        return Err(Status::too_large(LIMIT));
    }
    Ok(if more.is_empty() {
        first.unwrap_or_default()
    } else {
        more.freeze()
    })
}

/// Decodes the body of a write to an object of `kind`. `apiVersion` and `kind` may be missing, but not wrong.
pub(crate) fn object(kind: &Kind, body: &[u8], encoding: Encoding) -> Result<decode::Body, Status> {
    if body.is_empty() {
        return Err(Status::bad_request(format!(
            "the body is empty; send a {} in it",
            kind.kind
        )));
    }
    let mut decoded = decode::decode(body, encoding).map_err(|error| Status::undecodable(kind, error))?;
    let Some(object) = decoded.value.as_object_mut() else {
        return Err(Status::undecodable(kind, "the body is no object"));
    };
    for (field, wanted) in [("apiVersion", kind.api_version()), ("kind", kind.kind.clone())] {
        match object.get(field) {
            Some(Value::String(found)) if *found == wanted => {}
            None | Some(Value::Null) => {
                object.insert(field.into(), wanted.into());
            }
            Some(Value::String(found)) if found.is_empty() => {
                object.insert(field.into(), wanted.into());
            }
            Some(found) => {
                return Err(Status::bad_request(format!(
                    "the {field} in the data ({}) does not match the expected {field} ({wanted})",
                    found.as_str().map_or_else(|| found.to_string(), str::to_owned)
                )));
            }
        }
    }
    Ok(decoded)
}
