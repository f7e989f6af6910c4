//! CustomResourceDefinitions of our kinds: the schema that our own server enforces and that a real Kubernetes can install.
//!
//! [`of`] takes what the types say and closes the gaps a real API server would trip over: every text, list and map gets a
//! bound (CEL cost is estimated from them), and no field is nullable beside a default (a stored `null` would break decoding).
//! [`rules`] adds what a schema can only say in CEL.

mod rules;
#[cfg(test)]
mod tests;

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
    let kind = crd.spec.names.kind.clone();
    for version in &mut crd.spec.versions {
        if let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|s| s.open_api_v3_schema.as_mut())
        {
            close(schema);
            rules::add(&kind, "", schema);
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
