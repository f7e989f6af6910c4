//! Writes: merge patches that carry the resourceVersion they were worked out from, so they count only if nothing changed since.

use crate::error::Error;
use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::fmt::Debug;

/// What turns `old` into `new`, by top-level fields; nothing if they are the same. Fields that went are set to null.
pub(crate) fn difference(old: &impl Serialize, new: &impl Serialize) -> Option<Map<String, Value>> {
    let (old, new) = (fields(old), fields(new));
    let mut patch = Map::new();
    for (name, value) in &new {
        if old.get(name) != Some(value) {
            patch.insert(name.clone(), value.clone());
        }
    }
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    (!patch.is_empty()).then_some(patch)
}

fn fields(object: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(object) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(), // statuses are structs with string keys: they always serialise to objects
    }
}

/// Patches the status of the very object that was looked at.
pub(crate) async fn status<K>(api: &Api<K>, of: &K, status: &Map<String, Value>) -> Result<K, Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let body = guarded(of, json!({ "status": status }));
    let name = of.meta().name.as_deref().unwrap_or_default();
    Ok(api
        .patch_status(name, &PatchParams::default(), &Patch::Merge(body))
        .await?)
}

/// Patches everything else of the very object that was looked at.
pub(crate) async fn main<K>(api: &Api<K>, of: &K, body: Value) -> Result<K, Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let name = of.meta().name.as_deref().unwrap_or_default();
    Ok(api
        .patch(name, &PatchParams::default(), &Patch::Merge(guarded(of, body)))
        .await?)
}

fn guarded<K: Resource>(of: &K, mut body: Value) -> Value {
    body["metadata"]["resourceVersion"] = json!(of.meta().resource_version);
    body
}

/// Takes a finalizer away from the very object that was looked at.
pub(crate) async fn release<K>(api: &Api<K>, of: &K, finalizer: &str) -> Result<(), Error>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let held = of.meta().finalizers.clone().unwrap_or_default();
    if !held.iter().any(|f| f == finalizer) {
        return Ok(());
    }
    let rest: Vec<_> = held.into_iter().filter(|f| f != finalizer).collect();
    match main(api, of, json!({"metadata": {"finalizers": rest}})).await {
        Ok(_) | Err(Error::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::JobStatus;

    #[test]
    fn only_what_changed_is_written_and_what_went_is_cleared() {
        let old = JobStatus {
            message: "x".into(),
            active: 1,
            ..Default::default()
        };
        let mut new = old.clone();
        assert_eq!(difference(&old, &new), None);
        new.message.clear();
        new.succeeded = 1;
        let patch = Value::Object(difference(&old, &new).unwrap());
        assert_eq!(patch, json!({"message": null, "succeeded": 1}));
    }
}
