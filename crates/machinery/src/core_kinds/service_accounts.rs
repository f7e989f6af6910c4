//! `serviceaccounts`.

use super::{Shape, columns, kind as core};
use crate::{
    kind::{Kind, Scope, Storage},
    typed::Rules,
};
use k8s_openapi::api::core::v1::ServiceAccount;

struct ServiceAccounts;

impl Rules for ServiceAccounts {
    type Object = ServiceAccount;

    fn strategic_merge(&self) -> bool {
        true
    }
}

pub(super) fn kind() -> Kind {
    core(
        ServiceAccounts,
        Shape {
            plural: "serviceaccounts",
            short_names: &["sa"],
            scope: Scope::Namespaced,
            columns: vec![
                columns::computed("Secrets", "integer", "How many Secrets it lists", |object, _| {
                    columns::count(object, &["secrets"])
                }),
                columns::age(),
            ],
            selectable: &[],
            status_subresource: false,
            storage: Storage::Durable,
        },
    )
}
