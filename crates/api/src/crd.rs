//! CustomResourceDefinitions of our kinds: the schema that our own server enforces and that a real Kubernetes can install.
//!
//! [`of`] takes what the types say and closes the gaps a real API server would trip over: every text, list and map gets a
//! bound (CEL cost is estimated from them), and no field is nullable beside a default (a stored `null` would break decoding).

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Bounds for what a type leaves open: the texts of Kubernetes' own types, such as a condition's message.
const TEXT: i64 = 32_768;
const ITEMS: i64 = 1024;
const ENTRIES: i64 = 1024;

/// The definition of a kind, all bounds in place.
pub fn of<T: kube::CustomResourceExt>() -> CustomResourceDefinition {
    let mut crd = T::crd();
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut())
        {
            close(schema);
        }
    }
    crd
}

/// All our kinds' definitions, in the order they are best installed.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        of::<crate::Node>(),
        of::<crate::Queue>(),
        of::<crate::Target>(),
        of::<crate::Job>(),
        of::<crate::Task>(),
    ]
}

fn close(schema: &mut JSONSchemaProps) {
    if schema.default.is_some() {
        schema.nullable = None;
    }
    match schema.type_.as_deref() {
        // a date has a form of its own, and so an end
        Some("string")
            if schema.enum_.is_none()
                && schema.max_length.is_none()
                && schema.format.as_deref() != Some("date-time") =>
        {
            schema.max_length = Some(TEXT);
        }
        Some("array") if schema.max_items.is_none() => schema.max_items = Some(ITEMS),
        Some("object") if schema.additional_properties.is_some() && schema.max_properties.is_none() => {
            schema.max_properties = Some(ENTRIES);
        }
        // what Rust calls uint32 is no format of OpenAPI
        Some("integer") if schema.format.as_deref().is_some_and(|f| f.starts_with("uint")) => {
            schema.format = None
        }
        _ => {}
    }
    for property in schema.properties.iter_mut().flat_map(|p| p.values_mut()) {
        close(property);
    }
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => close(items),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => all.iter_mut().for_each(close),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        close(values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Calls `f` with the path and schema of everything in `schema`.
    fn walk(schema: &Value, path: &str, f: &mut impl FnMut(&str, &Value)) {
        f(path, schema);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            walk(property, &format!("{path}.{name}"), f);
        }
        for key in ["items", "additionalProperties"] {
            if schema[key].is_object() {
                walk(&schema[key], &format!("{path}[]"), f);
            }
        }
    }

    fn each(mut f: impl FnMut(&str, &Value)) {
        for crd in all() {
            let crd = serde_json::to_value(crd).unwrap();
            let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
            walk(
                &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
                kind,
                &mut f,
            );
        }
    }

    #[test]
    fn every_integer_has_two_bounds() {
        each(|path, schema| {
            if schema["type"] == "integer" && !path.contains(".conditions[]") {
                assert!(
                    schema["minimum"].is_number() && schema["maximum"].is_number(),
                    "{path}: {schema}"
                );
            }
        });
    }

    #[test]
    fn nothing_is_nullable_beside_a_default() {
        each(|path, schema| {
            assert!(
                schema["nullable"] != true || schema["default"].is_null(),
                "{path}: {schema}"
            );
        });
    }

    #[test]
    fn texts_lists_and_maps_have_an_end() {
        each(|path, schema| match schema["type"].as_str() {
            Some("string") => assert!(
                schema["maxLength"].is_number()
                    || schema["enum"].is_array()
                    || schema["format"] == "date-time",
                "{path}: {schema}"
            ),
            Some("array") => assert!(schema["maxItems"].is_number(), "{path}: {schema}"),
            Some("object") if schema["additionalProperties"].is_object() => {
                assert!(schema["maxProperties"].is_number(), "{path}: {schema}");
            }
            _ => {}
        });
    }

    #[test]
    fn every_field_is_described() {
        each(|path, schema| {
            let inside_list = path.ends_with("[]");
            let own = path.contains(".spec.") || path.contains(".status.");
            if own && !inside_list {
                assert!(
                    schema["description"].as_str().is_some_and(|d| !d.is_empty()),
                    "{path}"
                );
            }
        });
    }

    #[test]
    fn no_field_or_value_is_spelt_like_a_yaml_boolean() {
        let trap = |word: &str| {
            ["on", "off", "yes", "no", "y", "n", "true", "false"].contains(&word.to_lowercase().as_str())
        };
        each(|path, schema| {
            assert!(!path.rsplit('.').next().is_some_and(trap), "{path}");
            for value in schema["enum"].as_array().into_iter().flatten() {
                assert!(!value.as_str().is_some_and(trap), "{path}: {value}");
            }
        });
    }

    #[test]
    fn definitions_fit_into_kubectl_applys_annotation_and_the_limit_of_selectable_fields() {
        for crd in all() {
            let name = crd.metadata.name.clone().unwrap();
            let size = serde_json::to_string(&crd).unwrap().len();
            assert!(size <= 256 << 10, "{name} has {size} bytes");
            let selectable = crd.spec.versions[0]
                .selectable_fields
                .as_ref()
                .map_or(0, Vec::len);
            assert!(selectable <= 8, "{name}");
        }
    }
}
