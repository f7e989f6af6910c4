//! `events` of the core group: what kubectl lists and describes, and what the parts of the control plane write.

use super::{Shape, columns, kind as core};
use crate::{
    kind::{Kind, Scope, Storage},
    table::age_of,
    typed::Rules,
};
use api::field::{Errors, Path};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

/// Longest `message`, in bytes; an event is a sentence, not a log.
const MESSAGE: usize = 4096;

struct Events;

impl Rules for Events {
    type Object = Event;

    fn validate(&self, object: &Event) -> Errors {
        let mut errors = Errors::new();
        let about = object.involved_object.namespace.as_deref().unwrap_or_default();
        let own = object.metadata.namespace.as_deref().unwrap_or_default();
        if !about.is_empty() && about != own {
            let path = Path::new("involvedObject").child("namespace");
            errors.invalid(
                &path,
                about,
                format_args!("must be the event's own namespace, \"{own}\""),
            );
        }
        let length = object.message.as_ref().map_or(0, String::len);
        if length > MESSAGE {
            errors.too_long(&Path::new("message"), length, MESSAGE, "");
        }
        errors
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

/// When it was seen last; newer clients write `series` or only `eventTime`.
fn last_seen(object: &Value, now: Timestamp) -> Value {
    let times = [
        &object["series"]["lastObservedTime"],
        &object["lastTimestamp"],
        &object["eventTime"],
    ];
    age(&times, now)
}

fn first_seen(object: &Value, now: Timestamp) -> Value {
    age(&[&object["firstTimestamp"], &object["eventTime"]], now)
}

fn age(times: &[&Value], now: Timestamp) -> Value {
    let time = times.iter().find_map(|t| t.as_str()).unwrap_or_default();
    age_of(time, now).into()
}

/// `job/patch-web`.
fn object_of(object: &Value, _now: Timestamp) -> Value {
    let about = &object["involvedObject"];
    let kind = about["kind"].as_str().unwrap_or_default().to_lowercase();
    format!("{kind}/{}", about["name"].as_str().unwrap_or_default()).into()
}

fn source(object: &Value, _now: Timestamp) -> Value {
    let text = |field: &str| object["source"][field].as_str().unwrap_or_default();
    let component = Some(text("component")).filter(|c| !c.is_empty());
    let component = component
        .or(object["reportingComponent"].as_str())
        .unwrap_or_default();
    match text("host") {
        "" => component.into(),
        host => format!("{component}, {host}").into(),
    }
}

fn times_seen(object: &Value, _now: Timestamp) -> Value {
    object["series"]["count"]
        .as_i64()
        .or(object["count"].as_i64())
        .unwrap_or(1)
        .into()
}

pub(super) fn kind() -> Kind {
    use columns::{computed, field, wide};
    core(
        Events,
        Shape {
            plural: "events",
            short_names: &["ev"],
            scope: Scope::Namespaced,
            columns: vec![
                computed("Last Seen", "string", "Time since it was seen last", last_seen),
                field("Type", "string", ".type", "Normal or Warning"),
                field("Reason", "string", ".reason", "Why, in one word"),
                computed("Object", "string", "What it is about", object_of),
                wide(field(
                    "Subobject",
                    "string",
                    ".involvedObject.fieldPath",
                    "Which part of it",
                )),
                wide(computed("Source", "string", "Who says so", source)),
                field("Message", "string", ".message", "What happened"),
                wide(computed(
                    "First Seen",
                    "string",
                    "Time since it was seen first",
                    first_seen,
                )),
                wide(computed("Count", "string", "How often it was seen", times_seen)),
                wide(field("Name", "string", ".metadata.name", "Name of the event")),
            ],
            selectable: &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "type",
            ],
            status_subresource: false,
            storage: Storage::Lazy,
        },
    )
}
