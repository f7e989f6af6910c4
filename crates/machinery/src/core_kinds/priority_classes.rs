//! `priorityclasses.scheduling.k8s.io`.

use super::{Shape, columns, kind as core};
use crate::{
    kind::{Kind, Scope, Storage},
    typed::Rules,
};
use api::field::{Errors, Path};
use k8s_openapi::api::scheduling::v1::PriorityClass;

/// Users' classes end here; above are those whose names begin with `system-`.
const HIGHEST: i32 = 1_000_000_000;
const PREEMPT: &str = "PreemptLowerPriority";

struct PriorityClasses;

impl Rules for PriorityClasses {
    type Object = PriorityClass;

    fn complete(&self, object: &mut PriorityClass) {
        object.preemption_policy.get_or_insert_with(|| PREEMPT.into());
        object.value.get_or_insert(0);
    }

    fn validate(&self, object: &PriorityClass) -> Errors {
        let mut errors = Errors::new();
        let system = object
            .metadata
            .name
            .as_deref()
            .unwrap_or_default()
            .starts_with("system-");
        if object.value.is_some_and(|v| v > HIGHEST) && !system {
            let value = object.value.unwrap_or_default();
            errors.invalid(
                &Path::new("value"),
                value,
                format_args!("must be at most {HIGHEST}"),
            );
        }
        let policy = object.preemption_policy.as_deref().unwrap_or(PREEMPT);
        if ![PREEMPT, "Never"].contains(&policy) {
            errors.not_supported(&Path::new("preemptionPolicy"), policy, &[PREEMPT, "Never"]);
        }
        errors
    }

    fn validate_update(&self, new: &PriorityClass, old: &PriorityClass) -> Errors {
        let mut errors = Errors::new();
        let hint = "may not be changed in an update; create another class";
        if new.value != old.value {
            errors.forbidden(&Path::new("value"), hint);
        }
        if new.preemption_policy != old.preemption_policy {
            errors.forbidden(&Path::new("preemptionPolicy"), hint);
        }
        errors
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

pub(super) fn kind() -> Kind {
    core(
        PriorityClasses,
        Shape {
            plural: "priorityclasses",
            short_names: &["pc"],
            scope: Scope::Cluster,
            columns: vec![
                columns::field("Value", "integer", ".value", "Higher goes first"),
                columns::computed(
                    "Global-Default",
                    "boolean",
                    "Whether Jobs without a class get it",
                    |object, _| (object["globalDefault"] == true).into(),
                ),
                columns::age(),
                columns::field(
                    "PreemptionPolicy",
                    "string",
                    ".preemptionPolicy",
                    "Whether it may displace others",
                ),
            ],
            selectable: &[],
            status_subresource: false,
            storage: Storage::Durable,
        },
    )
}
