//! Questions to the server about oneself, answered at once and never stored: who am I, may I, what may I.

use super::{Shape, kind as core};
use crate::{
    kind::{Kind, Scope, Storage},
    typed::Rules,
};
use api::field::{Errors, Path};
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    authorization::v1::{SelfSubjectAccessReview, SelfSubjectRulesReview},
};

struct WhoAmI;

impl Rules for WhoAmI {
    type Object = SelfSubjectReview;

    fn strategic_merge(&self) -> bool {
        true
    }
}

struct MayI;

impl Rules for MayI {
    type Object = SelfSubjectAccessReview;

    fn validate(&self, object: &SelfSubjectAccessReview) -> Errors {
        let mut errors = Errors::new();
        let spec = &object.spec;
        if spec.resource_attributes.is_some() == spec.non_resource_attributes.is_some() {
            let hint = "exactly one of resourceAttributes and nonResourceAttributes must be given";
            errors.invalid(&Path::new("spec").child("resourceAttributes"), "", hint);
        }
        errors
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

struct WhatMayI;

impl Rules for WhatMayI {
    type Object = SelfSubjectRulesReview;

    fn validate(&self, object: &SelfSubjectRulesReview) -> Errors {
        let mut errors = Errors::new();
        if object.spec.namespace.as_deref().unwrap_or_default().is_empty() {
            errors.required(
                &Path::new("spec").child("namespace"),
                "name the namespace whose rules to list",
            );
        }
        errors
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

fn shape(plural: &'static str) -> Shape {
    Shape {
        plural,
        short_names: &[],
        scope: Scope::Cluster,
        columns: Vec::new(),
        selectable: &[],
        status_subresource: false,
        storage: Storage::Virtual,
    }
}

pub(super) fn kinds() -> [Kind; 3] {
    [
        core(WhoAmI, shape("selfsubjectreviews")),
        core(MayI, shape("selfsubjectaccessreviews")),
        core(WhatMayI, shape("selfsubjectrulesreviews")),
    ]
}
