//! Which changes are allowed after creation.

use super::EDITABLE;
use crate::{
    Job, Task,
    field::{Errors, Path},
    task::{Drain, TaskStatus},
};
use serde::Serialize;
use serde_json::{Map, Value};

pub(super) fn job(new: &Job, old: &Job) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("spec");
    for field in differing(&new.spec.immutable(), &old.spec.immutable()) {
        errors.forbidden(
            &path.child(&field),
            format_args!(
                "cannot be changed after creation; what can is {EDITABLE}. For anything else make a new Job"
            ),
        );
    }
    let cancel = path.child("cancel");
    match (&old.spec.cancel, &new.spec.cancel) {
        (Some(_), None) => errors.forbidden(&cancel, "a cancel cannot be taken back; make a new Job"),
        (Some(was), Some(is)) => {
            if was.force && !is.force {
                errors.forbidden(&cancel.child("force"), "cannot be taken back");
            }
            if was.reason != is.reason {
                errors.forbidden(&cancel.child("reason"), "was given once and stays");
            }
        }
        (None, _) => {}
    }
    errors
}

pub(super) fn task(new: &Task, old: &Task) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("spec");
    for field in differing(&new.spec, &old.spec) {
        let path = path.child(&field);
        match field.as_str() {
            "stop" => match (&old.spec.stop, &new.spec.stop) {
                (None, _) => {}
                (Some(was), Some(is)) => {
                    let only_harder = is.reason == was.reason
                        && is.message == was.message
                        && is.grace_seconds <= was.grace_seconds
                        && is.force >= was.force;
                    if !only_harder {
                        errors.forbidden(
                            &path,
                            "was set once; only graceSeconds may shrink and force turn true",
                        );
                    }
                }
                (Some(_), None) => errors.forbidden(&path, "a stop cannot be taken back"),
            },
            "drain" if old.spec.drain == Some(Drain::Wanted) && new.spec.drain == Some(Drain::Done) => {}
            "drain" => errors.forbidden(&path, "goes from Wanted to Done, once"),
            "rebootAllowed" if new.spec.reboot_allowed => {}
            "resolution" if old.spec.resolution.is_none() => {}
            "resolution" | "rebootAllowed" => errors.forbidden(&path, "was set once and stays"),
            _ => errors.forbidden(&path, "a Task's spec cannot be changed; change the Job"),
        }
    }
    errors
}

pub(super) fn task_status(new: &Task, old: &Task) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("status");
    let none = TaskStatus::default();
    let (is, was) = (
        new.status.as_ref().unwrap_or(&none),
        old.status.as_ref().unwrap_or(&none),
    );
    if !was.phase.may_become(is.phase) {
        errors.forbidden(
            &path.child("phase"),
            format_args!("a Task that is {:?} cannot become {:?}", was.phase, is.phase),
        );
    }
    if was.claim.is_some() && was.claim != is.claim {
        errors.forbidden(
            &path.child("claim"),
            "was set once and stays: a Task is claimed by one agent only",
        );
    }
    if was.phase.is_terminal() {
        for field in differing(is, was) {
            if !["lateReport", "logsPending", "phase"].contains(&field.as_str()) {
                errors.forbidden(
                    &path.child(&field),
                    "the Task has ended; what comes later goes to lateReport",
                );
            }
        }
    }
    errors
}

/// The names of the top-level fields in which two objects differ.
fn differing(new: &impl Serialize, old: &impl Serialize) -> Vec<String> {
    let (new, old) = (fields(new), fields(old));
    let mut names: Vec<String> = new.keys().chain(old.keys()).cloned().collect();
    names.sort();
    names.dedup();
    names.retain(|name| new.get(name) != old.get(name));
    names
}

fn fields(object: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(object) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(), // our specs and statuses are structs with string keys: they always serialise to objects
    }
}
