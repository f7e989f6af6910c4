//! What exists in the API but not yet in this version: refused, so that nothing is ever silently ignored.

use crate::{
    JobSpec, QueueSpec, TargetSpec,
    data::{EnvVar, Mount},
    field::{Errors, Path},
    job::{Impact, NodeSet},
    step::Step,
};

pub(super) fn job(spec: &JobSpec, path: &Path, errors: &mut Errors) {
    let limits = spec.resources.as_ref().is_some_and(|r| !r.limits.is_empty());
    for (set, field) in [
        (limits, "resources.limits"),
        (spec.impact == Impact::WindowOnly, "impact"),
        (spec.on_window_end.is_some(), "onWindowEnd"),
        (spec.node_set == NodeSet::Live, "nodeSet"),
        (spec.matrix.is_some(), "matrix"),
        (spec.strategy.is_some(), "strategy"),
        (
            !spec.priority_class_name.is_empty() && !spec.is_emergency(),
            "priorityClassName",
        ),
        (spec.synchronization.is_some(), "synchronization"),
        (spec.template_ref.is_some(), "templateRef"),
        (spec.security_context.is_some(), "securityContext"),
        (!spec.sources.is_empty(), "sources"),
        (!spec.caches.is_empty(), "caches"),
        (!spec.notify.is_empty(), "notify"),
        (spec.override_.is_some(), "override"),
        (spec.retry_of.is_some(), "retryOf"),
    ] {
        if set {
            errors.not_supported_yet(&path.child(field));
        }
    }
    for (i, param) in spec.params.iter().enumerate() {
        if param.value_from.is_some() {
            errors.not_supported_yet(&path.child("params").index(i).child("valueFrom"));
        }
    }
    env(&spec.env, &path.child("env"), errors);
    for (list, i, one) in spec.all_steps() {
        step(one, &path.child(list).index(i), errors);
    }
}

fn step(step: &Step, path: &Path, errors: &mut Errors) {
    for (set, field) in [
        (
            step.script_file.as_ref().is_some_and(|f| f.artifact.is_some()),
            "scriptFile.artifact",
        ),
        (step.image.is_some(), "image"),
        (step.image_pull_policy.is_some(), "imagePullPolicy"),
        (!step.image_pull_secrets.is_empty(), "imagePullSecrets"),
        (step.isolation.is_some(), "isolation"),
        (step.security_context.is_some(), "securityContext"),
        (step.resources.is_some(), "resources"),
        (!step.artifacts.is_empty(), "artifacts"),
    ] {
        if set {
            errors.not_supported_yet(&path.child(field));
        }
    }
    env(&step.env, &path.child("env"), errors);
    mounts(&step.mounts, &path.child("mounts"), errors);
}

fn env(env: &[EnvVar], path: &Path, errors: &mut Errors) {
    for (i, variable) in env.iter().enumerate() {
        if variable
            .value_from
            .as_ref()
            .is_some_and(|f| f.store_ref.is_some())
        {
            errors.not_supported_yet(&path.index(i).child("valueFrom").child("storeRef"));
        }
    }
}

fn mounts(mounts: &[Mount], path: &Path, errors: &mut Errors) {
    for (i, mount) in mounts.iter().enumerate() {
        for (set, field) in [
            (mount.artifact.is_some(), "artifact"),
            (mount.store_ref.is_some(), "storeRef"),
        ] {
            if set {
                errors.not_supported_yet(&path.index(i).child(field));
            }
        }
    }
}

pub(super) fn queue(spec: &QueueSpec, path: &Path, errors: &mut Errors) {
    if spec.max_pending.is_some() {
        errors.not_supported_yet(&path.child("maxPending"));
    }
}

pub(super) fn target(spec: &TargetSpec, path: &Path, errors: &mut Errors) {
    for (set, field) in [
        (spec.agent_version.is_some(), "agentVersion"),
        (spec.max_unavailable.is_some(), "maxUnavailable"),
        (!spec.calendars.is_empty(), "calendars"),
        (!spec.maintenance_windows.is_empty(), "maintenanceWindows"),
    ] {
        if set {
            errors.not_supported_yet(&path.child(field));
        }
    }
    for (i, access) in spec.access.iter().enumerate() {
        let path = path.child("access").index(i);
        for (set, field) in [
            (!access.run_as.is_empty(), "runAs"),
            (access.default_run_as.is_some(), "defaultRunAs"),
        ] {
            if set {
                errors.not_supported_yet(&path.child(field));
            }
        }
    }
}
