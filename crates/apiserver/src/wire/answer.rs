//! Answers: objects in the form the client asked for, lists, errors and warnings.

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use jiff::Timestamp;
use machinery::kind::Kind;
use machinery::negotiate::{Accept, Form};
use machinery::status::Status;
use machinery::table::{IncludeObject, Table};
use serde_json::{Value, json};

/// A response with a JSON body.
pub(crate) fn json(code: StatusCode, body: impl Into<Body>) -> Response<Body> {
    typed(code, HeaderValue::from_static("application/json"), body)
}

/// A response with plain text.
pub(crate) fn text(code: StatusCode, body: impl Into<Body>) -> Response<Body> {
    typed(code, HeaderValue::from_static("text/plain; charset=utf-8"), body)
}

/// A response with a body of a media type.
pub(crate) fn typed(code: StatusCode, media: HeaderValue, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, media);
    response
}

/// A failure as a `Status` object.
pub(crate) fn failure(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(code, status.to_bytes());
    if status.details.retry_after_seconds > 0 {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from(status.details.retry_after_seconds));
    }
    response
}

/// A value, as YAML if the client wants that.
pub(crate) fn value(code: StatusCode, accept: Accept, value: &Value) -> Response<Body> {
    rendered(code, accept, value.to_string().into())
}

/// JSON text, turned to YAML if the client wants that.
pub(crate) fn rendered(code: StatusCode, accept: Accept, json: Bytes) -> Response<Body> {
    if !accept.yaml {
        return typed(code, HeaderValue::from_static(accept.content_type()), json);
    }
    let yaml = serde_json::from_slice::<Value>(&json)
        .map_err(|error| error.to_string())
        .and_then(|value| serde_saphyr::to_string(&value).map_err(|error| error.to_string()));
    match yaml {
        Ok(yaml) => typed(code, HeaderValue::from_static(accept.content_type()), yaml),
        Err(error) => failure(&Status::internal(error)),
    }
}

/// The form of one object: itself, a Table of one row, or its metadata.
pub(crate) fn form(
    kind: &Kind,
    accept: Accept,
    include: IncludeObject,
    now: Timestamp,
    object: &Bytes,
    headers: bool,
) -> Result<Bytes, Status> {
    match accept.form {
        Form::Object | Form::Discovery => Ok(object.clone()),
        Form::Metadata => metadata_only(object),
        Form::Table => {
            let value: Value = serde_json::from_slice(object).map_err(Status::internal)?;
            let list = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
            let mut table = Table::new(kind, include, now, &list, headers);
            table.push(&value);
            Ok(table.finish().into())
        }
    }
}

/// `PartialObjectMetadata` of an object.
pub(crate) fn metadata_only(object: &[u8]) -> Result<Bytes, Status> {
    #[derive(serde::Deserialize)]
    struct Partial<'a> {
        #[serde(borrow)]
        metadata: &'a serde_json::value::RawValue,
    }
    let partial: Partial<'_> = serde_json::from_slice(object).map_err(Status::internal)?;
    let body = format!(
        "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{}}}",
        partial.metadata.get()
    );
    Ok(body.into())
}

/// Adds `Warning` headers; what does not fit Kubernetes' limit of 4 KiB together is left out.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    let mut room = 4_096_usize;
    for warning in warnings {
        let text: String = warning
            .chars()
            .filter(|c| !c.is_control())
            .flat_map(|c| matches!(c, '"' | '\\').then_some('\\').into_iter().chain([c]))
            .collect();
        let header = format!("299 - \"{text}\"");
        room = room.saturating_sub(header.len());
        if room == 0 {
            break;
        }
        if let Ok(header) = HeaderValue::from_bytes(header.as_bytes()) {
            response.headers_mut().append("warning", header);
        }
    }
}
