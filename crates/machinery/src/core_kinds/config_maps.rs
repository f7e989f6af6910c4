//! `configmaps`.

use super::{Shape, columns, data, kind as core};
use crate::{
    kind::{Kind, Scope, Storage},
    typed::Rules,
};
use api::field::{Errors, Path};
use k8s_openapi::api::core::v1::ConfigMap;

struct ConfigMaps;

impl Rules for ConfigMaps {
    type Object = ConfigMap;

    fn validate(&self, object: &ConfigMap) -> Errors {
        let mut errors = Errors::new();
        let (texts, bytes) = (Path::new("data"), Path::new("binaryData"));
        let in_data = |key: &String| object.data.as_ref().is_some_and(|d| d.contains_key(key));
        for key in object.data.iter().flat_map(|d| d.keys()) {
            data::key(key, &texts.key(key), &mut errors);
        }
        for key in object.binary_data.iter().flat_map(|d| d.keys()) {
            data::key(key, &bytes.key(key), &mut errors);
            if in_data(key) {
                errors.invalid(&bytes.key(key), key, "is in `data` too; keys must differ");
            }
        }
        let text_sizes = object.data.iter().flat_map(|d| d.values()).map(String::len);
        let byte_sizes = object
            .binary_data
            .iter()
            .flat_map(|d| d.values())
            .map(|v| v.0.len());
        data::total(&texts, text_sizes.chain(byte_sizes), &mut errors);
        errors
    }

    fn validate_update(&self, new: &ConfigMap, old: &ConfigMap) -> Errors {
        let mut errors = Errors::new();
        let same = [
            ("data", old.data == new.data),
            ("binaryData", old.binary_data == new.binary_data),
        ];
        data::immutable((old.immutable, new.immutable), &same, &mut errors);
        errors
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

pub(super) fn kind() -> Kind {
    core(
        ConfigMaps,
        Shape {
            plural: "configmaps",
            short_names: &["cm"],
            scope: Scope::Namespaced,
            columns: vec![
                columns::computed("Data", "integer", "How many entries it has", |object, _| {
                    columns::count(object, &["data", "binaryData"])
                }),
                columns::age(),
            ],
            selectable: &[],
            status_subresource: false,
            storage: Storage::Durable,
        },
    )
}
