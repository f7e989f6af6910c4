//! Validation of `metadata`, alike for every kind.

use super::{dns_label, is_deleting, label_key, label_value, name_by_rule};
use crate::kind::{Kind, Scope};
use api::field::{Errors, Path};
use serde_json::{Map, Value};

/// All annotations of an object together, in bytes, as in Kubernetes.
const ANNOTATIONS: usize = 256 * 1024;
/// Finalizers without a domain that Kubernetes itself uses.
const PLAIN_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// All mistakes in the `metadata` of an object.
pub fn validate(kind: &Kind, object: &Value) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("metadata");
    let meta = &object["metadata"];
    names(kind, meta, &path, &mut errors);
    for (key, value) in map(&meta["labels"]) {
        let at = path.child("labels");
        if let Err(why) = label_key(key) {
            errors.invalid(&at, key, why);
        }
        let value = value.as_str().unwrap_or_default();
        if let Err(why) = label_value(value) {
            errors.invalid(&at.key(key), value, why);
        }
    }
    annotations(&meta["annotations"], &path.child("annotations"), &mut errors);
    for (i, finalizer) in list(&meta["finalizers"]).iter().enumerate() {
        let (at, finalizer) = (
            path.child("finalizers").index(i),
            finalizer.as_str().unwrap_or_default(),
        );
        if let Err(why) = label_key(finalizer) {
            errors.invalid(&at, finalizer, why);
        } else if !finalizer.contains('/') && !PLAIN_FINALIZERS.contains(&finalizer) {
            errors.invalid(
                &at,
                finalizer,
                "must begin with a domain and '/', such as example.com/cleanup",
            );
        }
    }
    owners(
        list(&meta["ownerReferences"]),
        &path.child("ownerReferences"),
        &mut errors,
    );
    errors
}

/// All mistakes in how `metadata` changed. `new` has been through [`super::prepare_update`].
pub fn validate_update(new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("metadata");
    for field in ["name", "namespace"] {
        let (after, before) = (text(&new["metadata"][field]), text(&old["metadata"][field]));
        if after != before {
            errors.invalid(
                &path.child(field),
                after,
                format_args!("field is immutable; it is \"{before}\""),
            );
        }
    }
    if is_deleting(old) {
        let before = list(&old["metadata"]["finalizers"]);
        let added = list(&new["metadata"]["finalizers"])
            .iter()
            .filter(|f| !before.contains(f));
        let added: Vec<_> = added.filter_map(Value::as_str).collect();
        if !added.is_empty() {
            let why = format!(
                "no finalizer can be added to an object that is being deleted; new: {}",
                added.join(", ")
            );
            errors.forbidden(&path.child("finalizers"), why);
        }
    }
    errors
}

fn names(kind: &Kind, meta: &Value, path: &Path, errors: &mut Errors) {
    match text(&meta["name"]) {
        "" => errors.required(&path.child("name"), "name or generateName is required"),
        name => {
            if let Err(why) = name_by_rule(kind.strategy.name_rule(), name) {
                errors.invalid(&path.child("name"), name, why);
            }
        }
    }
    match (kind.scope, text(&meta["namespace"])) {
        (Scope::Cluster, "") => {}
        (Scope::Cluster, _) => {
            let why = format!(
                "{} are not in a namespace; remove the field",
                kind.qualified_plural()
            );
            errors.forbidden(&path.child("namespace"), why);
        }
        (Scope::Namespaced, "") => {
            errors.required(&path.child("namespace"), "the object must be in a namespace")
        }
        (Scope::Namespaced, namespace) => {
            if let Err(why) = dns_label(namespace) {
                errors.invalid(&path.child("namespace"), namespace, why);
            }
        }
    }
}

fn annotations(annotations: &Value, path: &Path, errors: &mut Errors) {
    let mut total = 0;
    for (key, value) in map(annotations) {
        total += key.len() + text(value).len();
        if let Err(why) = label_key(&key.to_lowercase()) {
            errors.invalid(path, key, why);
        }
    }
    if total > ANNOTATIONS {
        let hint = "`kubectl apply` stores the manifest as an annotation; use `kubectl create` or `replace` for large ones";
        errors.too_long(path, total, ANNOTATIONS, hint);
    }
}

fn owners(owners: &[Value], path: &Path, errors: &mut Errors) {
    let mut controller = None;
    for (i, owner) in owners.iter().enumerate() {
        let at = path.index(i);
        for field in ["apiVersion", "kind", "name", "uid"] {
            if text(&owner[field]).is_empty() {
                errors.required(&at.child(field), "must name the owner");
            }
        }
        if text(&owner["kind"]) == "Event" {
            errors.invalid(&at.child("kind"), "Event", "an Event can own nothing");
        }
        if owner["controller"] == true {
            match controller {
                None => controller = Some(i),
                Some(first) => errors.invalid(
                    &at.child("controller"),
                    "true",
                    format_args!("only one owner can be the controller; {} is", path.index(first)),
                ),
            }
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn map(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_kinds::by_plural;
    use serde_json::json;

    fn mistakes(plural: &str, object: Value) -> String {
        validate(&by_plural(plural).unwrap(), &object).to_string()
    }

    #[test]
    fn a_good_object_has_none() {
        let object = json!({"metadata": {"name": "a.b", "namespace": "ops", "labels": {"prow.windows/role": "web", "e": ""},
            "annotations": {"Example.com/Note": "any text\n"}, "finalizers": ["orphan", "prow.windows/tracking"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "u", "controller": true}]}});
        assert_eq!(mistakes("configmaps", object), "[]");
    }

    #[test]
    fn every_mistake_is_named_with_its_path() {
        let object = json!({"metadata": {"name": "A", "namespace": "a.b", "labels": {"x y": "1", "k": "a b"},
            "annotations": {"": ""}, "finalizers": ["mine"],
            "ownerReferences": [{"kind": "Event", "controller": true}, {"apiVersion": "v1", "kind": "X", "name": "x",
                "uid": "y", "controller": true}]}});
        let text = mistakes("configmaps", object);
        for part in [
            "metadata.name: Invalid value: \"A\"",
            "metadata.namespace: Invalid value: \"a.b\"",
            "metadata.labels: Invalid value: \"x y\"",
            "metadata.labels[k]: Invalid value: \"a b\"",
            "metadata.annotations: Invalid",
            "metadata.finalizers[0]: Invalid value: \"mine\"",
            "metadata.ownerReferences[0].uid: Required",
            "metadata.ownerReferences[0].kind: Invalid value: \"Event\"",
            "metadata.ownerReferences[1].controller: Invalid",
        ] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    #[test]
    fn scope_decides_about_the_namespace() {
        assert!(
            mistakes("configmaps", json!({"metadata": {"name": "a"}}))
                .contains("metadata.namespace: Required")
        );
        let text = mistakes("namespaces", json!({"metadata": {"name": "a", "namespace": "b"}}));
        assert!(text.contains("metadata.namespace: Forbidden"), "{text}");
    }

    #[test]
    fn annotations_are_bounded_together() {
        let half = "x".repeat(ANNOTATIONS / 2);
        let object =
            json!({"metadata": {"name": "a", "namespace": "b", "annotations": {"a": half, "b": half}}});
        assert!(mistakes("configmaps", object).contains("metadata.annotations: Too long"));
    }

    #[test]
    fn a_dying_object_takes_no_new_finalizer_but_loses_old_ones() {
        let old = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b", "a/c"]}});
        let mut new = old.clone();
        new["metadata"]["finalizers"] = json!(["a/c"]);
        assert!(validate_update(&new, &old).is_empty());
        new["metadata"]["finalizers"] = json!(["a/c", "a/d"]);
        assert!(validate_update(&new, &old).to_string().contains("new: a/d"));
    }

    #[test]
    fn a_name_cannot_change() {
        let (old, new) = (
            json!({"metadata": {"name": "a"}}),
            json!({"metadata": {"name": "b"}}),
        );
        assert!(
            validate_update(&new, &old)
                .to_string()
                .contains("field is immutable")
        );
    }
}
