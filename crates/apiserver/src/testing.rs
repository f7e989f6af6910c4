//! Objects for unit tests.

use crate::object::{Object, Shape};
use store::Revision;

/// The kind ConfigMap.
pub(crate) fn config_map_shape() -> Shape {
    Shape::new(machinery::core_kinds::by_plural("configmaps").unwrap())
}

/// An object with nothing but its names.
pub(crate) fn object(shape: &Shape, namespace: &str, name: &str, revision: Revision) -> Object {
    let value = serde_json::json!({"metadata": {"name": name, "namespace": namespace}});
    let stored = shape.encode(&value).unwrap();
    Object::new(shape, namespace.into(), name.into(), &stored, revision).unwrap()
}
