//! What a schema can only say in CEL: `x-kubernetes-validations`, for a real Kubernetes, where `validate` runs only in our controllers.
//!
//! The same rules as `validate`, in the same words; a test holds the two together. What CEL cannot say at a bearable cost
//! (names over several lists, expressions, shells) is left to `validate`. Changes are compared on the whole spec: a rule on a
//! field is not asked when the field is added or removed.

use crate::{task::TaskPhase, validate::EDITABLE};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, ValidationRule,
};

const STEP_LISTS: [&str; 4] = ["preflight", "steps", "rollback", "finally"];
const PHASES: [TaskPhase; 10] = [
    TaskPhase::Bound,
    TaskPhase::Claimed,
    TaskPhase::Running,
    TaskPhase::Rebooting,
    TaskPhase::Succeeded,
    TaskPhase::Failed,
    TaskPhase::Cancelled,
    TaskPhase::Skipped,
    TaskPhase::Rejected,
    TaskPhase::Unknown,
];

/// Adds its rules to `schema`, which lies at `path` of a kind (`spec.steps[].env[]`), and to all below it.
pub(super) fn add(kind: &str, path: &str, schema: &mut JSONSchemaProps) {
    let rules = of(kind, path, schema);
    if !rules.is_empty() {
        schema.x_kubernetes_validations = Some(rules);
    }
    if kind == "Job" && is_list_of_names(path) {
        schema.x_kubernetes_list_type = Some("map".into());
        schema.x_kubernetes_list_map_keys = Some(vec!["name".into()]);
    }
    for (name, property) in schema.properties.iter_mut().flatten() {
        let dot = if path.is_empty() { "" } else { "." };
        add(kind, &format!("{path}{dot}{name}"), property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        add(kind, &format!("{path}[]"), items);
    }
}

fn is_list_of_names(path: &str) -> bool {
    path.strip_prefix("spec.")
        .is_some_and(|list| list == "params" || STEP_LISTS.contains(&list))
}

fn of(kind: &str, path: &str, schema: &JSONSchemaProps) -> Vec<ValidationRule> {
    let in_step = path
        .strip_prefix("spec.")
        .and_then(|rest| rest.split_once("[]"))
        .filter(|(list, _)| STEP_LISTS.contains(list))
        .map(|(_, rest)| rest.strip_prefix('.').unwrap_or(rest));
    match (kind, in_step.unwrap_or(path)) {
        ("Job", "") if in_step.is_some() => step(),
        ("Job", "spec") => job(schema),
        ("Job", "spec.cancel") => vec![required(
            "reason",
            r"self.reason.matches('\\S')",
            "say why the Job is cancelled",
        )],
        ("Job", "spec.params[]") => vec![
            forbidden(
                "valueFrom",
                "!(has(self.value) && has(self.valueFrom))",
                "not beside value; remove one of the two",
            ),
            required(
                "value",
                "has(self.value) || has(self.valueFrom)",
                "a parameter needs value or valueFrom",
            ),
        ],
        ("Job", "spec.tolerations[]") => toleration(),
        ("Job", "spec.failurePolicy.rules[]") => vec![rule(
            None,
            "FieldValueInvalid",
            &format!("has(self.onExitCodes) != ({})", some("self.onReasons")),
            "needs exactly one of onExitCodes and onReasons",
        )],
        ("Job", "env[]" | "spec.env[]") => vec![forbidden(
            "valueFrom",
            "!(has(self.value) && has(self.valueFrom))",
            "not beside value; remove one of the two",
        )],
        ("Job", "env[].valueFrom" | "spec.env[].valueFrom") => vec![exactly_one(&[
            "secretKeyRef",
            "configMapKeyRef",
            "fieldRef",
            "storeRef",
        ])],
        ("Job", "envFrom[]" | "spec.envFrom[]") => vec![exactly_one(&["secretRef", "configMapRef"])],
        ("Job", "mounts[]") => vec![exactly_one(&["secret", "configMap", "artifact", "storeRef"])],
        ("Task", "spec") => task(schema),
        ("Task", "status") => task_status(schema),
        _ => Vec::new(),
    }
}

fn job(spec: &JSONSchemaProps) -> Vec<ValidationRule> {
    let editable: Vec<&str> = EDITABLE.split(", ").collect();
    let message =
        format!("cannot be changed after creation; what can is {EDITABLE}. For anything else make a new Job");
    let mut rules: Vec<_> = names(spec)
        .filter(|name| !editable.contains(name))
        .map(|name| forbidden(name, &same(name), &message))
        .collect();
    let both = "!has(oldSelf.cancel) || !has(self.cancel)";
    rules.extend([
        forbidden(
            "cancel",
            "!has(oldSelf.cancel) || has(self.cancel)",
            "a cancel cannot be taken back; make a new Job",
        ),
        forbidden(
            "cancel.force",
            &format!(
                "{both} || !({}) || {}",
                set("oldSelf.cancel.force"),
                set("self.cancel.force")
            ),
            "cannot be taken back",
        ),
        forbidden(
            "cancel.reason",
            &format!("{both} || self.cancel.reason == oldSelf.cancel.reason"),
            "was given once and stays",
        ),
    ]);
    let choose = |field: &str| {
        format!(
            "beside {field} say whether to run on every node (PerNode) or a number of times on any of them (Indexed)"
        )
    };
    let named = some("self.nodeNames");
    let per_node = "has(self.completionMode) && self.completionMode == 'PerNode'";
    let selected = some("self.nodeSelector");
    let affinity = "has(self.affinity) && has(self.affinity.nodeAffinity)";
    let count = STEP_LISTS.map(|list| format!("(has(self.{list}) ? size(self.{list}) : 0)"));
    rules.extend([
        required(
            "completionMode",
            "has(self.completionMode) || !has(self.targetRef)",
            &choose("targetRef"),
        ),
        required(
            "completionMode",
            &format!("has(self.completionMode) || has(self.targetRef) || !({named})"),
            &choose("nodeNames"),
        ),
        required(
            "targetRef",
            &format!("!({per_node}) || has(self.targetRef) || {selected} || {affinity} || {named}"),
            "PerNode needs a choice of nodes: targetRef, nodeSelector, affinity or nodeNames; for every node write targetRef: {name: all}",
        ),
        forbidden(
            "completions",
            &format!("!({per_node}) || !has(self.completions)"),
            "PerNode runs once on every chosen node; remove it",
        ),
        forbidden(
            "priority",
            "!has(self.priority) || !has(self.priorityClassName) || self.priorityClassName == ''",
            "not beside priorityClassName; remove one of the two",
        ),
        required(
            "steps",
            &format!("{} || has(self.templateRef)", some("self.steps")),
            "a Job needs at least one step",
        ),
        invalid(
            "steps",
            &format!("{} <= 200", count.join(" + ")),
            "must have at most 200 items",
        ),
    ]);
    rules
}

fn step() -> Vec<ValidationRule> {
    let command = some("self.command");
    vec![
        required(
            "command",
            &format!(
                "{command} || has(self.script) || has(self.scriptFile) || has(self.image) || has(self.check) && !({})",
                some("self.args")
            ),
            "a step needs one of command, script and scriptFile (or check alone, as an assertion)",
        ),
        forbidden(
            "script",
            &format!("!has(self.script) || !({command})"),
            "not beside command; a step runs one thing",
        ),
        forbidden(
            "scriptFile",
            &format!("!has(self.scriptFile) || has(self.script) || !({command})"),
            "not beside command; a step runs one thing",
        ),
        forbidden(
            "scriptFile",
            &format!("!has(self.scriptFile) || !has(self.script) || {command}"),
            "not beside script; a step runs one thing",
        ),
        forbidden(
            "shell",
            "!has(self.shell) || has(self.script) || has(self.check) || has(self.scriptFile)",
            "a shell runs a script or a check, and this step has neither",
        ),
    ]
}

fn toleration() -> Vec<ValidationRule> {
    let exists = "has(self.operator) && self.operator == 'Exists'";
    let given = |field: &str| format!("has(self.{field}) && self.{field} != ''");
    vec![
        required(
            "key",
            &format!("{} || {exists}", given("key")),
            "only operator Exists may leave the key empty, and then means every taint",
        ),
        forbidden(
            "value",
            &format!("!({}) || !({exists})", given("value")),
            "operator Exists takes any value; remove it",
        ),
    ]
}

fn task(spec: &JSONSchemaProps) -> Vec<ValidationRule> {
    let mut rules: Vec<_> = names(spec)
        .filter(|name| !["stop", "drain", "rebootAllowed", "resolution"].contains(name))
        .map(|name| {
            forbidden(
                name,
                &same(name),
                "a Task's spec cannot be changed; change the Job",
            )
        })
        .collect();
    let message = "has(self.stop.message) == has(oldSelf.stop.message) && (!has(self.stop.message) || self.stop.message == oldSelf.stop.message)";
    let harder = format!(
        "self.stop.reason == oldSelf.stop.reason && {message} && self.stop.graceSeconds <= oldSelf.stop.graceSeconds && (!({}) || {})",
        set("oldSelf.stop.force"),
        set("self.stop.force")
    );
    rules.extend([
        forbidden(
            "stop",
            "!has(oldSelf.stop) || has(self.stop)",
            "a stop cannot be taken back",
        ),
        forbidden(
            "stop",
            &format!("!has(oldSelf.stop) || !has(self.stop) || {harder}"),
            "was set once; only graceSeconds may shrink and force turn true",
        ),
        forbidden(
            "drain",
            &format!(
                "{} || has(oldSelf.drain) && has(self.drain) && oldSelf.drain == 'Wanted' && self.drain == 'Done'",
                same("drain")
            ),
            "goes from Wanted to Done, once",
        ),
        forbidden(
            "rebootAllowed",
            &format!(
                "!({}) || {}",
                set("oldSelf.rebootAllowed"),
                set("self.rebootAllowed")
            ),
            "was set once and stays",
        ),
        forbidden(
            "resolution",
            "!has(oldSelf.resolution) || has(self.resolution) && self.resolution == oldSelf.resolution",
            "was set once and stays",
        ),
    ]);
    rules
}

fn task_status(status: &JSONSchemaProps) -> Vec<ValidationRule> {
    let list = |phases: &[TaskPhase]| {
        let quoted: Vec<_> = phases.iter().map(|p| format!("'{p:?}'")).collect();
        format!("[{}]", quoted.join(", "))
    };
    let phase = |of: &str| format!("(has({of}.phase) ? {of}.phase : 'Bound')");
    let (was, is) = (phase("oldSelf"), phase("self"));
    let moves: Vec<_> = PHASES
        .iter()
        .map(|from| {
            let to: Vec<_> = PHASES.into_iter().filter(|to| from.may_become(*to)).collect();
            format!("'{from:?}': {}", list(&to))
        })
        .collect();
    let ended: Vec<_> = PHASES.into_iter().filter(|p| p.is_terminal()).collect();
    let mut change = forbidden(
        "phase",
        &format!("{is} in {{{}}}[{was}]", moves.join(", ")),
        "a Task in this phase cannot become that",
    );
    change.message_expression = Some(format!("'a Task that is ' + {was} + ' cannot become ' + {is}"));
    let mut rules = vec![
        change,
        forbidden(
            "claim",
            "!has(oldSelf.claim) || has(self.claim) && self.claim == oldSelf.claim",
            "was set once and stays: a Task is claimed by one agent only",
        ),
    ];
    let stay = names(status).filter(|name| !["lateReport", "logsPending", "phase"].contains(name));
    rules.extend(stay.map(|name| {
        forbidden(
            name,
            &format!("!({was} in {}) || {}", list(&ended), same(name)),
            "the Task has ended; what comes later goes to lateReport",
        )
    }));
    rules
}

fn names(schema: &JSONSchemaProps) -> impl Iterator<Item = &str> {
    schema.properties.iter().flatten().map(|(name, _)| name.as_str())
}

/// The field is as it was, or absent as it was.
fn same(field: &str) -> String {
    format!(
        "has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
    )
}

/// A list or map that is there and not empty.
fn some(field: &str) -> String {
    format!("has({field}) && size({field}) > 0")
}

/// A flag that is there and true.
fn set(field: &str) -> String {
    format!("has({field}) && {field}")
}

fn exactly_one(fields: &[&str]) -> ValidationRule {
    let count: Vec<_> = fields
        .iter()
        .map(|f| format!("(has(self.{f}) ? 1 : 0)"))
        .collect();
    let (last, others) = fields.split_last().unwrap_or((&"", &[]));
    rule(
        None,
        "FieldValueInvalid",
        &format!("{} == 1", count.join(" + ")),
        &format!("needs exactly one of {} and {last}", others.join(", ")),
    )
}

fn forbidden(field: &str, text: &str, message: &str) -> ValidationRule {
    rule(Some(field), "FieldValueForbidden", text, message)
}

fn required(field: &str, text: &str, message: &str) -> ValidationRule {
    rule(Some(field), "FieldValueRequired", text, message)
}

fn invalid(field: &str, text: &str, message: &str) -> ValidationRule {
    rule(Some(field), "FieldValueInvalid", text, message)
}

fn rule(field: Option<&str>, reason: &str, text: &str, message: &str) -> ValidationRule {
    ValidationRule {
        field_path: field.map(|f| format!(".{f}")),
        message: Some(message.to_owned()),
        reason: Some(reason.to_owned()),
        rule: text.to_owned(),
        ..Default::default()
    }
}
