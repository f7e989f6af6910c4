//! `GET /logs/v1/namespaces/{ns}/tasks/{task}/steps/{step}?start=N&follow=true&tail=L`: a step's log.
//!
//! The body is the log as the runner wrote it, CRI lines (`<RFC3339Nano> stdout|stderr F|P <payload>`), from offset N
//! (default 0), or from where its last L lines begin if that is later. Header `prow-log-start` names the offset of the
//! first byte: a client that lost its connection goes on from there plus what it got.

use crate::refusal::Refusal;
use crate::{Gateway, access, follow, tail};
use api::identity::Identity;
use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, header};
use logs::Log;
use machinery::status::{Reason, Status};
use serde::Deserialize;

const START: HeaderName = HeaderName::from_static("prow-log-start");

#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    start: u64,
    #[serde(default)]
    follow: bool,
    tail: Option<u64>,
}

pub(crate) async fn get(
    State(gateway): State<Gateway>,
    Path((namespace, name, step)): Path<(String, String, String)>,
    query: Result<Query<Asked>, QueryRejection>,
    identity: Option<Extension<Identity>>,
) -> Result<Response, Refusal> {
    let identity = access::who(identity);
    let what = format!("\"{namespace}/{name}\"");
    access::check_any(&identity, "read", &what)?;
    let Query(asked) = query.map_err(|e| Status::bad_request(e.to_string()))?;
    let Some(task) = gateway.tasks.find(&namespace, &name, None).await? else {
        let message = format!("tasks.prow.windows \"{name}\" not found in namespace \"{namespace}\"");
        return Err(Status::new(Reason::NotFound, message).into());
    };
    access::check(&identity, "read", &what, &task)?;
    let log = Log::new(task.metadata.uid.as_deref().unwrap_or_default(), step);
    let mut start = asked.start;
    if let Some(lines) = asked.tail {
        let size = gateway.logs.size(&log).await?;
        start = start.max(tail::start(&*gateway.logs, &log, size, lines).await?);
    }
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        ),
        (START, HeaderValue::from(start)),
    ];
    let body = Body::from_stream(follow::stream(gateway, task, log, start, asked.follow));
    Ok((headers, body).into_response())
}
