//! How `metadata` changes from create to the end: what the server fills in, what clients cannot change, when the
//! generation grows, and what a delete does.

use crate::{kind::Kind, status::Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

/// What the server alone writes.
const SERVERS: [&str; 7] = [
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "resourceVersion",
    "selfLink",
];

/// A time as Kubernetes writes it, in whole seconds: `2026-12-24T18:00:00Z`.
pub fn timestamp(time: Timestamp) -> Value {
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
        .into()
}

/// Stamps a new object and drops what a client cannot set: `status` too, where it is written apart.
pub fn prepare_create(kind: &Kind, object: &mut Value, uid: &str, now: Timestamp) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    if kind.status_subresource {
        object.remove("status");
    }
    let meta = meta_of(object);
    for field in SERVERS {
        meta.remove(field);
    }
    meta.insert("uid".into(), uid.into());
    meta.insert("creationTimestamp".into(), timestamp(now));
    if kind.counts_generations() {
        meta.insert("generation".into(), 1.into());
    }
}

/// Keeps what an update cannot change (`status` too, where it is written apart) and raises the generation if
/// anything but metadata and status differs.
pub fn prepare_update(kind: &Kind, new: &mut Value, old: &Value) {
    let Some(new) = new.as_object_mut() else { return };
    if kind.status_subresource {
        replace(new, "status", old.get("status"));
    }
    keep_servers(new, old);
    if kind.counts_generations() && differs(new, old) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        meta_of(new).insert("generation".into(), generation.into());
    }
}

/// Keeps everything but `status`.
pub fn prepare_status_update(new: &mut Value, old: &Value) {
    let mut object = old.clone();
    if let (Some(object), Some(status)) = (object.as_object_mut(), new.get_mut("status")) {
        object.insert("status".into(), status.take());
    } else if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    *new = object;
}

fn keep_servers(new: &mut Map<String, Value>, old: &Value) {
    let meta = meta_of(new);
    for field in SERVERS {
        replace(meta, field, old["metadata"].get(field));
    }
}

/// Sets or removes a field without moving the others.
fn replace(map: &mut Map<String, Value>, field: &str, value: Option<&Value>) {
    match value {
        Some(value) => {
            map.insert(field.into(), value.clone());
        }
        None => {
            map.shift_remove(field);
        }
    }
}

fn meta_of(object: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let meta = object.entry("metadata").or_insert_with(|| Map::new().into());
    if !meta.is_object() {
        *meta = Map::new().into();
    }
    match meta {
        Value::Object(map) => map,
        _ => unreachable!("made an object above"),
    }
}

/// Whether anything differs that the generation counts.
fn differs(new: &Map<String, Value>, old: &Value) -> bool {
    let counted = |key: &str| !matches!(key, "apiVersion" | "kind" | "metadata" | "status");
    let old = old.as_object();
    let keys = new
        .keys()
        .chain(old.into_iter().flat_map(Map::keys))
        .filter(|k| counted(k));
    keys.into_iter()
        .any(|key| new.get(key) != old.and_then(|o| o.get(key)))
}

/// Whether a delete has been asked for.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The finalizers that still hold the object.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Whether the object is being deleted and nothing holds it: it must be removed now.
pub fn is_finalized(object: &Value) -> bool {
    is_deleting(object) && finalizers(object).next().is_none()
}

/// What becomes of an object's dependents when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are collected afterwards.
    Background,
    /// They go first.
    Foreground,
    /// They stay.
    Orphan,
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Propagation {
    /// Reads `propagationPolicy` and the old `orphanDependents` of delete options; `None` if neither is given.
    pub fn parse(policy: Option<&str>, orphan_dependents: Option<bool>) -> Result<Option<Self>, Status> {
        match (policy.filter(|p| !p.is_empty()), orphan_dependents) {
            (Some(_), Some(_)) => Err(Status::bad_request(
                "orphanDependents and propagationPolicy may not both be set; use propagationPolicy",
            )),
            (Some("Background"), None) => Ok(Some(Propagation::Background)),
            (Some("Foreground"), None) => Ok(Some(Propagation::Foreground)),
            (Some("Orphan"), None) => Ok(Some(Propagation::Orphan)),
            (Some(other), None) => Err(Status::bad_request(format!(
                "propagationPolicy: Unsupported value: \"{other}\": supported values: \"Foreground\", \"Background\", \"Orphan\""
            ))),
            (None, Some(true)) => Ok(Some(Propagation::Orphan)),
            (None, Some(false)) => Ok(Some(Propagation::Background)),
            (None, None) => Ok(None),
        }
    }
}

/// What a delete does to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Deletion {
    /// Nothing holds it: remove it now.
    Remove,
    /// Finalizers hold it: store it so, marked as being deleted.
    Mark(Value),
    /// It is marked already and this delete changes nothing.
    Unchanged,
}

/// What a delete at `now` does. `propagation` replaces the garbage collector's finalizers; `None` keeps them.
/// `grace_seconds` only ever shortens the deadline of a delete under way.
pub fn begin_deletion(
    kind: &Kind,
    object: &Value,
    now: Timestamp,
    grace_seconds: u32,
    propagation: Option<Propagation>,
) -> Deletion {
    let mut marked = object.clone();
    let Some(map) = marked.as_object_mut() else {
        return Deletion::Remove;
    };
    let meta = meta_of(map);
    if let Some(propagation) = propagation {
        set_collector_finalizer(meta, propagation);
    }
    if meta
        .get("finalizers")
        .and_then(Value::as_array)
        .is_none_or(Vec::is_empty)
    {
        return Deletion::Remove;
    }
    let under_way = meta.get("deletionGracePeriodSeconds").and_then(Value::as_u64);
    if meta.contains_key("deletionTimestamp") {
        if under_way.unwrap_or(0) > u64::from(grace_seconds) {
            stamp(meta, now, grace_seconds);
        }
    } else {
        stamp(meta, now, grace_seconds);
        if kind.counts_generations() {
            let generation = meta.get("generation").and_then(Value::as_i64).unwrap_or(0) + 1;
            meta.insert("generation".into(), generation.into());
        }
    }
    if marked == *object {
        Deletion::Unchanged
    } else {
        Deletion::Mark(marked)
    }
}

fn stamp(meta: &mut Map<String, Value>, now: Timestamp, grace_seconds: u32) {
    let deadline = now
        .checked_add(SignedDuration::from_secs(grace_seconds.into()))
        .unwrap_or(now);
    meta.insert("deletionTimestamp".into(), timestamp(deadline));
    meta.insert("deletionGracePeriodSeconds".into(), grace_seconds.into());
}

fn set_collector_finalizer(meta: &mut Map<String, Value>, propagation: Propagation) {
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let mut all = meta
        .get("finalizers")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    all.retain(|f| f.as_str() == wanted || (f != ORPHAN && f != FOREGROUND));
    if let Some(wanted) = wanted.filter(|w| !all.iter().any(|f| f == w)) {
        all.push(wanted.into());
    }
    if all.is_empty() {
        meta.shift_remove("finalizers");
    } else {
        meta.insert("finalizers".into(), all.into());
    }
}

/// Checks the uid and resource version a client says the object has; an absent or empty one is not checked.
pub fn check_preconditions(
    kind: &Kind,
    name: &str,
    uid: (Option<&str>, &str),
    resource_version: (Option<&str>, &str),
) -> Result<(), Status> {
    if let (Some(wanted), found) = uid
        && !wanted.is_empty()
        && wanted != found
    {
        return Err(Status::precondition(kind, name, "UID", wanted, found));
    }
    match resource_version {
        (Some(wanted), found) if !wanted.is_empty() && wanted != found => Err(Status::modified(kind, name)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_kinds::by_plural;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 600_000_000);

    /// A kind that counts generations, has a status and nothing else special.
    fn counting() -> Kind {
        crate::typed::tests_support::widget()
    }

    #[test]
    fn a_new_object_is_stamped_and_forged_fields_are_dropped() {
        let mut object = json!({"metadata": {"name": "x", "uid": "forged", "generation": 9, "resourceVersion": "4",
            "deletionTimestamp": "2020-01-01T00:00:00Z", "labels": {"a": "b"}}, "spec": 1, "status": {"phase": "Succeeded"}});
        prepare_create(&counting(), &mut object, "u-1", NOW);
        assert_eq!(
            object,
            json!({"metadata": {"name": "x", "labels": {"a": "b"}, "uid": "u-1",
            "creationTimestamp": "2027-01-15T08:00:00Z", "generation": 1}, "spec": 1})
        );
    }

    #[test]
    fn core_kinds_have_no_generation() {
        let mut object = json!({"metadata": {"name": "x"}});
        prepare_create(&by_plural("configmaps").unwrap(), &mut object, "u-1", NOW);
        assert!(object["metadata"].get("generation").is_none());
    }

    #[test]
    fn an_update_keeps_status_and_stamps_and_counts_only_what_matters() {
        let old = json!({"metadata": {"name": "x", "uid": "u", "generation": 3, "creationTimestamp": "t"},
            "spec": {"a": 1}, "status": {"phase": "Running"}});
        let generation_after = |mut new: Value| {
            prepare_update(&counting(), &mut new, &old);
            assert_eq!(
                (&new["status"], &new["metadata"]["uid"]),
                (&old["status"], &old["metadata"]["uid"])
            );
            new["metadata"]["generation"].as_i64().unwrap()
        };
        let same = json!({"metadata": {"name": "x", "labels": {"n": "w"}, "uid": "forged"}, "spec": {"a": 1}, "status": {}});
        assert_eq!(generation_after(same), 3);
        assert_eq!(
            generation_after(json!({"metadata": {"name": "x"}, "spec": {"a": 2}})),
            4
        );
        assert_eq!(generation_after(json!({"metadata": {"name": "x"}})), 4);
    }

    #[test]
    fn a_status_update_changes_nothing_else() {
        let old =
            json!({"metadata": {"name": "x", "uid": "u"}, "spec": {"a": 1}, "status": {"phase": "Running"}});
        let mut new = json!({"metadata": {"name": "y"}, "spec": {"a": 9}, "status": {"phase": "Failed"}});
        prepare_status_update(&mut new, &old);
        assert_eq!(
            new,
            json!({"metadata": {"name": "x", "uid": "u"}, "spec": {"a": 1}, "status": {"phase": "Failed"}})
        );
        let mut none = json!({"metadata": {}});
        prepare_status_update(&mut none, &old);
        assert!(none.get("status").is_none());
    }

    #[test]
    fn an_object_without_finalizers_goes_at_once() {
        let object = json!({"metadata": {"name": "x"}});
        assert_eq!(
            begin_deletion(&counting(), &object, NOW, 30, None),
            Deletion::Remove
        );
        assert_eq!(
            begin_deletion(&counting(), &object, NOW, 0, Some(Propagation::Background)),
            Deletion::Remove
        );
    }

    #[test]
    fn finalizers_hold_it_and_a_second_delete_only_shortens_the_deadline() {
        let object = json!({"metadata": {"name": "x", "generation": 1, "finalizers": ["a/b"]}});
        let Deletion::Mark(marked) = begin_deletion(&counting(), &object, NOW, 30, None) else {
            panic!()
        };
        assert_eq!(marked["metadata"]["deletionTimestamp"], "2027-01-15T08:00:30Z");
        assert_eq!(marked["metadata"]["generation"], 2);
        assert!(is_deleting(&marked) && !is_finalized(&marked));
        let again = |grace| begin_deletion(&counting(), &marked, NOW, grace, None);
        assert_eq!(again(60), Deletion::Unchanged);
        let Deletion::Mark(forced) = again(0) else {
            panic!()
        };
        assert_eq!(forced["metadata"]["deletionGracePeriodSeconds"], 0);
        assert_eq!(forced["metadata"]["generation"], 2);
    }

    #[test]
    fn propagation_becomes_the_collectors_finalizer_and_can_be_changed() {
        let object = json!({"metadata": {"name": "x"}});
        let mark = |object: &Value, p| match begin_deletion(&counting(), object, NOW, 0, Some(p)) {
            Deletion::Mark(marked) => marked,
            other => panic!("{other:?}"),
        };
        let foreground = mark(&object, Propagation::Foreground);
        assert_eq!(
            foreground["metadata"]["finalizers"],
            json!(["foregroundDeletion"])
        );
        let orphan = mark(&foreground, Propagation::Orphan);
        assert_eq!(orphan["metadata"]["finalizers"], json!(["orphan"]));
        let background = begin_deletion(&counting(), &orphan, NOW, 0, Some(Propagation::Background));
        assert_eq!(background, Deletion::Remove);
    }

    #[test]
    fn preconditions() {
        let kind = counting();
        let check = |uid, rv| check_preconditions(&kind, "x", (uid, "u"), (rv, "7")).map_err(|s| s.code());
        assert_eq!(check(None, None), Ok(()));
        assert_eq!(check(Some("u"), Some("7")), Ok(()));
        assert_eq!(check(Some(""), Some("")), Ok(()));
        assert_eq!(check(Some("v"), None), Err(409));
        assert_eq!(check(None, Some("6")), Err(409));
    }
}
