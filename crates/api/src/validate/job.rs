//! A Job as a whole: how many and where, its parameters and steps.

use super::{env, placement, reboot, retry, step, text};
use crate::{
    Job, JobSpec,
    amount::Amount,
    data::{Output, Param},
    field::{Errors, Path},
    names,
};
use std::collections::{BTreeMap, BTreeSet};

/// Steps of all four lists together.
const MAX_STEPS: usize = 200;

pub(super) fn validate(job: &Job, errors: &mut Errors) {
    let path = Path::new("spec");
    how_many(&job.spec, &path, errors);
    placement::validate(&job.spec, &path, errors);
    when(&job.spec, &path, errors);
    retry::strategy(
        job.spec.retry_strategy.as_ref(),
        &path.child("retryStrategy"),
        errors,
    );
    retry::policy(&job.spec, &path.child("failurePolicy"), errors);
    params(&job.spec.params, &path.child("params"), errors);
    let steps = text::Steps::of(&job.spec);
    let scope = env::Scope::job(&job.spec);
    env::variables(&job.spec.env, &path.child("env"), &steps, errors);
    env::from(&job.spec.env_from, &path.child("envFrom"), errors);
    all_steps(&job.spec, &path, &steps, &scope, errors);
    reboot::job(&job.spec, &path, errors);
    outputs(&job.spec.outputs, &path.child("outputs"), &steps, errors);
}

fn how_many(spec: &JobSpec, path: &Path, errors: &mut Errors) {
    let mode = path.child("completionMode");
    let named = [
        (spec.target_ref.is_some(), "targetRef"),
        (!spec.node_names.is_empty(), "nodeNames"),
    ];
    if spec.completion_mode.is_none()
        && let Some((_, field)) = named.iter().find(|(set, _)| *set)
    {
        errors.required(
            &mode,
            format_args!(
                "beside {field} say whether to run on every node (PerNode) or a number of times on any of them (Indexed)"
            ),
        );
    }
    if spec.is_per_node() {
        let chosen = spec.target_ref.is_some()
            || !spec.node_selector.is_empty()
            || spec.affinity.as_ref().is_some_and(|a| a.node_affinity.is_some())
            || !spec.node_names.is_empty();
        if !chosen {
            errors.required(
                &path.child("targetRef"),
                "PerNode needs a choice of nodes: targetRef, nodeSelector, affinity or nodeNames; for every node write targetRef: {name: all}",
            );
        }
        if spec.completions.is_some() {
            errors.forbidden(
                &path.child("completions"),
                "PerNode runs once on every chosen node; remove it",
            );
        }
    }
    amount(spec.parallelism.as_ref(), &path.child("parallelism"), errors);
    amount(spec.max_failures.as_ref(), &path.child("maxFailures"), errors);
}

fn amount(amount: Option<&Amount>, path: &Path, errors: &mut Errors) {
    if let Some(a) = amount.filter(|a| !a.is_valid()) {
        errors.invalid(
            path,
            a,
            "must be a number from 0 or a percentage from \"0%\" to \"100%\"",
        );
    }
}

fn when(spec: &JobSpec, path: &Path, errors: &mut Errors) {
    if !names::is_dns_label(&spec.queue_name) {
        errors.invalid(
            &path.child("queueName"),
            &spec.queue_name,
            "must be the name of a Queue, a DNS label",
        );
    }
    if spec.priority.is_some() && !spec.priority_class_name.is_empty() {
        errors.forbidden(
            &path.child("priority"),
            "not beside priorityClassName; remove one of the two",
        );
    }
    if let Some(cancel) = &spec.cancel
        && cancel.reason.trim().is_empty()
    {
        errors.required(
            &path.child("cancel").child("reason"),
            "say why the Job is cancelled",
        );
    }
}

fn params(params: &[Param], path: &Path, errors: &mut Errors) {
    let mut variables = BTreeMap::new();
    for (i, param) in params.iter().enumerate() {
        let path = path.index(i);
        let word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !param.name.starts_with(|c: char| c.is_ascii_alphabetic()) || !param.name.chars().all(word) {
            errors.invalid(
                &path.child("name"),
                &param.name,
                "must be letters, digits, \"-\" and \"_\", beginning with a letter",
            );
        }
        let variable = names::param_env(&param.name);
        match variables.insert(variable.clone(), &param.name) {
            Some(other) if other == &param.name => errors.duplicate(&path.child("name"), &param.name),
            Some(other) => errors.invalid(
                &path.child("name"),
                &param.name,
                format_args!("steps see it as {variable}, and so they do \"{other}\"; rename one"),
            ),
            None => {}
        }
        match (&param.value, &param.value_from) {
            (Some(_), Some(_)) => {
                errors.forbidden(
                    &path.child("valueFrom"),
                    "not beside value; remove one of the two",
                );
            }
            (None, None) => errors.required(&path.child("value"), "a parameter needs value or valueFrom"),
            _ => {}
        }
    }
}

fn all_steps(spec: &JobSpec, path: &Path, steps: &text::Steps, scope: &env::Scope, errors: &mut Errors) {
    if spec.steps.is_empty() && spec.template_ref.is_none() {
        errors.required(&path.child("steps"), "a Job needs at least one step");
    }
    let count = spec.all_steps().count();
    if count > MAX_STEPS {
        errors.too_many(&path.child("steps"), count, MAX_STEPS);
    }
    let mut seen = BTreeSet::new();
    for (list, i, one) in spec.all_steps() {
        let path = path.child(list).index(i);
        if !names::is_dns_label(&one.name) {
            errors.invalid(
                &path.child("name"),
                &one.name,
                "must be a DNS label: at most 63 of a-z, 0-9 and \"-\", with a letter or digit at both ends",
            );
        } else if !seen.insert(&one.name) {
            errors.duplicate(&path.child("name"), &one.name);
        }
        step::validate(one, spec, &path, steps, scope, errors);
        reboot::step(one, list, &path, errors);
    }
}

fn outputs(outputs: &[Output], path: &Path, steps: &text::Steps, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, output) in outputs.iter().enumerate() {
        let path = path.index(i);
        if !seen.insert(&output.name) {
            errors.duplicate(&path.child("name"), &output.name);
        }
        text::template(&output.value, &path.child("value"), steps, errors);
    }
}

pub(super) fn warnings(spec: &JobSpec) -> Vec<String> {
    let mut warnings = Vec::new();
    for (list, i, step) in spec.all_steps() {
        if step
            .timeout_seconds
            .is_some_and(|t| t > spec.task_timeout_seconds)
        {
            warnings.push(format!(
                "spec.{list}[{i}].timeoutSeconds: longer than spec.taskTimeoutSeconds ({}), which ends the step first",
                spec.task_timeout_seconds
            ));
        }
    }
    warnings
}
