//! `namespaces`. As in Kubernetes, `spec.finalizers` holds a namespace until a controller has emptied it and takes
//! `kubernetes` out through the subresource `finalize`.

use super::{Shape, columns, kind as core};
use crate::{
    kind::{Context, Kind, NameRule, Scope, Storage},
    typed::Rules,
};
use k8s_openapi::api::core::v1::Namespace;

const FINALIZER: &str = "kubernetes";

struct Namespaces;

impl Rules for Namespaces {
    type Object = Namespace;

    /// Selectors by name work through this label.
    fn complete(&self, object: &mut Namespace) {
        if let Some(name) = object.metadata.name.clone().filter(|n| !n.is_empty()) {
            let labels = object.metadata.labels.get_or_insert_default();
            labels.insert("kubernetes.io/metadata.name".into(), name);
        }
    }

    fn prepare_create(&self, object: &mut Namespace, _context: &Context<'_>) {
        object.status.get_or_insert_default().phase = Some("Active".into());
        let finalizers = object
            .spec
            .get_or_insert_default()
            .finalizers
            .get_or_insert_default();
        if !finalizers.iter().any(|f| f == FINALIZER) {
            finalizers.push(FINALIZER.into());
        }
    }

    fn prepare_update(&self, new: &mut Namespace, old: &Namespace, _context: &Context<'_>) {
        new.spec = old.spec.clone();
    }

    /// `finalize` changes `spec.finalizers`, nothing else.
    fn prepare_subresource(&self, _subresource: &str, new: &mut Namespace, old: &Namespace, _: &Context<'_>) {
        let spec = new.spec.take();
        *new = old.clone();
        new.spec = spec;
    }

    fn subresources(&self) -> &'static [&'static str] {
        &["finalize"]
    }

    fn name_rule(&self) -> NameRule {
        NameRule::Label
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

pub(super) fn kind() -> Kind {
    core(
        Namespaces,
        Shape {
            plural: "namespaces",
            short_names: &["ns"],
            scope: Scope::Cluster,
            columns: vec![
                columns::field(
                    "Status",
                    "string",
                    ".status.phase",
                    "Active, or Terminating while its objects go",
                ),
                columns::age(),
            ],
            selectable: &["status.phase"],
            status_subresource: true,
            storage: Storage::Durable,
        },
    )
}
