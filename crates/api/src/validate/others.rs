//! Nodes, Queues and Targets.

use super::placement;
use crate::{
    Node, Queue, Target, duration,
    field::{Errors, Path},
};

pub(super) fn node(node: &Node) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("spec");
    placement::taints(&node.spec.taints, &path.child("taints"), &mut errors);
    placement::quantities(
        &node.spec.extended_resources,
        &path.child("extendedResources"),
        &mut errors,
    );
    errors
}

pub(super) fn queue(queue: &Queue) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("spec");
    if let Some(selector) = &queue.spec.namespace_selector {
        placement::selector(selector, &path.child("namespaceSelector"), &mut errors);
    }
    placement::quantities(&queue.spec.quota, &path.child("quota"), &mut errors);
    errors
}

pub(super) fn target(target: &Target) -> Errors {
    let mut errors = Errors::new();
    let path = Path::new("spec");
    if let Some(selector) = &target.spec.selector {
        placement::selector(selector, &path.child("selector"), &mut errors);
    }
    for (i, access) in target.spec.access.iter().enumerate() {
        let path = path.child("access").index(i).child("namespaceSelector");
        placement::selector(&access.namespace_selector, &path, &mut errors);
    }
    if let Some(amount) = target.spec.max_unavailable.as_ref().filter(|a| !a.is_valid()) {
        errors.invalid(
            &path.child("maxUnavailable"),
            amount,
            "must be a number from 0 or a percentage from \"0%\" to \"100%\"",
        );
    }
    for (i, window) in target.spec.maintenance_windows.iter().enumerate() {
        let path = path.child("maintenanceWindows").index(i);
        for (field, text) in [
            ("duration", Some(&window.duration)),
            ("cutoff", window.cutoff.as_ref()),
        ] {
            if let Some(Err(error)) = text.map(|t| duration::parse(t)) {
                errors.invalid(&path.child(field), text.map_or("", String::as_str), error);
            }
        }
    }
    errors
}
