//! Three-way merge: what to change in a live object so that it says what a manifest says, dropping only what an earlier apply had
//! put there. The earlier manifest lies in kubectl's own annotation, so both programs can be used on the same objects.

use serde_json::{Map, Value};

/// The annotation that holds the manifest of the last apply.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// `manifest` with its own text in [`LAST_APPLIED`].
pub fn annotated(manifest: &Value) -> Value {
    let mut bare = manifest.clone();
    if let Some(annotations) = bare["metadata"]["annotations"].as_object_mut() {
        annotations.remove(LAST_APPLIED);
    }
    if bare["metadata"]["annotations"].is_null() {
        bare["metadata"]["annotations"] = Value::Object(Map::new());
    }
    let text = format!("{bare}\n");
    bare["metadata"]["annotations"][LAST_APPLIED] = text.into();
    bare
}

/// The manifest of the last apply.
pub fn last_applied(live: &Value) -> Value {
    live["metadata"]["annotations"][LAST_APPLIED]
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// A JSON merge patch that makes `live` say what `wanted` says and drops what only `before` said; `None` if it does already.
pub fn patch(before: &Value, wanted: &Value, live: &Value) -> Option<Value> {
    let mut patch = Map::new();
    for (key, want) in wanted.as_object().into_iter().flatten() {
        let is = &live[key];
        if want.is_object() && is.is_object() {
            if let Some(inner) = self::patch(&before[key], want, is) {
                patch.insert(key.clone(), inner);
            }
        } else if want != is && !want.is_null() {
            patch.insert(key.clone(), want.clone());
        }
    }
    for key in before.as_object().into_iter().flatten().map(|(key, _)| key) {
        if wanted.get(key).is_none() && live.get(key).is_some() {
            patch.insert(key.clone(), Value::Null);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_others_added_stays_and_what_we_dropped_goes() {
        let before = json!({"data": {"a": "1", "b": "2"}});
        let wanted = json!({"data": {"a": "9"}});
        let live = json!({"data": {"a": "1", "b": "2", "theirs": "x"}, "status": {}});
        assert_eq!(
            patch(&before, &wanted, &live),
            Some(json!({"data": {"a": "9", "b": null}}))
        );
    }

    #[test]
    fn nothing_to_do_is_no_patch() {
        let manifest = json!({"metadata": {"name": "a"}, "spec": {"steps": [{"name": "x"}]}});
        let mut live = annotated(&manifest);
        live["spec"]["onUnknown"] = "Hold".into();
        assert_eq!(patch(&last_applied(&live), &annotated(&manifest), &live), None);
    }

    #[test]
    fn the_annotation_does_not_hold_itself() {
        let once = annotated(&json!({"metadata": {"name": "a"}}));
        assert_eq!(annotated(&once), once);
        assert_eq!(
            last_applied(&once),
            json!({"metadata": {"name": "a", "annotations": {}}})
        );
    }

    #[test]
    fn lists_are_replaced_whole() {
        let live = json!({"l": [1, 2]});
        assert_eq!(
            patch(&Value::Null, &json!({"l": [2]}), &live),
            Some(json!({"l": [2]}))
        );
    }
}
