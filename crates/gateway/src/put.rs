//! `PUT /logs/v1/namespaces/{ns}/tasks/{task}/{uid}/steps/{step}?start=N`: an agent ships a range.
//!
//! The body is the log's bytes from offset N, plain or `Content-Encoding: zstd`. The answer is `{"next": M}`, the offset
//! the log ends at now: a range that does not start at the end stores nothing, and the agent goes on from M. 410 tells
//! it to drop the log: the Task is gone or another one, or the log is complete.

use crate::refusal::Refusal;
use crate::tasks::{Outlook, outlook};
use crate::{Gateway, access};
use api::identity::Identity;
use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, header};
use logs::Log;
use machinery::status::Status;
use serde::Deserialize;
use std::io::Read;

/// The most bytes of log one request may bring, packed or not.
const LIMIT: usize = 4 << 20;

#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    start: u64,
}

pub(crate) async fn put(
    State(gateway): State<Gateway>,
    Path((namespace, name, uid, step)): Path<(String, String, String, String)>,
    query: Result<Query<Asked>, QueryRejection>,
    identity: Option<Extension<Identity>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    let identity = access::who(identity);
    let what = format!("\"{namespace}/{name}\"");
    access::check_any(&identity, "write", &what)?;
    let Query(Asked { start }) =
        query.map_err(|e| Status::bad_request(format!("{e}: ?start=<offset> is needed")))?;
    if !api::names::is_dns_label(&step) {
        return Err(Status::bad_request(format!("\"{step}\" is no name of a step")).into());
    }
    let Some(task) = gateway.tasks.find(&namespace, &name, Some(&uid)).await? else {
        return Err(Status::gone(format!("task {what} with uid {uid} is gone: drop its logs")).into());
    };
    access::check(&identity, "write", &what, &task)?;
    let log = Log::new(uid, step);
    if let Outlook::Until(end) = outlook(&task, &log.step)
        && gateway.logs.size(&log).await? >= end
    {
        let message = format!(
            "the log of step {} of task {what} is complete with {end} bytes",
            log.step
        );
        return Err(Status::gone(message).into());
    }
    let bytes = unpack(&headers, body).await?;
    let next = gateway.logs.append(&log, start, bytes).await?;
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((json, serde_json::json!({ "next": next }).to_string()).into_response())
}

/// The bytes of log in a body.
async fn unpack(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    let encoding = headers
        .get(header::CONTENT_ENCODING)
        .map_or(&b"identity"[..], |value| value.as_bytes());
    let packed = match encoding {
        b"identity" => false,
        b"zstd" => true,
        other => {
            let found = String::from_utf8_lossy(other);
            return Err(Status::unsupported_media_type(&found, &["identity", "zstd"]).into());
        }
    };
    let body = axum::body::to_bytes(body, LIMIT)
        .await
        .map_err(|_| Status::too_large(LIMIT))?;
    if !packed {
        return Ok(body);
    }
    let mut bytes = Vec::new();
    // One byte more than the limit shows that there is more, without unpacking all of a bomb.
    let limit = LIMIT as u64 + 1;
    zstd::stream::read::Decoder::new(&*body)
        .and_then(|frame| frame.take(limit).read_to_end(&mut bytes))
        .map_err(|e| Status::bad_request(format!("the body is no zstd frame: {e}")))?;
    if bytes.len() > LIMIT {
        return Err(Status::too_large(LIMIT).into());
    }
    Ok(bytes.into())
}
