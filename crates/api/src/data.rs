//! What flows into and out of steps: parameters, environment, mounts, artifacts, sources, caches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A name of something in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// A key of a Secret or ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeyRef {
    /// Name of the Secret or ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in its data.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// Whether it may be missing; then the variable is not set.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// A parameter's value, by itself or by reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Param {
    /// Its name; steps see it as `PROW_PARAM_<NAME>`, dashes as underscores, upper case.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub value: Option<String>,
    /// Where its value comes from; the only way for secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<ParamSource>,
}

/// Where a parameter's value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParamSource {
    /// A key of a Secret.
    pub secret_key_ref: KeyRef,
}

/// An environment variable of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Its name.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Its value; `${{ … }}` is evaluated on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32768))]
    pub value: Option<String>,
    /// Where its value comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_from: Option<EnvSource>,
}

/// Where a variable's value comes from; exactly one must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvSource {
    /// A key of a Secret; fetched when the step is about to run, masked in its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// A key of a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// A field of the Task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<FieldRef>,
    /// A value of an external secret store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_ref: Option<StoreRef>,
}

/// A field of the Task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FieldRef {
    /// `metadata.name`, `metadata.namespace`, `metadata.uid` or `spec.nodeName`.
    #[schemars(length(min = 1, max = 253))]
    pub field_path: String,
}

/// A value of an external secret store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreRef {
    /// Name of the SecretStore.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// What to ask it for.
    #[schemars(length(min = 1, max = 1024))]
    pub key: String,
    /// Parameters of the request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub params: BTreeMap<String, String>,
}

/// All keys of a Secret or ConfigMap as variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvFrom {
    /// Put before each key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 128))]
    pub prefix: String,
    /// A Secret of the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<OptionalRef>,
    /// A ConfigMap of the same namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<OptionalRef>,
}

/// A Secret or ConfigMap that may be missing if the user says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OptionalRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Whether it may be missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// Something put into the workspace before the step; exactly one source must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// Name of a Secret; each key becomes a file, removed after the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub secret: Option<String>,
    /// Name of a ConfigMap; each key becomes a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub config_map: Option<String>,
    /// An artifact of an earlier Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactRef>,
    /// A value of an external secret store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_ref: Option<StoreRef>,
    /// Folder under the workspace.
    #[schemars(length(min = 1, max = 260))]
    pub path: String,
}

/// An artifact by job and name, by name alone (the newest in the namespace), or by digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactRef {
    /// Name of the Job that made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub job: Option<String>,
    /// Its name; may be a pattern with `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub name: Option<String>,
    /// `sha256:` and 64 hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71))]
    pub digest: Option<String>,
}

/// Files a step leaves for others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Files under the workspace; may be a pattern.
    #[schemars(length(min = 1, max = 260))]
    pub path: String,
    /// After which ends it is kept.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub when: ArtifactWhen,
    /// What it is, if it is a test report: `junit` or `trx`.
    #[serde(rename = "type", default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 16))]
    pub type_: String,
    /// How long it is kept; absent means as long as the Task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2147483647))]
    pub retain_seconds: Option<i64>,
}

/// After which ends an artifact is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ArtifactWhen {
    /// When the step succeeded.
    #[default]
    OnSuccess,
    /// When the step failed.
    OnFailure,
    /// Always.
    Always,
}

/// Sources checked out before the first step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// A git repository.
    pub git: Git,
    /// Folder under the workspace.
    #[schemars(length(min = 1, max = 260))]
    pub path: String,
}

/// A git repository at a ref.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Git {
    /// Where it is.
    #[schemars(length(min = 1, max = 2048))]
    pub url: String,
    /// Branch, tag or commit.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub ref_: Option<String>,
    /// Secret with the credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalRef>,
}

/// A folder kept on the node between runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// Name of the cache in this namespace on this node.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// Folder under the workspace.
    #[schemars(length(min = 1, max = 260))]
    pub path: String,
}

/// A value a Job gives to whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Its value, usually `${{ steps.x.outputs.y }}`.
    #[schemars(length(max = 32768))]
    pub value: String,
}

/// The account steps run as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityContext {
    /// The account on Windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_options: Option<WindowsOptions>,
}

/// The account on Windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowsOptions {
    /// `CORP\user`, a gMSA `CORP\name$`, or a well-known service account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub run_as_user_name: Option<String>,
    /// Secret with the keys `username` and `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_secret_ref: Option<LocalRef>,
}
