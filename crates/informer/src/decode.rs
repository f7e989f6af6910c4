//! One line of a watch, decoded behind a guard: an object that cannot be read is told apart from a broken stream.

use kube::{Resource, core::Status};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap};

/// Marks the bookmark after which all objects there were have been sent.
const INITIAL_END: &str = "k8s.io/initial-events-end";

pub(crate) enum Event<K> {
    Applied(K),
    Deleted(Meta),
    Bookmark {
        version: String,
        initial_end: bool,
    },
    Error(Box<Status>),
    /// An object of this name that cannot be read.
    Unreadable {
        meta: Meta,
        error: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Partial {
    metadata: Meta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Meta {
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub resource_version: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

fn meta(object: &RawValue) -> Result<Meta, serde_json::Error> {
    serde_json::from_str::<Partial>(object.get()).map(|p| p.metadata)
}

/// Reads a line. An error means that the stream itself is broken.
pub(crate) fn event<K: Resource + DeserializeOwned>(line: &[u8]) -> Result<Event<K>, serde_json::Error> {
    let line: Line = serde_json::from_slice(line)?;
    Ok(match line.kind.as_ref() {
        "ERROR" => Event::Error(serde_json::from_str(line.object.get())?),
        "BOOKMARK" => {
            let meta = meta(line.object)?;
            Event::Bookmark {
                initial_end: meta.annotations.get(INITIAL_END).is_some_and(|v| v == "true"),
                version: meta.resource_version,
            }
        }
        "DELETED" => Event::Deleted(meta(line.object)?),
        _ => match serde_json::from_str(line.object.get()) {
            Ok(object) => Event::Applied(object),
            Err(error) => Event::Unreadable {
                meta: meta(line.object)?,
                error,
            },
        },
    })
}
