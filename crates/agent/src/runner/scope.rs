//! What expressions of a task see.

use super::run::Run;
use api::expr::Scope;
use serde_json::{Map, Value, json};

/// Annotation of a Task with the time its schedule meant.
pub(super) const SCHEDULED_TIME: &str = "prow.windows/scheduled-time";

/// Annotation of a Task with the trace it belongs to (W3C Trace Context).
pub(super) const TRACE: &str = "prow.windows/traceparent";

/// The values as they are now.
pub(super) fn of(run: &Run) -> Scope {
    let (task, spec) = (&run.task, &run.spec);
    let mut scope = Scope::new();
    let params = spec
        .params
        .iter()
        .filter_map(|p| Some((p.name.clone(), json!(p.value.as_ref()?))));
    scope.set("params", Value::Object(params.collect()));
    scope.set("steps", Value::Object(steps(run)));
    scope.set(
        "node",
        json!({
            "name": task.spec.node_name,
            "fqdn": run.fqdn,
            "os": std::env::consts::OS,
            "arch": arch(),
            "labels": run.options.node_labels,
        }),
    );
    scope.set(
        "job",
        json!({
            "name": task.spec.job_ref.name,
            "namespace": task.namespace(),
            "uid": task.spec.job_ref.uid,
            "scheduledTime": annotation(run, SCHEDULED_TIME),
        }),
    );
    scope.set(
        "task",
        json!({"index": task.spec.index, "count": task.spec.count, "attempt": task.spec.attempt}),
    );
    scope
}

/// Every step is there, also one not reached yet, so that `steps.x.phase` can always be asked.
fn steps(run: &Run) -> Map<String, Value> {
    let known = |name: &str| {
        run.step(name).map_or_else(
            || json!({"phase": "Pending", "exitCode": null, "outputs": {}}),
            |s| json!({"phase": s.phase, "exitCode": s.exit_code, "outputs": s.outputs}),
        )
    };
    run.spec
        .all_steps()
        .map(|(_, _, step)| (step.name.clone(), known(&step.name)))
        .collect()
}

/// The architecture in Go's words, which Kubernetes uses.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

pub(super) fn annotation<'a>(run: &'a Run, name: &str) -> &'a str {
    let annotations = run.task.metadata.annotations.as_ref();
    annotations.and_then(|a| a.get(name)).map_or("", String::as_str)
}
