//! The part of a Job's spec that judges attempts; immutable, so it is read once.

use crate::{
    Task,
    job::{JobSpec, OnUnknown},
    retry::{Backoff, CodeOperator, FailureAction, FailureRule, OnExitCodes, RetryOn},
    step::Step,
    task::StepPhase,
};

/// How attempts of one Job are judged.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub limit: u32,
    pub backoff: Backoff,
    pub retry_on: RetryOn,
    /// Whether work whose outcome is not known may be repeated.
    pub rerun: bool,
    pub failure: Vec<FailureRule>,
    /// Names of steps with a check: what they do when they run is a change.
    pub checked: Vec<String>,
}

impl Rules {
    pub fn of(spec: &JobSpec) -> Self {
        let retry = spec.retry_strategy.clone().unwrap_or_default();
        let checked = |s: &&Step| s.check.is_some();
        Self {
            limit: u32::try_from(retry.limit).unwrap_or(0),
            backoff: retry.backoff,
            retry_on: retry.retry_on,
            rerun: spec.on_unknown == OnUnknown::Rerun,
            failure: spec
                .failure_policy
                .as_ref()
                .map(|p| p.rules.clone())
                .unwrap_or_default(),
            checked: spec
                .steps
                .iter()
                .filter(checked)
                .map(|s| s.name.clone())
                .collect(),
        }
    }

    /// The action of the first rule that matches a failed attempt. A rule may match by reason or by exit code; an end that is not
    /// the step's doing is matched only by a rule that names its reason.
    pub fn action(&self, task: &Task, by_reason_only: bool) -> Option<FailureAction> {
        let status = task.status.as_ref()?;
        self.failure
            .iter()
            .find(|rule| {
                rule.on_reasons.contains(&status.reason)
                    || !by_reason_only && rule.on_exit_codes.as_ref().is_some_and(|c| codes_match(c, task))
            })
            .map(|rule| rule.action)
    }
}

fn codes_match(wanted: &OnExitCodes, task: &Task) -> bool {
    let steps = task
        .status
        .as_ref()
        .map(|s| s.steps.as_slice())
        .unwrap_or_default();
    steps
        .iter()
        .filter(|s| s.phase == StepPhase::Failed)
        .filter(|s| wanted.step.as_ref().is_none_or(|name| *name == s.name))
        .filter_map(|s| s.exit_code.and_then(|c| u32::try_from(c).ok()))
        .any(|code| {
            let listed = wanted.values.iter().any(|v| v.matches(code));
            listed == (wanted.operator == CodeOperator::In)
        })
}
