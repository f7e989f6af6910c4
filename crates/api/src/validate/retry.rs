//! Retries and failure policies.

use super::step;
use crate::{
    JobSpec, duration,
    field::{Errors, Path},
    retry::RetryStrategy,
};

pub(super) fn strategy(strategy: Option<&RetryStrategy>, path: &Path, errors: &mut Errors) {
    let Some(strategy) = strategy else { return };
    let path = path.child("backoff");
    for (field, text) in [
        ("duration", &strategy.backoff.duration),
        ("cap", &strategy.backoff.cap),
    ] {
        if let Err(error) = duration::parse(text) {
            errors.invalid(&path.child(field), text, error);
        }
    }
}

pub(super) fn policy(spec: &JobSpec, path: &Path, errors: &mut Errors) {
    let Some(policy) = &spec.failure_policy else {
        return;
    };
    for (i, rule) in policy.rules.iter().enumerate() {
        let path = path.child("rules").index(i);
        if rule.on_exit_codes.is_some() != rule.on_reasons.is_empty() {
            errors.invalid(&path, "", "needs exactly one of onExitCodes and onReasons");
        }
        let Some(codes) = &rule.on_exit_codes else {
            continue;
        };
        let path = path.child("onExitCodes");
        if let Some(name) = &codes.step
            && !spec.all_steps().any(|(_, _, s)| s.name == *name)
        {
            errors.invalid(&path.child("step"), name, "there is no step of this name");
        }
        for (i, pattern) in codes.values.iter().enumerate() {
            step::code(pattern, &path.child("values").index(i), errors);
        }
    }
}
