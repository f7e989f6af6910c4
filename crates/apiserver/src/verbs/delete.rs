//! `delete` and `deletecollection`: at once if nothing holds an object, else it is marked as being deleted.

use super::Outcome;
use super::list::wait_for_version;
use crate::call::{Call, Lost};
use crate::object::Object;
use crate::rules;
use crate::wire::{answer, body};
use crate::{namespace, verbs::admit};
use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::StatusCode;
use machinery::decode;
use machinery::metadata::{self, Deletion, Propagation};
use machinery::negotiate::Encoding;
use machinery::status::{Status, deleted};
use serde_json::{Value, json};
use std::sync::Arc;
use store::Guard;

/// How often a delete is tried anew when others write in between.
const TRIES: usize = 32;

/// Objects of a collection that are deleted at once.
const AT_ONCE: usize = 64;

/// `DeleteOptions` of body and query together.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub propagation: Option<Propagation>,
    /// Seconds; `None` if the client did not say.
    pub grace: Option<u32>,
    uid: Option<String>,
    version: Option<String>,
    dry_run: bool,
}

impl Options {
    pub(crate) fn parse(call: &Call<'_>, encoding: Encoding, sent: &[u8]) -> Result<Self, Status> {
        let sent = if sent.is_empty() {
            Value::Null
        } else {
            decode::decode(sent, encoding)
                .map_err(|error| Status::bad_request(format!("the body is no DeleteOptions: {error}")))?
                .value
        };
        let text = |field: &str| {
            sent[field]
                .as_str()
                .map(str::to_owned)
                .or_else(|| call.query.get(field).map(str::to_owned))
        };
        let grace = sent["gracePeriodSeconds"].as_i64().map(Ok).or_else(|| {
            call.query.get("gracePeriodSeconds").map(|text| {
                text.parse::<i64>().map_err(|_| {
                    Status::bad_request(format!("gracePeriodSeconds: \"{text}\" is no whole number"))
                })
            })
        });
        // kubectl sends -1 for "the default"; as in Kubernetes any negative value counts as one second.
        let grace = grace
            .transpose()?
            .map(|seconds| u32::try_from(seconds).unwrap_or(1));
        let orphan = sent["orphanDependents"].as_bool().or_else(|| {
            call.query
                .get("orphanDependents")
                .map(|text| text == "true" || text == "1")
        });
        let dry_run = match &sent["dryRun"] {
            Value::Array(all) if !all.is_empty() => {
                if all.iter().any(|one| one != "All") {
                    return Err(Status::bad_request(
                        "dryRun: Unsupported value: supported values: \"All\"",
                    ));
                }
                true
            }
            _ => call.dry_run()?,
        };
        let condition = |field: &str| sent["preconditions"][field].as_str().map(str::to_owned);
        Ok(Self {
            propagation: Propagation::parse(text("propagationPolicy").as_deref(), orphan)?,
            grace,
            uid: condition("uid"),
            version: condition("resourceVersion"),
            dry_run,
        })
    }
}

/// What a delete left.
enum Left {
    /// Nothing.
    Nothing,
    /// The object, held by finalizers.
    Held(Bytes),
}

/// Deletes the object the path names.
pub(crate) async fn delete(call: &Call<'_>, encoding: Encoding, sent: Body) -> Outcome {
    let options = Options::parse(call, encoding, &body::read(sent).await?)?;
    let current = call.current()?;
    let uid = current.uid.clone();
    match remove(call, current, &options).await? {
        Left::Nothing => Ok(answer::value(
            StatusCode::OK,
            call.accept,
            &deleted(call.kind(), call.name, &uid),
        )),
        Left::Held(json) => super::read::one(call, StatusCode::OK, &json),
    }
}

/// Deletes all objects the selectors choose; answers them as they were.
pub(crate) async fn delete_collection(call: &Call<'_>, encoding: Encoding, sent: Body) -> Outcome {
    let options = Options::parse(call, encoding, &body::read(sent).await?)?;
    let filter = call.filter()?;
    wait_for_version(call, None).await?;
    let snapshot = call.inner.cache.snapshot(call.cache);
    let chosen: Vec<_> = snapshot
        .objects
        .values()
        .flat_map(|names| names.values())
        .filter(|object| filter.matches(call.kind(), object))
        .collect();
    let mut running = FuturesUnordered::new();
    for object in &chosen {
        if running.len() == AT_ONCE
            && let Some(removed) = running.next().await
        {
            removed?;
        }
        running.push(remove_one(call, object, &options));
    }
    while let Some(removed) = running.next().await {
        removed?;
    }
    drop(running);
    let items = chosen
        .iter()
        .map(|object| object.value())
        .collect::<Result<Vec<_>, _>>()
        .map_err(Status::internal)?;
    let list = json!({"kind": call.kind().list_kind, "apiVersion": call.kind().api_version(),
        "metadata": {"resourceVersion": snapshot.revision.to_string()}, "items": items});
    Ok(answer::value(StatusCode::OK, call.accept, &list))
}

/// Deletes one object of a collection; that it is gone already is fine.
async fn remove_one(call: &Call<'_>, object: &Arc<Object>, options: &Options) -> Result<(), Status> {
    let call = Call {
        namespace: &object.namespace,
        name: &object.name,
        subresource: "",
        ..*call
    };
    match remove(&call, Arc::clone(object), options).await {
        Err(status) if status.code() != 404 => Err(status),
        _ => Ok(()),
    }
}

async fn remove(call: &Call<'_>, mut current: Arc<Object>, options: &Options) -> Result<Left, Status> {
    let kind = call.kind();
    let first = current.uid.clone();
    for _ in 0..TRIES {
        if current.uid != first && options.uid.is_none() {
            return Ok(Left::Nothing); // somebody else removed it and a new one has its name
        }
        let old = current.value().map_err(Status::internal)?;
        let version = current.revision.to_string();
        metadata::check_preconditions(
            kind,
            call.name,
            (options.uid.as_deref(), &current.uid),
            (options.version.as_deref(), &version),
        )?;
        let edited = rules::before_delete(call, &old, options)?;
        let from = edited.as_ref().unwrap_or(&old);
        let grace = options.grace.unwrap_or(0);
        let deletion = metadata::begin_deletion(kind, from, call.now, grace, options.propagation);
        let deletion = match (namespace::begin_deletion(kind, from, deletion, call.now), edited) {
            (Deletion::Unchanged, Some(edited)) => Deletion::Mark(edited),
            (deletion, _) => deletion,
        };
        let lost = match deletion {
            Deletion::Unchanged => return Ok(Left::Held(current.json().clone())),
            Deletion::Remove if options.dry_run => return Ok(Left::Nothing),
            Deletion::Mark(marked) if options.dry_run => {
                return Ok(Left::Held(admit::stored(call, &marked)?.into()));
            }
            Deletion::Remove => match call
                .commit(call.name, None, Guard::Revision(current.revision))
                .await?
            {
                Ok(_) => return Ok(Left::Nothing),
                Err(lost) => lost,
            },
            Deletion::Mark(marked) => {
                let stored = admit::stored(call, &marked)?;
                match call
                    .commit(call.name, Some(stored), Guard::Revision(current.revision))
                    .await?
                {
                    Ok((_, Some(object))) => return Ok(Left::Held(object.json().clone())),
                    Ok((_, None)) => return Ok(Left::Nothing),
                    Err(lost) => lost,
                }
            }
        };
        match lost {
            Lost(Some(now)) => current = now,
            Lost(None) => return Err(Status::not_found(kind, call.name)),
        }
    }
    Err(Status::modified(kind, call.name))
}
