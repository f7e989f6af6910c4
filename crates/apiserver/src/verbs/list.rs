//! `list`: a snapshot, selected, in pages.

use super::Outcome;
use crate::cache::{Names, Pin, Snapshot};
use crate::call::{Call, Filter};
use crate::object::Object;
use crate::wire::answer;
use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, StatusCode};
use machinery::negotiate::Form;
use machinery::status::Status;
use machinery::table::Table;
use serde_json::json;
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Revision;

/// How long a request with a resourceVersion this server has not reached yet is kept.
const AHEAD: Duration = Duration::from_secs(3);
/// Bytes of a list that are put together before they are sent.
const PIECE: usize = 128 * 1024;

/// Reads a resourceVersion; absent and `0` mean any.
pub(crate) fn version(text: Option<&str>) -> Result<Option<Revision>, Status> {
    match text {
        None => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!(
                "resourceVersion: Invalid value: \"{text}\": must be a number this server gave out"
            ))
        }),
    }
}

/// Waits until the cache has reached a resourceVersion; 504 if it does not within three seconds. Without one, what
/// counts is the most recent state: a store that others write to as well is asked how far it is.
pub(crate) async fn wait_for_version(
    call: &Call<'_>,
    text: Option<&str>,
) -> Result<Option<Revision>, Status> {
    let wanted = version(text)?;
    let revision = match wanted {
        Some(revision) => revision,
        None if call.inner.options.shared_store => {
            call.inner.store.head().await.map_err(Status::internal)?.revision
        }
        None => return Ok(None),
    };
    let cache = &call.inner.cache;
    if revision > cache.revision()
        && tokio::time::timeout(AHEAD, cache.reaches(revision))
            .await
            .is_err()
    {
        return Err(Status::future_version(revision, cache.revision()));
    }
    Ok(wanted)
}

/// Answers a list.
pub(crate) async fn list(call: &Call<'_>) -> Outcome {
    let filter = call.filter()?;
    let limit = match call.query.number("limit")? {
        None | Some(0) => usize::MAX,
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let now = Instant::now();
    let (snapshot, from) = match call.query.get("continue") {
        Some(token) => {
            if !matches!(call.query.get("resourceVersion"), None | Some("0")) {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue: the token stands for one",
                ));
            }
            let pin = Pin::parse(token)?;
            (call.inner.pins.find(&pin, now)?, Some(pin))
        }
        None => {
            if limit == usize::MAX
                && call.query.get("resourceVersion").is_none()
                && let Some((objects, revision)) = indexed(call, &filter).await?
            {
                return Ok(answered(call, objects, revision, ""));
            }
            (snapshot(call).await?, None)
        }
    };
    let (objects, more) = select(call, &snapshot, &filter, from.as_ref(), limit);
    let mut metadata = String::new();
    if more > 0
        && let Some(last) = objects.last()
    {
        let pin = from.unwrap_or_else(|| call.inner.pins.pin(snapshot.clone(), now));
        metadata = format!(
            ",\"continue\":\"{}\"",
            pin.at(&last.namespace, &last.name).token()
        );
        if filter.is_open() {
            metadata.push_str(&format!(",\"remainingItemCount\":{more}"));
        }
    }
    Ok(answered(call, objects, snapshot.revision, &metadata))
}

/// The objects a selector on an indexed field gives, and the revision; `None` if no index helps.
async fn indexed(call: &Call<'_>, filter: &Filter) -> Result<Option<(Vec<Arc<Object>>, Revision)>, Status> {
    let Some((field, value)) = filter.index(call.kind()).filter(|(field, _)| *field > 0) else {
        return Ok(None);
    };
    wait_for_version(call, None).await?;
    let (mut objects, revision) = call.inner.cache.having(call.cache, field - 1, &value);
    objects.retain(|object| filter.matches(call.kind(), object));
    Ok(Some((objects, revision)))
}

/// The snapshot the request's resourceVersion asks for.
async fn snapshot(call: &Call<'_>) -> Result<Snapshot, Status> {
    let version = call.query.get("resourceVersion");
    let wanted = wait_for_version(call, version).await?;
    let snapshot = call.inner.cache.snapshot(call.cache);
    match (call.query.get("resourceVersionMatch"), wanted) {
        (None | Some("NotOlderThan"), Some(_)) | (None, None) => Ok(snapshot),
        (Some("Exact"), Some(0)) => Err(Status::bad_request(
            "resourceVersionMatch: Forbidden: \"Exact\" is forbidden for resourceVersion \"0\"",
        )),
        (Some("Exact"), Some(revision)) => call
            .cache
            .back_to(snapshot, revision)
            .map_err(|oldest| Status::too_old(revision, oldest)),
        (Some("NotOlderThan" | "Exact"), None) => Err(Status::bad_request(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        )),
        (Some(other), _) => Err(Status::bad_request(format!(
            "resourceVersionMatch: Unsupported value: \"{other}\": supported values: \"Exact\", \"NotOlderThan\""
        ))),
    }
}

/// Up to `limit` matching objects after the pin's place, and how many match after them (all that follow are counted
/// only where that costs nothing: without selectors).
fn select(
    call: &Call<'_>,
    snapshot: &Snapshot,
    filter: &Filter,
    from: Option<&Pin>,
    limit: usize,
) -> (Vec<Arc<Object>>, usize) {
    let start = from.map_or(Bound::Unbounded, |pin| Bound::Included(pin.namespace.as_str()));
    let namespaces = snapshot
        .objects
        .range::<_, str>((start, Bound::Unbounded))
        .filter(|(namespace, _)| filter.namespace.is_empty() || ***namespace == *filter.namespace);
    let mut found = Vec::new();
    let mut more = 0;
    for (namespace, names) in namespaces {
        let after = from
            .filter(|pin| *pin.namespace == **namespace)
            .map(|pin| pin.name.as_str());
        for object in objects(names, after, filter) {
            if !filter.matches(call.kind(), object) {
                continue;
            }
            if found.len() < limit {
                found.push(object.clone());
            } else {
                more += 1;
                if !filter.is_open() {
                    return (found, more);
                }
            }
        }
    }
    (found, more)
}

/// The objects of one namespace after a name; the one object alone if the filter names it.
fn objects<'a>(
    names: &'a Names,
    after: Option<&'a str>,
    filter: &'a Filter,
) -> Box<dyn Iterator<Item = &'a Arc<Object>> + 'a> {
    if !filter.name.is_empty() {
        return Box::new(
            names
                .get(filter.name.as_str())
                .into_iter()
                .filter(move |o| after.is_none_or(|a| *o.name > *a)),
        );
    }
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    Box::new(
        names
            .range::<_, str>((start, Bound::Unbounded))
            .map(|(_, object)| object),
    )
}

/// The list in the form the client wants. `metadata` is what its ListMeta has besides the resourceVersion.
fn answered(
    call: &Call<'_>,
    objects: Vec<Arc<Object>>,
    revision: Revision,
    metadata: &str,
) -> http::Response<Body> {
    let kind = call.kind();
    let list = match call.accept.form {
        Form::Table => return table(call, &objects, revision, metadata),
        Form::Metadata => ("PartialObjectMetadataList", "meta.k8s.io/v1".to_owned()),
        Form::Object | Form::Discovery => (kind.list_kind.as_str(), kind.api_version()),
    };
    let head = format!(
        "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{{\"resourceVersion\":\"{revision}\"{metadata}}},\"items\":[",
        list.0, list.1
    );
    let pieces = Pieces {
        head: Some(head.into()),
        objects: objects.into_iter(),
        metadata_only: call.accept.form == Form::Metadata,
        first: true,
        done: false,
    };
    if call.accept.yaml {
        let whole: Vec<u8> = pieces.flat_map(|piece| piece.unwrap_or_default()).collect();
        return answer::rendered(StatusCode::OK, call.accept, whole.into());
    }
    let body = Body::from_stream(futures::stream::iter(pieces));
    answer::typed(
        StatusCode::OK,
        HeaderValue::from_static(call.accept.content_type()),
        body,
    )
}

fn table(
    call: &Call<'_>,
    objects: &[Arc<Object>],
    revision: Revision,
    metadata: &str,
) -> http::Response<Body> {
    let list = serde_json::from_str(&format!("{{\"resourceVersion\":\"{revision}\"{metadata}}}"));
    let list = list.unwrap_or_else(|_| json!({"resourceVersion": revision.to_string()}));
    let include = match call.include() {
        Ok(include) => include,
        Err(status) => return answer::failure(&status),
    };
    let mut table = Table::new(call.kind(), include, call.now, &list, true);
    for object in objects {
        if let Err(error) = table.push_bytes(object.json()) {
            return answer::failure(&Status::internal(error));
        }
    }
    answer::rendered(StatusCode::OK, call.accept, table.finish().into())
}

/// The text of a list, a piece at a time, so that a large one is never in memory twice.
struct Pieces {
    head: Option<Bytes>,
    objects: std::vec::IntoIter<Arc<Object>>,
    metadata_only: bool,
    first: bool,
    done: bool,
}

impl Iterator for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let mut piece = BytesMut::with_capacity(4 * 1024);
        if let Some(head) = self.head.take() {
            piece.put(head);
        }
        while piece.len() < PIECE {
            let Some(object) = self.objects.next() else {
                piece.put_slice(b"]}");
                self.done = true;
                break;
            };
            if !std::mem::take(&mut self.first) {
                piece.put_u8(b',');
            }
            match self.metadata_only.then(|| answer::metadata_only(object.json())) {
                Some(Ok(partial)) => piece.put(partial),
                Some(Err(_)) | None => piece.put_slice(object.json()),
            }
        }
        Some(Ok(piece.freeze()))
    }
}
