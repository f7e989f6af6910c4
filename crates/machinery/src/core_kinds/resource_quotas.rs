//! `resourcequotas`: stored now, enforced later.

use super::{Shape, columns, kind as core};
use crate::{
    kind::{Kind, Scope, Storage},
    typed::Rules,
};
use api::{
    field::{Errors, Path},
    quantity,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::Value;

struct ResourceQuotas;

impl Rules for ResourceQuotas {
    type Object = ResourceQuota;

    fn validate(&self, object: &ResourceQuota) -> Errors {
        let mut errors = Errors::new();
        let path = Path::new("spec").child("hard");
        let hard = object.spec.as_ref().and_then(|s| s.hard.as_ref());
        for (resource, amount) in hard.into_iter().flatten() {
            if quantity::Quantity::from(amount.0.as_str()).milli().is_none() {
                errors.invalid(
                    &path.key(resource),
                    &amount.0,
                    "must be a quantity of 0 or more, such as 10, 500m or 4Gi",
                );
            }
        }
        errors
    }

    fn validate_update(&self, new: &ResourceQuota, old: &ResourceQuota) -> Errors {
        let mut errors = Errors::new();
        let scopes = |o: &ResourceQuota| o.spec.as_ref().and_then(|s| s.scopes.clone());
        if scopes(new) != scopes(old) {
            let text = scopes(new).unwrap_or_default().join(", ");
            errors.invalid(&Path::new("spec").child("scopes"), text, "field is immutable");
        }
        errors
    }

    fn strategic_merge(&self) -> bool {
        true
    }

    fn warnings(&self, _object: &ResourceQuota) -> Vec<String> {
        vec!["resource quotas are stored, but not enforced by this version".into()]
    }
}

/// `cpu: 1/4, jobs: 3/100` of the resources whose name does or does not begin with `limits.`.
fn used(object: &Value, limits: bool) -> Value {
    let hard = object["spec"]["hard"].as_object().into_iter().flatten();
    let parts: Vec<_> = hard
        .filter(|(resource, _)| resource.starts_with("limits.") == limits)
        .map(|(resource, amount)| {
            let used = object["status"]["used"][resource].as_str().unwrap_or("0");
            format!("{resource}: {used}/{}", amount.as_str().unwrap_or_default())
        })
        .collect();
    parts.join(", ").into()
}

pub(super) fn kind() -> Kind {
    let request = |object: &Value, _: Timestamp| used(object, false);
    let limit = |object: &Value, _: Timestamp| used(object, true);
    core(
        ResourceQuotas,
        Shape {
            plural: "resourcequotas",
            short_names: &["quota"],
            scope: Scope::Namespaced,
            columns: vec![
                columns::computed(
                    "Request",
                    "string",
                    "What may be asked for, used and most",
                    request,
                ),
                columns::computed(
                    "Limit",
                    "string",
                    "What may be used at most, used and most",
                    limit,
                ),
                columns::age(),
            ],
            selectable: &[],
            status_subresource: true,
            storage: Storage::Durable,
        },
    )
}
