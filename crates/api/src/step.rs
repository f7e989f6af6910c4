//! A step: one program, script or container, with its check, limits, codes and retries.

use crate::{
    data::{Artifact, EnvFrom, EnvVar, LocalRef, Mount, SecurityContext},
    exit_code::CodePattern,
    placement::ResourceList,
    retry::RetryStrategy,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One step of a Job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// A DNS label, unique over preflight, steps, rollback and finally.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The program, then its first arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(max = 32768)))]
    pub command: Vec<String>,
    /// Further arguments; `${{ … }}` is evaluated on the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(max = 32768)))]
    pub args: Vec<String>,
    /// Text run by `shell` instead of a command; never a template, values reach it through variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub script: Option<String>,
    /// A script file run as it is, signature intact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script_file: Option<ScriptFile>,
    /// powershell (default on Windows), pwsh, cmd, bash, sh (default elsewhere), python, or a command with `{0}` for the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub shell: Option<String>,
    /// PowerShell's execution policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_policy: Option<ExecutionPolicy>,
    /// What a native program's exit code means in a PowerShell script. Default: Stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_errors: Option<NativeErrors>,
    /// Image of a container to run the step in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// When the image is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets for the registry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub image_pull_secrets: Vec<LocalRef>,
    /// How the container is kept apart from the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Current folder; relative ones lie under the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub working_dir: Option<String>,
    /// Variables; they win over the Job's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub env: Vec<EnvVar>,
    /// All keys of Secrets and ConfigMaps as variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub env_from: Vec<EnvFrom>,
    /// Files put into the workspace before the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub mounts: Vec<Mount>,
    /// The account this step runs as; default: the Job's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// A CEL condition; false skips the step, an error fails it (WhenError).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub when: Option<String>,
    /// A script that tells whether the host is already as desired: exit 0 yes (the step is skipped as Compliant), 1 no, anything else
    /// CheckFailed. Runs again after the step: still no is NotConverged. Alone it is an assertion.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub check: Option<String>,
    /// How long one attempt of the step may take; absent means what is left of the task's time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 31536000))]
    pub timeout_seconds: Option<i64>,
    /// Trying the step again within the same attempt of the Task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_strategy: Option<RetryStrategy>,
    /// What exit codes mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_codes: Option<ExitCodes>,
    /// Whether and how the step may restart the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot: Option<Reboot>,
    /// What a failure of this step does.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub on_error: OnError,
    /// Encoding of the step's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_encoding: Option<OutputEncoding>,
    /// What is sent first when the step is stopped; the default depends on the shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_signal: Option<StopSignal>,
    /// A script run before the stop signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_stop: Option<PreStop>,
    /// What this step may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<StepResources>,
    /// Files the step leaves for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub artifacts: Vec<Artifact>,
    /// Whether processes may outlive the step; they end with the Task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_detached: bool,
}

/// Where a script file comes from; exactly one source must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScriptFile {
    /// An artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<crate::data::ArtifactRef>,
    /// Name of a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub config_map: Option<String>,
    /// A file on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub host_path: Option<String>,
    /// File within the artifact, or key of the ConfigMap.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 260))]
    pub path: String,
}

/// PowerShell's execution policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum ExecutionPolicy {
    /// Local scripts run, remote ones must be signed.
    #[default]
    RemoteSigned,
    /// Every script must be signed.
    AllSigned,
    /// Nothing is checked.
    Bypass,
}

/// What a native program's exit code means in a PowerShell script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum NativeErrors {
    /// A code outside success and warning stops the script.
    #[default]
    Stop,
    /// The last program's code decides.
    Last,
    /// Codes of native programs are ignored.
    Ignore,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum PullPolicy {
    /// Before each run.
    Always,
    /// When it is not on the node.
    IfNotPresent,
    /// Never.
    Never,
}

/// How a container is kept apart from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Isolation {
    /// Shares the host's kernel.
    Process,
    /// Has a virtual machine of its own.
    HyperV,
}

/// What exit codes mean. Each class has its own default; writing one leaves the others. A code in two classes is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExitCodes {
    /// The step succeeded. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub success: Option<Vec<CodePattern>>,
    /// The step succeeded with a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub warning: Option<Vec<CodePattern>>,
    /// The Task does not apply here and ends Skipped: no later step, no rollback, finally runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub skip: Option<Vec<CodePattern>>,
    /// Failed, but worth trying again. Default: 1618 (another installation is running).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub retry: Option<Vec<CodePattern>>,
    /// Succeeded and wants a restart of the host. Default: 3010 and 1641.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub reboot: Option<Vec<CodePattern>>,
    /// Failed for good: no retry at either level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub fatal: Option<Vec<CodePattern>>,
}

/// What an exit code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitClass {
    /// Succeeded.
    Success,
    /// Succeeded with a warning.
    Warning,
    /// Does not apply here.
    Skip,
    /// Failed, worth another try.
    Retry,
    /// Succeeded and wants a restart.
    Reboot,
    /// Failed for good.
    Fatal,
    /// Failed: any code in no class.
    Failure,
}

impl ExitCodes {
    /// The classes with their names and codes, defaults filled in.
    pub fn classes(&self) -> [(&'static str, ExitClass, Vec<CodePattern>); 6] {
        let or = |written: &Option<Vec<CodePattern>>, default: &[i64]| {
            written
                .clone()
                .unwrap_or_else(|| default.iter().copied().map(CodePattern::Number).collect())
        };
        [
            ("success", ExitClass::Success, or(&self.success, &[0])),
            ("warning", ExitClass::Warning, or(&self.warning, &[])),
            ("skip", ExitClass::Skip, or(&self.skip, &[])),
            ("retry", ExitClass::Retry, or(&self.retry, &[1618])),
            ("reboot", ExitClass::Reboot, or(&self.reboot, &[3010, 1641])),
            ("fatal", ExitClass::Fatal, or(&self.fatal, &[])),
        ]
    }

    /// What `code` means. Classes the user wrote come before defaults, so `fatal: [1618]` wins over the default of retry.
    pub fn classify(&self, code: u32) -> ExitClass {
        let written = [
            self.success.is_some(),
            self.warning.is_some(),
            self.skip.is_some(),
            self.retry.is_some(),
            self.reboot.is_some(),
            self.fatal.is_some(),
        ];
        let classes = self.classes();
        let find = |explicit: bool| {
            classes
                .iter()
                .zip(written)
                .filter(|(_, w)| *w == explicit)
                .map(|(c, _)| c)
                .find_map(|(_, class, codes)| codes.iter().any(|p| p.matches(code)).then_some(*class))
        };
        find(true).or_else(|| find(false)).unwrap_or(ExitClass::Failure)
    }
}

/// Whether and how a step may restart the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reboot {
    /// When the host is restarted.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub policy: RebootPolicy,
    /// Which step runs after the restart.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub resume: Resume,
    /// How many restarts one attempt may take; beyond that: Failed/RebootLoop.
    #[serde(default = "three", skip_serializing_if = "is_three")]
    #[schemars(range(min = 0, max = 100))]
    pub max_resumes: i32,
    /// How long a restart may take.
    #[serde(default = "hour", skip_serializing_if = "is_hour")]
    #[schemars(range(min = 1, max = 2147483647))]
    pub timeout_seconds: i64,
    /// How long to wait before the restart.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    #[schemars(range(min = 0, max = 2147483647))]
    pub delay_seconds: i64,
    /// A script that tells whether the host is ready to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub ready_check: Option<String>,
}

fn three() -> i32 {
    3
}
fn is_three(n: &i32) -> bool {
    *n == three()
}
fn hour() -> i64 {
    3600
}
fn is_hour(n: &i64) -> bool {
    *n == hour()
}

/// When the host is restarted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum RebootPolicy {
    /// Never: a reboot code is success with a warning, and the node gets the condition PendingReboot.
    #[default]
    Never,
    /// When the step ends with a code of class reboot.
    IfRequested,
    /// After the step's success.
    Always,
    /// The step restarts the host by itself.
    SelfInitiated,
}

/// Which step runs after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum Resume {
    /// The next one.
    #[default]
    Next,
    /// The same one again.
    Same,
}

/// What a failure of a step does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum OnError {
    /// The Task fails.
    #[default]
    Fail,
    /// Counted as a warning; the next step runs, no rollback.
    Continue,
}

/// Encoding of a step's output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum OutputEncoding {
    /// Told from the first bytes: a mark, zero bytes, UTF-8, else the console's code page.
    #[default]
    Auto,
    /// UTF-8.
    Utf8,
    /// The console's code page.
    Oem,
    /// UTF-16, little endian.
    Utf16,
}

/// What is sent first when a step is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum StopSignal {
    /// Ctrl-Break; elsewhere SIGTERM.
    CtrlBreak,
    /// Ctrl-C; elsewhere SIGINT.
    CtrlC,
    /// WM_CLOSE to its windows; elsewhere SIGHUP.
    Close,
    /// Nothing: ended at once.
    Kill,
}

/// A script run before the stop signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreStop {
    /// The script, run by the step's shell.
    #[schemars(length(min = 1, max = 65536))]
    pub script: String,
    /// How long it may take.
    #[serde(default = "ten", skip_serializing_if = "is_ten")]
    #[schemars(range(min = 1, max = 3600))]
    pub timeout_seconds: i64,
}

fn ten() -> i64 {
    10
}
fn is_ten(n: &i64) -> bool {
    *n == ten()
}

/// What a step may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepResources {
    /// Limits: `cpu`, `memory`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub limits: ResourceList,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_own_default() {
        let codes = ExitCodes {
            warning: Some(vec![CodePattern::Text("1-7".into())]),
            ..Default::default()
        };
        for (code, class) in [
            (0, ExitClass::Success),
            (3, ExitClass::Warning),
            (8, ExitClass::Failure),
            (1618, ExitClass::Retry),
            (3010, ExitClass::Reboot),
            (1641, ExitClass::Reboot),
        ] {
            assert_eq!(codes.classify(code), class, "{code}");
        }
    }

    #[test]
    fn a_written_class_wins_over_anothers_default() {
        let codes = ExitCodes {
            fatal: Some(vec![CodePattern::Number(1618)]),
            ..Default::default()
        };
        assert_eq!(codes.classify(1618), ExitClass::Fatal);
        let codes = ExitCodes {
            success: Some(vec![CodePattern::Number(3010)]),
            ..Default::default()
        };
        assert_eq!(codes.classify(3010), ExitClass::Success);
        assert_eq!(codes.classify(0), ExitClass::Failure);
    }
}
