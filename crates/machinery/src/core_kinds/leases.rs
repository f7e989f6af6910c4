//! `leases.coordination.k8s.io`: node heartbeats and leader election.

use super::{Shape, columns, kind as core};
use crate::{
    kind::{Kind, Scope, Storage},
    typed::Rules,
};
use api::field::{Errors, Path};
use k8s_openapi::api::coordination::v1::Lease;

struct Leases;

impl Rules for Leases {
    type Object = Lease;

    fn validate(&self, object: &Lease) -> Errors {
        let mut errors = Errors::new();
        let path = Path::new("spec");
        let Some(spec) = &object.spec else { return errors };
        if let Some(seconds) = spec.lease_duration_seconds.filter(|s| *s <= 0) {
            errors.invalid(
                &path.child("leaseDurationSeconds"),
                seconds,
                "must be greater than 0",
            );
        }
        if let Some(transitions) = spec.lease_transitions.filter(|t| *t < 0) {
            errors.invalid(&path.child("leaseTransitions"), transitions, "must be at least 0");
        }
        if spec.holder_identity.as_deref() == Some("") && spec.strategy.is_some() {
            errors.invalid(
                &path.child("holderIdentity"),
                "",
                "must not be empty; remove the field",
            );
        }
        errors
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

/// Only the heartbeats in the namespace `prow-node-leases` are kept lazily; the API server sees to that.
pub(super) fn kind() -> Kind {
    core(
        Leases,
        Shape {
            plural: "leases",
            short_names: &[],
            scope: Scope::Namespaced,
            columns: vec![
                columns::field("Holder", "string", ".spec.holderIdentity", "Who holds it"),
                columns::age(),
            ],
            selectable: &[],
            status_subresource: false,
            storage: Storage::Lazy,
        },
    )
}
