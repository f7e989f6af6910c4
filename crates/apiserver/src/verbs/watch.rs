//! `watch`: what happened after a resourceVersion, then what happens, as one JSON document a line.
//!
//! A watch is a cursor into the kind's ring, pulled by the connection: a slow reader costs no memory and, once its
//! next event has left the ring, is told 410 to list again. With a selector, an object that comes to match is ADDED
//! and one that ceases to is DELETED.

use super::Outcome;
use super::list::wait_for_version;
use crate::cache::{Cursor, Event, IndexKey, KindCache, Look, Waker};
use crate::call::{Call, Filter};
use crate::inner::Inner;
use crate::metrics::Watching;
use crate::object::Object;
use crate::wire::answer;
use api::clock::Clock;
use axum::body::Body;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, StatusCode};
use machinery::negotiate::{Accept, Form};
use machinery::status::Status;
use machinery::table::IncludeObject;
use serde_json::json;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use store::Revision;
use tokio::time::Instant;

/// Events put into one piece of the answer at most.
const TAKE: usize = 128;
/// Without `timeoutSeconds`, a watch ends after this long and up to as long again.
const SHORTEST: u64 = 1_800;
/// Between bookmarks.
const BOOKMARK: Duration = Duration::from_secs(60);
/// How long before its end a watch sends a last bookmark.
const FAREWELL: Duration = Duration::from_secs(2);

/// Answers a watch.
pub(crate) async fn watch(call: &Call<'_>) -> Outcome {
    let filter = call.filter()?;
    let key = filter.index(call.kind());
    let waker = call.cache.waker(key.as_ref().map(borrowed));
    let initial_wanted = call
        .query
        .get("sendInitialEvents")
        .map(|flag| flag == "true" || flag == "1");
    if initial_wanted.is_some() && call.query.get("resourceVersionMatch") != Some("NotOlderThan") {
        return Err(Status::bad_request(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires resourceVersionMatch=NotOlderThan",
        ));
    }
    let version = wait_for_version(call, call.query.get("resourceVersion")).await?;
    let from_now = matches!(version, None | Some(0));
    let mut initial = Vec::new();
    let (cursor, sent) = match version {
        Some(revision) if initial_wanted != Some(true) && revision > 0 => match call.cache.after(revision) {
            Ok(cursor) => (cursor, revision),
            Err(oldest) => return gone(call.accept, Status::too_old(revision, oldest)),
        },
        _ => {
            let snapshot = call.inner.cache.snapshot(call.cache);
            if initial_wanted.unwrap_or(from_now) {
                let objects = snapshot.objects.values().flat_map(|names| names.values());
                initial = objects
                    .filter(|object| filter.matches(call.kind(), object))
                    .cloned()
                    .collect();
            }
            (snapshot.cursor, snapshot.revision)
        }
    };
    let bookmarks = call.query.flag("allowWatchBookmarks");
    let lasts = match call.query.number("timeoutSeconds")? {
        Some(seconds) if seconds > 0 => seconds,
        _ => SHORTEST + call.inner.random.number() % SHORTEST,
    };
    let now = Instant::now();
    let deadline = now + Duration::from_secs(lasts.min(24 * 3_600));
    let farewell = deadline
        .checked_sub(FAREWELL)
        .filter(|at| *at > now)
        .unwrap_or(deadline);
    let watch = Watch {
        inner: call.inner.clone(),
        cache: call.cache.clone(),
        filter,
        key,
        cursor,
        waker,
        format: Format {
            accept: call.accept,
            include: call.include()?,
            headers: true,
            clock: call.inner.clock.clone(),
        },
        sent,
        end_of_initial: (initial_wanted == Some(true)).then_some(sent),
        initial: initial.into_iter(),
        deadline,
        bookmark: bookmarks.then(|| (now + BOOKMARK).min(farewell)),
        farewell,
        over: false,
        stop: call.inner.stop.subscribe(),
        _counted: call.inner.metrics.watching(call.kind()),
    };
    let body = Body::from_stream(futures::stream::unfold(watch, |mut watch| async {
        let piece = watch.next().await?;
        Some((Ok::<_, Infallible>(piece), watch))
    }));
    Ok(answer::typed(
        StatusCode::OK,
        HeaderValue::from_static(call.accept.content_type()),
        body,
    ))
}

/// 410 as Kubernetes sends it to watches: in the stream, as an ERROR event of an answer that says 200.
fn gone(accept: Accept, status: Status) -> Outcome {
    let body = error_line(&status);
    Ok(answer::typed(
        StatusCode::OK,
        HeaderValue::from_static(accept.content_type()),
        body,
    ))
}

fn error_line(status: &Status) -> Bytes {
    let mut line = BytesMut::new();
    put(&mut line, "ERROR", &status.to_bytes());
    line.freeze()
}

fn put(out: &mut BytesMut, word: &str, object: &[u8]) {
    out.put_slice(b"{\"type\":\"");
    out.put_slice(word.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}

fn borrowed(key: &(usize, Box<str>)) -> IndexKey<'_> {
    IndexKey {
        field: key.0,
        value: &key.1,
    }
}

/// How objects are written.
struct Format {
    accept: Accept,
    include: IncludeObject,
    /// Whether the next Table carries the column definitions: only the first does.
    headers: bool,
    clock: Arc<dyn Clock>,
}

struct Watch {
    inner: Arc<Inner>,
    cache: Arc<KindCache>,
    filter: Filter,
    key: Option<(usize, Box<str>)>,
    cursor: Cursor,
    waker: Waker,
    format: Format,
    /// The newest resourceVersion the client knows of.
    sent: Revision,
    /// Objects that are there already and were not sent yet.
    initial: std::vec::IntoIter<Arc<Object>>,
    /// The revision of the bookmark that ends them.
    end_of_initial: Option<Revision>,
    deadline: Instant,
    /// When the next bookmark is due; `None` if the client wants none.
    bookmark: Option<Instant>,
    farewell: Instant,
    over: bool,
    stop: tokio::sync::watch::Receiver<bool>,
    _counted: Watching,
}

impl Watch {
    /// The next piece of the answer; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.over {
                return None;
            }
            if let Some(piece) = self.ready() {
                return Some(piece);
            }
            let wake = self.bookmark.map_or(self.deadline, |at| at.min(self.deadline));
            tokio::select! {
                () = self.waker.woken() => {}
                () = tokio::time::sleep_until(wake) => {
                    let now = Instant::now();
                    if now >= self.deadline {
                        return None;
                    }
                    if let Some(piece) = self.periodic(now).await {
                        return Some(piece);
                    }
                }
                _ = self.stop.changed() => return None,
            }
        }
    }

    /// What can be sent without waiting.
    fn ready(&mut self) -> Option<Bytes> {
        let mut out = BytesMut::new();
        for object in self.initial.by_ref().take(TAKE) {
            self.format.event(&self.cache, &mut out, "ADDED", object.json());
        }
        if !out.is_empty() {
            return Some(out.freeze());
        }
        if let Some(revision) = self.end_of_initial.take() {
            self.format.bookmark(&self.cache, &mut out, revision, true);
            return Some(out.freeze());
        }
        loop {
            let look = self
                .cache
                .look(&mut self.cursor, self.key.as_ref().map(borrowed), TAKE);
            let events = match look {
                Look::Events(events) => events,
                Look::Overrun(oldest) => {
                    self.over = true;
                    return Some(error_line(&Status::too_old(self.sent, oldest)));
                }
            };
            let last = events.last()?.revision;
            for event in &events {
                self.tell(&mut out, event);
            }
            self.sent = self.sent.max(last);
            if !out.is_empty() {
                return Some(out.freeze());
            }
        }
    }

    /// Writes an event as this watcher sees it.
    fn tell(&mut self, out: &mut BytesMut, event: &Event) {
        let kind = &self.cache.shape.kind;
        let matching = |object: &&Arc<Object>| self.filter.matches(kind, object);
        let (now, before) = (
            event.now.as_ref().filter(matching),
            event.before.as_ref().filter(matching),
        );
        match (now, before) {
            (Some(now), None) => self.format.event(&self.cache, out, "ADDED", now.json()),
            (Some(now), Some(_)) => self.format.event(&self.cache, out, "MODIFIED", now.json()),
            (None, Some(before)) => {
                self.format
                    .event(&self.cache, out, "DELETED", &before.json_at(event.revision));
            }
            (None, None) => {}
        }
    }

    /// The bookmark that is due, if there is something new to say.
    async fn periodic(&mut self, now: Instant) -> Option<Bytes> {
        self.bookmark = if now >= self.farewell {
            None
        } else {
            Some((now + BOOKMARK).min(self.farewell))
        };
        // The head first: all events up to `applied` are in the ring by now, and the look that follows finds them.
        let applied = self.inner.cache.revision();
        let durable = self.inner.store.head().await.ok()?.durable;
        if let Some(events) = self.ready() {
            return Some(events);
        }
        let revision = applied.min(durable);
        if revision < self.sent {
            return None;
        }
        self.sent = revision;
        let mut out = BytesMut::new();
        self.format.bookmark(&self.cache, &mut out, revision, false);
        Some(out.freeze())
    }
}

impl Format {
    fn event(&mut self, cache: &KindCache, out: &mut BytesMut, word: &str, object: &Bytes) {
        if self.accept.form == Form::Object {
            return put(out, word, object);
        }
        let now = self.clock.now();
        match answer::form(
            &cache.shape.kind,
            self.accept,
            self.include,
            now,
            object,
            self.headers,
        ) {
            Ok(body) => {
                self.headers = false;
                put(out, word, &body);
            }
            Err(status) => put(out, "ERROR", &status.to_bytes()),
        }
    }

    fn bookmark(&mut self, cache: &KindCache, out: &mut BytesMut, revision: Revision, ends_initial: bool) {
        let kind = &cache.shape.kind;
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if ends_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (word, version) = match self.accept.form {
            Form::Table => ("Table", "meta.k8s.io/v1".to_owned()),
            Form::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1".to_owned()),
            Form::Object | Form::Discovery => (kind.kind.as_str(), kind.api_version()),
        };
        let mut object = json!({"kind": word, "apiVersion": version, "metadata": metadata});
        if self.accept.form == Form::Table {
            object["rows"] = json!([]);
        }
        put(out, "BOOKMARK", object.to_string().as_bytes());
    }
}
