//! Kubernetes' own kinds, served as Kubernetes serves them: types and schemas come from `k8s-openapi`; here are their
//! names, columns, defaults and rules, one file a kind.

mod certificate_signing_requests;
mod columns;
mod config_maps;
mod data;
mod events;
mod leases;
mod namespaces;
mod priority_classes;
mod resource_quotas;
mod reviews;
mod secrets;
mod service_accounts;

use crate::{
    kind::{Column, Kind, Scope, Storage},
    schema::{REFERENCE, Schema},
    typed::{Rules, Typed},
};
use k8s_openapi::Resource;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Value, json};

/// All of them.
pub fn all() -> Vec<Kind> {
    let mut kinds = vec![
        namespaces::kind(),
        config_maps::kind(),
        secrets::kind(),
        service_accounts::kind(),
        events::kind(),
        resource_quotas::kind(),
        leases::kind(),
        certificate_signing_requests::kind(),
        priority_classes::kind(),
    ];
    kinds.extend(reviews::kinds());
    kinds
}

/// One by its plural name.
pub fn by_plural(plural: &str) -> Option<Kind> {
    all().into_iter().find(|k| k.plural == plural)
}

/// What a kind is beside its type and rules.
struct Shape {
    plural: &'static str,
    short_names: &'static [&'static str],
    scope: Scope,
    columns: Vec<Column>,
    selectable: &'static [&'static str],
    status_subresource: bool,
    storage: Storage,
}

/// Puts a kind together.
fn kind<R: Rules>(rules: R, shape: Shape) -> Kind
where
    R::Object: Resource + JsonSchema,
{
    let definitions = definitions::<R::Object>();
    let schema = json!({"$ref": format!("{REFERENCE}{}", R::Object::schema_name())});
    let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    Kind {
        group: R::Object::GROUP.into(),
        version: R::Object::VERSION.into(),
        kind: R::Object::KIND.into(),
        list_kind: format!("{}List", R::Object::KIND),
        plural: shape.plural.into(),
        singular: R::Object::KIND.to_lowercase(),
        short_names: owned(shape.short_names),
        categories: Vec::new(),
        scope: shape.scope,
        columns: shape.columns,
        selectable: owned(shape.selectable),
        status_subresource: shape.status_subresource,
        storage: shape.storage,
        strategy: Box::new(Typed::new(rules, Schema::new(&schema, &definitions))),
        schema,
        definitions,
    }
}

/// The schemas of a type and of all it is made of, by their Kubernetes names.
pub(crate) fn definitions<T: JsonSchema>() -> Vec<(String, Value)> {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let root = generator.root_schema_for::<T>().to_value();
    let mut definitions = vec![(T::schema_name().into_owned(), own_part(root))];
    for (name, schema) in generator.take_definitions(true) {
        if definitions.iter().all(|(known, _)| *known != name) {
            definitions.push((name, schema));
        }
    }
    definitions
}

/// A root schema without what makes it a document of its own.
fn own_part(mut root: Value) -> Value {
    if let Some(map) = root.as_object_mut() {
        for key in ["$schema", "title", "components"] {
            map.shift_remove(key);
        }
    }
    root
}

#[cfg(test)]
mod tests;
