//! Trying again: limits, backoff, and what to do about which failure.

use crate::exit_code::CodePattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When and how often to try again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryStrategy {
    /// How many times to try again after a failure: per index on a Job, per attempt of the Task on a step.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    #[schemars(range(min = 0, max = 1000))]
    pub limit: i32,
    /// How long to wait before each.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub backoff: Backoff,
    /// Which failures are tried again.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub retry_on: RetryOn,
}

/// Waits that grow: `duration * factor^n`, at most `cap`, give or take `jitter`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backoff {
    /// The first wait, such as `10s`.
    #[serde(default = "ten_seconds", skip_serializing_if = "is_ten_seconds")]
    #[schemars(length(min = 1, max = 16))]
    pub duration: String,
    /// What each further wait is multiplied by.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    #[schemars(range(min = 1, max = 100))]
    pub factor: f64,
    /// The longest wait, such as `5m`.
    #[serde(default = "five_minutes", skip_serializing_if = "is_five_minutes")]
    #[schemars(length(min = 1, max = 16))]
    pub cap: String,
    /// Share of the wait that is random, 0 to 1.
    #[serde(default = "a_fifth", skip_serializing_if = "is_a_fifth")]
    #[schemars(range(min = 0, max = 1))]
    pub jitter: f64,
}

fn ten_seconds() -> String {
    "10s".into()
}
fn two() -> f64 {
    2.0
}
fn five_minutes() -> String {
    "5m".into()
}
fn a_fifth() -> f64 {
    0.2
}

fn is_ten_seconds(text: &str) -> bool {
    text == ten_seconds()
}
fn is_two(n: &f64) -> bool {
    *n == two()
}
fn is_five_minutes(text: &str) -> bool {
    text == five_minutes()
}
fn is_a_fifth(n: &f64) -> bool {
    *n == a_fifth()
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            duration: ten_seconds(),
            factor: two(),
            cap: five_minutes(),
            jitter: a_fifth(),
        }
    }
}

/// Which failures are tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum RetryOn {
    /// Every failure but a fatal exit code.
    #[default]
    AnyFailure,
    /// Only exit codes in `exitCodes.retry`.
    RetryCodes,
}

/// What to do about which failure of an attempt; the first rule that matches wins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailurePolicy {
    /// The rules, in order.
    #[schemars(length(max = 20))]
    pub rules: Vec<FailureRule>,
}

/// A rule: what happened, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureRule {
    /// What to do.
    pub action: FailureAction,
    /// Matches by exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exit_codes: Option<OnExitCodes>,
    /// Matches by reason: `Timeout`, `RunnerLost`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(max = 63)))]
    pub on_reasons: Vec<String>,
}

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum FailureAction {
    /// The Job fails; nothing more starts.
    FailJob,
    /// The index fails; no further attempt.
    FailIndex,
    /// Counts towards the limit, as without a rule.
    Count,
    /// Tried again at no cost.
    Ignore,
    /// Passes with a warning.
    Accept,
}

/// Exit codes of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OnExitCodes {
    /// Name of the step; absent means any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub step: Option<String>,
    /// Whether the code must be one of `values` or none of them.
    pub operator: CodeOperator,
    /// The codes.
    #[schemars(length(min = 1, max = 255))]
    pub values: Vec<CodePattern>,
}

/// How a code is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum CodeOperator {
    /// One of the values.
    In,
    /// None of the values.
    NotIn,
}
