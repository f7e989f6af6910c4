//! What a real Kubernetes API server would refuse or trip over.

#![allow(clippy::unwrap_used)]

mod cost;
mod evaluate;

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
            schema["maxLength"].is_number() || schema["enum"].is_array() || schema["format"] == "date-time",
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
