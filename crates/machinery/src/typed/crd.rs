//! A [`Kind`] out of a type's CRD: names, columns, selectable fields and schema are stated once, on the type.

use super::{Rules, Typed};
use crate::{
    core_kinds::definitions,
    kind::{Cell, Column, Context, Kind, NameRule, Scope, Storage},
    schema::{REFERENCE, Schema},
};
use api::{Resource, field::Errors};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinitionVersion,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde_json::{Value, json};
use std::marker::PhantomData;

/// The rules a type of ours states by [`Resource`].
struct OfResource<T>(PhantomData<fn() -> T>);

impl<T: Resource> Rules for OfResource<T> {
    type Object = T;

    fn prepare_create(&self, object: &mut T, context: &Context<'_>) {
        object.prepare_create(context.user);
    }

    fn prepare_update(&self, new: &mut T, old: &T, _context: &Context<'_>) {
        new.prepare_update(old);
    }

    fn validate(&self, object: &T) -> Errors {
        object.validate()
    }

    fn validate_update(&self, new: &T, old: &T) -> Errors {
        new.validate_update(old)
    }

    fn validate_status(&self, new: &T, old: &T) -> Errors {
        new.validate_status(old)
    }

    fn warnings(&self, object: &T) -> Vec<String> {
        object.warnings()
    }

    fn name_rule(&self) -> NameRule {
        if T::LABEL_NAME {
            NameRule::Label
        } else {
            NameRule::Subdomain
        }
    }
}

/// The kind of `T`, from its definition with all bounds in place; its first version is the one that is served.
pub fn kind<T: Resource>() -> Kind {
    let spec = api::crd::of::<T>().spec;
    let version = spec.versions.into_iter().next();
    let (name, columns, selectable, status, schema) = match version {
        Some(version) => parts(version),
        None => Default::default(),
    };
    let (schema, definitions) = with_full_metadata(schema);
    let names = spec.names;
    Kind {
        group: spec.group,
        version: name,
        list_kind: names.list_kind.unwrap_or_else(|| format!("{}List", names.kind)),
        singular: names.singular.unwrap_or_else(|| names.kind.to_lowercase()),
        kind: names.kind,
        plural: names.plural,
        short_names: names.short_names.unwrap_or_default(),
        categories: names.categories.unwrap_or_default(),
        scope: if spec.scope == "Cluster" {
            Scope::Cluster
        } else {
            Scope::Namespaced
        },
        columns,
        selectable,
        status_subresource: status,
        storage: Storage::Durable,
        strategy: Box::new(Typed::new(
            OfResource::<T>(PhantomData),
            Schema::new(&schema, &definitions),
        )),
        schema,
        definitions,
    }
}

/// Name, columns, selectable fields, whether it has a status subresource, schema.
type Parts = (String, Vec<Column>, Vec<String>, bool, Value);

fn parts(version: CustomResourceDefinitionVersion) -> Parts {
    let columns = version
        .additional_printer_columns
        .unwrap_or_default()
        .into_iter()
        .map(column)
        .collect();
    let selectable = version.selectable_fields.unwrap_or_default();
    let selectable = selectable
        .into_iter()
        .map(|f| f.json_path.trim_start_matches('.').to_owned())
        .collect();
    let status = version.subresources.is_some_and(|s| s.status.is_some());
    let schema = version.schema.and_then(|s| s.open_api_v3_schema);
    let schema = schema
        .and_then(|s| serde_json::to_value(s).ok())
        .unwrap_or_default();
    (version.name, columns, selectable, status, schema)
}

fn column(column: CustomResourceColumnDefinition) -> Column {
    Column {
        name: column.name,
        type_: column.type_,
        format: column.format.unwrap_or_default(),
        description: column.description.unwrap_or_default(),
        priority: column.priority.unwrap_or_default(),
        cell: Cell::Path(column.json_path),
    }
}

/// A CRD says nothing of `apiVersion`, `kind` and `metadata`; clients want to know them all the same.
fn with_full_metadata(mut schema: Value) -> (Value, Vec<(String, Value)>) {
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut properties = json!({
        "apiVersion": text("Group and version of the kind."),
        "kind": text("Name of the kind."),
        "metadata": {
            "description": "Standard object's metadata.",
            "allOf": [{"$ref": format!("{REFERENCE}{}", ObjectMeta::schema_name())}],
        },
    });
    let own = schema["properties"].take();
    if let (Some(all), Value::Object(own)) = (properties.as_object_mut(), own) {
        all.extend(own.into_iter().filter(|(name, _)| name != "metadata"));
    }
    schema["properties"] = properties;
    (schema, definitions::<ObjectMeta>())
}
