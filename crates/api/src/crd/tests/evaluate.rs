//! The rules say what `validate` says: each is broken by some object here, and both then report the same field in the same words.

use super::super::all;
use crate::{Job, Resource, Task, field::Errors};
use cel::{Context, Program};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
};

thread_local! {
    /// Parsing takes longer than evaluating, and the same rules are asked hundreds of times.
    static PARSED: RefCell<HashMap<String, Program>> = RefCell::default();
}

/// What a broken rule says.
#[derive(Debug, PartialEq)]
struct Finding {
    path: String,
    reason: String,
    message: String,
}

struct Rules {
    schema: Value,
    /// Every rule that has been broken, by schema path and text.
    broken: BTreeSet<(String, String)>,
}

impl Rules {
    fn of(kind: &str) -> Self {
        let crd = all().into_iter().find(|c| c.spec.names.kind == kind).unwrap();
        let crd = serde_json::to_value(crd).unwrap();
        Self {
            schema: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone(),
            broken: BTreeSet::new(),
        }
    }

    /// What a Kubernetes API server would report.
    fn findings(&mut self, new: &Value, old: Option<&Value>) -> Vec<Finding> {
        let mut found = Vec::new();
        walk(&self.schema, ("", ""), new, old, &mut |schema, path, rule| {
            self.broken
                .insert((schema.to_owned(), rule["rule"].as_str().unwrap().to_owned()));
            let field = rule["fieldPath"].as_str().unwrap_or_default();
            found.push(Finding {
                path: format!("{path}{field}").trim_start_matches('.').to_owned(),
                reason: rule["reason"].as_str().unwrap().to_owned(),
                message: rule["message"].as_str().unwrap().to_owned(),
            });
        });
        found
    }

    /// Checks that a change (or a new object) breaks rules and that our own server says so of the same fields.
    #[track_caller]
    fn refused<T: Resource + Serialize + DeserializeOwned>(
        &mut self,
        new: &Value,
        old: Option<&Value>,
        judge: impl Fn(&T, Option<&T>) -> Errors,
    ) -> Vec<Finding> {
        let typed = |v: &Value| serde_json::from_value::<T>(v.clone()).unwrap();
        let (new, old) = (typed(new), old.map(typed));
        let stored = |t: &T| serde_json::to_value(t).unwrap();
        let errors = judge(&new, old.as_ref());
        let found = self.findings(&stored(&new), old.as_ref().map(stored).as_ref());
        assert!(!found.is_empty(), "no rule is broken; the server says {errors}");
        for finding in &found {
            let agrees = errors.iter().any(|e| {
                e.path.as_str() == finding.path
                    && e.kind.reason() == finding.reason
                    && e.message.ends_with(&finding.message)
            });
            assert!(agrees, "{finding:?}, but the server says {errors}");
        }
        found
    }
}

/// Evaluates every rule below `schema` and calls `f` with schema path, path and rule for each that is broken.
fn walk(
    schema: &Value,
    (place, path): (&str, &str),
    new: &Value,
    old: Option<&Value>,
    f: &mut impl FnMut(&str, &str, &Value),
) {
    for rule in schema["x-kubernetes-validations"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let text = rule["rule"].as_str().unwrap();
        if old.is_none() && text.contains("oldSelf") {
            continue; // rules about a change are asked of changes only
        }
        if evaluate(text, new, old) == json!(false) {
            let mut rule = rule.clone();
            if let Some(text) = rule["messageExpression"].as_str() {
                rule["message"] = evaluate(text, new, old);
            }
            f(place, path, &rule);
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = new.get(name) {
            let at = (&*format!("{place}.{name}"), &*format!("{path}.{name}"));
            walk(property, at, value, old.and_then(|o| o.get(name)), f);
        }
    }
    for (i, item) in new.as_array().into_iter().flatten().enumerate() {
        let at = (&*format!("{place}[]"), &*format!("{path}[{i}]"));
        walk(&schema["items"], at, item, None, f);
    }
}

fn evaluate(text: &str, new: &Value, old: Option<&Value>) -> Value {
    stacker::grow(32 << 20, || {
        let mut context = Context::default();
        context.add_variable_from_value("self", cel::to_value(new).unwrap());
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", cel::to_value(old).unwrap());
        }
        PARSED.with_borrow_mut(|parsed| {
            let program = parsed
                .entry(text.to_owned())
                .or_insert_with(|| Program::compile(text).unwrap());
            let value = program
                .execute(&context)
                .unwrap_or_else(|e| panic!("{text}: {e}"));
            value.json().unwrap()
        })
    })
}

/// A value that a schema allows and that is not its default.
fn sample(schema: &Value) -> Value {
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(2);
    }
    match schema["type"].as_str().unwrap() {
        "string" => match schema["enum"].as_array() {
            Some(values) => values.iter().rfind(|v| **v != schema["default"]).unwrap().clone(),
            None if schema["format"] == "date-time" => json!("2030-01-02T03:04:05.000000Z"),
            None => json!("x".repeat(schema["minLength"].as_u64().unwrap_or(1).max(1) as usize)),
        },
        "integer" => {
            let least = schema["minimum"].as_i64().unwrap_or(0).max(3);
            json!(if schema["default"] == least {
                least + 1
            } else {
                least
            })
        }
        "boolean" => json!(true),
        "array" => json!([sample(&schema["items"])]),
        _ if schema["additionalProperties"].is_object() => {
            json!({"k": sample(&schema["additionalProperties"])})
        }
        _ => {
            let required = schema["required"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str);
            let fields = required.map(|name| (name.to_owned(), sample(&schema["properties"][name])));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

fn job(spec: &str) -> Value {
    let spec: Value = serde_saphyr::from_str(spec).unwrap();
    json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": "x", "namespace": "ops"}, "spec": spec})
}

fn task() -> Value {
    json!({"apiVersion": "prow.windows/v1", "kind": "Task", "metadata": {"name": "x", "namespace": "ops"}, "spec": {
        "jobRef": {"name": "j", "uid": "u", "workHash": "0".repeat(64)}, "index": 1, "count": 4, "attempt": 1, "nodeName": "n"}})
}

fn with(object: &Value, pointer: &str, value: Value) -> Value {
    let mut object = object.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    if object.pointer(parent).is_none() {
        object = with(&object, parent, json!({}));
    }
    object.pointer_mut(parent).unwrap()[name] = value;
    object
}

fn change<T: Resource>(new: &T, old: Option<&T>) -> Errors {
    new.validate_update(old.unwrap())
}

fn status(new: &Task, old: Option<&Task>) -> Errors {
    new.validate_status(old.unwrap())
}

fn create(new: &Job, _: Option<&Job>) -> Errors {
    new.validate()
}

#[test]
fn every_rule_is_broken_by_something_the_server_refuses_in_the_same_words() {
    let mut jobs = Rules::of("Job");
    let plain = job("{completionMode: Indexed, steps: [{name: a, script: x}]}");
    let spec = jobs.schema["properties"]["spec"]["properties"].clone();
    for (field, schema) in spec.as_object().unwrap() {
        let pointer = format!("/spec/{field}");
        let changed = with(&plain, &pointer, sample(schema));
        if crate::validate::EDITABLE.split(", ").any(|e| e == field) {
            let found = jobs.findings(&changed, Some(&plain));
            assert!(
                found.iter().all(|f| f.reason != "FieldValueForbidden"),
                "{field}: {found:?}"
            );
            continue;
        }
        for (new, old) in [(&changed, &plain), (&plain, &changed)] {
            let found = jobs.refused::<Job>(new, Some(old), |new, old| {
                let mut errors = change(new, old);
                errors.extend(new.validate());
                errors
            });
            assert!(
                found.iter().any(|f| f.path == format!("spec.{field}")),
                "{field}: {found:?}"
            );
        }
    }
    let cancel = |cancel: Value| with(&plain, "/spec/cancel", cancel);
    let cancelled = cancel(json!({"reason": "r", "force": true}));
    for new in [
        &plain,
        &cancel(json!({"reason": "other", "force": true})),
        &cancel(json!({"reason": "r"})),
    ] {
        jobs.refused::<Job>(new, Some(&cancelled), change);
    }
    let many = format!(
        "{{steps: [{}], finally: [{{name: z, script: x}}]}}",
        (0..200)
            .map(|i| format!("{{name: s{i}, script: x}}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    for spec in [
        "{targetRef: {name: web}, steps: [{name: a, script: x}]}",
        "{nodeNames: [web], steps: [{name: a, script: x}]}",
        "{completionMode: PerNode, completions: 3, steps: [{name: a, script: x}]}",
        "{priority: 1, priorityClassName: high, steps: [{name: a, script: x}]}",
        "{cancel: {reason: ' '}, steps: [{name: a, script: x}]}",
        "{steps: []}",
        &many,
        "{params: [{name: a}, {name: b, value: x, valueFrom: {secretKeyRef: {name: a, key: k}}}], steps: [{name: a, script: x}]}",
        "{tolerations: [{}, {key: a, operator: Exists, value: x}], steps: [{name: a, script: x}]}",
        "{failurePolicy: {rules: [{action: Count}]}, steps: [{name: a, script: x}]}",
        "{env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}, {name: B, valueFrom: {}}], envFrom: [{}], steps: [{name: a, script: x}]}",
    ] {
        jobs.refused::<Job>(&job(spec), None, create);
    }
    for list in ["preflight", "steps", "rollback", "finally"] {
        for step in [
            "{name: a}",
            "{name: a, command: [x], script: x}",
            "{name: a, command: [x], scriptFile: {hostPath: x}}",
            "{name: a, script: x, scriptFile: {hostPath: x}}",
            "{name: a, command: [x], shell: sh}",
            "{name: a, script: x, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}, {name: B, valueFrom: {}}], envFrom: [{}], mounts: [{path: p}]}",
        ] {
            let spec = if list == "steps" {
                format!("{{steps: [{step}]}}")
            } else {
                format!("{{steps: [{{name: b, script: x}}], {list}: [{step}]}}")
            };
            jobs.refused::<Job>(&job(&spec), None, create);
        }
    }
    complete(&jobs);

    let mut tasks = Rules::of("Task");
    let plain = task();
    let spec = tasks.schema["properties"]["spec"]["properties"].clone();
    for (field, schema) in spec.as_object().unwrap() {
        let pointer = format!("/spec/{field}");
        let changed = with(
            &plain,
            &pointer,
            match plain.pointer(&pointer) {
                Some(Value::String(_)) => json!("other"),
                Some(Value::Object(_)) => json!({"name": "o", "uid": "u", "workHash": "0".repeat(64)}),
                _ => sample(schema),
            },
        );
        let once = ["stop", "rebootAllowed", "resolution"].contains(&field.as_str());
        if once {
            assert_eq!(tasks.findings(&changed, Some(&plain)), []);
            tasks.refused::<Task>(&plain, Some(&changed), change);
        } else if field == "drain" {
            let [wanted, done] = ["Wanted", "Done"].map(|d| with(&plain, "/spec/drain", json!(d)));
            tasks.refused::<Task>(&wanted, Some(&plain), change);
            tasks.refused::<Task>(&wanted, Some(&done), change);
            assert_eq!(tasks.findings(&done, Some(&wanted)), []);
        } else {
            tasks.refused::<Task>(&changed, Some(&plain), change);
        }
    }
    let stop = |stop: Value| with(&plain, "/spec/stop", stop);
    let stopped = stop(json!({"reason": "Cancelled", "message": "m", "graceSeconds": 30, "force": true}));
    for weaker in [
        json!({"reason": "Cancelled", "message": "m", "graceSeconds": 31, "force": true}),
        json!({"reason": "Cancelled", "message": "m", "graceSeconds": 30}),
        json!({"reason": "Deadline", "message": "m", "graceSeconds": 30, "force": true}),
        json!({"reason": "Cancelled", "message": "n", "graceSeconds": 30, "force": true}),
    ] {
        tasks.refused::<Task>(&stop(weaker), Some(&stopped), change);
    }
    let ended = with(&plain, "/status", json!({"phase": "Succeeded"}));
    let fields = tasks.schema["properties"]["status"]["properties"].clone();
    for (field, schema) in fields.as_object().unwrap() {
        let late = with(&ended, &format!("/status/{field}"), sample(schema));
        if ["lateReport", "logsPending"].contains(&field.as_str()) {
            assert_eq!(tasks.findings(&late, Some(&ended)), [], "{field}");
        } else {
            tasks.refused::<Task>(&late, Some(&ended), status);
        }
    }
    let claimed = with(
        &plain,
        "/status",
        json!({"phase": "Claimed", "claim": sample(&fields["claim"])}),
    );
    let bare = with(&plain, "/status", json!({"phase": "Claimed"}));
    tasks.refused::<Task>(&bare, Some(&claimed), status);
    let back = tasks.refused::<Task>(
        &with(&claimed, "/status/phase", json!("Bound")),
        Some(&claimed),
        status,
    );
    assert_eq!(back[0].message, "a Task that is Claimed cannot become Bound");
    complete(&tasks);
}

/// Fails unless every rule was broken once.
fn complete(rules: &Rules) {
    fn collect(schema: &Value, place: &str, all: &mut BTreeSet<(String, String)>) {
        for rule in schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            all.insert((place.to_owned(), rule["rule"].as_str().unwrap().to_owned()));
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            collect(property, &format!("{place}.{name}"), all);
        }
        if schema["items"].is_object() {
            collect(&schema["items"], &format!("{place}[]"), all);
        }
    }
    let mut all = BTreeSet::new();
    collect(&rules.schema, "", &mut all);
    let unbroken: Vec<_> = all.difference(&rules.broken).collect();
    assert!(unbroken.is_empty(), "no test breaks {unbroken:?}");
}

#[test]
fn what_the_server_accepts_breaks_no_rule() {
    let mut jobs = Rules::of("Job");
    for spec in [
        "{steps: [{name: a, script: x}]}",
        "{steps: [{name: a, check: 'test -e x', shell: sh}, {name: b, command: [x], args: [z]}]}",
        "{targetRef: {name: all}, completionMode: PerNode, steps: [{name: a, script: x}]}",
        "{nodeSelector: {a: b}, completionMode: PerNode, steps: [{name: a, script: x}]}",
        "{nodeNames: [a], completionMode: Indexed, completions: 3, steps: [{name: a, script: x}]}",
        "{tolerations: [{operator: Exists}, {key: a, value: b}], priority: 3, steps: [{name: a, script: x}]}",
        "{params: [{name: a, value: ''}], env: [{name: A}, {name: B, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}], steps: [{name: a, script: x}]}",
        "{failurePolicy: {rules: [{action: Count, onReasons: [Timeout]}]}, steps: [{name: a, script: x, envFrom: [{secretRef: {name: s}}], mounts: [{secret: s, path: p}]}]}",
    ] {
        let object: Job = serde_json::from_value(job(spec)).unwrap();
        assert!(object.validate().is_empty(), "{spec}: {}", object.validate());
        let stored = serde_json::to_value(&object).unwrap();
        assert_eq!(jobs.findings(&stored, Some(&stored)), [], "{spec}");
        let mut edited = stored.clone();
        for (field, value) in [
            ("suspend", json!(true)),
            ("parallelism", json!("10%")),
            ("priority", json!(7)),
        ] {
            edited["spec"][field] = value;
        }
        assert_eq!(jobs.findings(&edited, Some(&stored)), [], "{spec}");
    }
    let mut tasks = Rules::of("Task");
    let harder = |grace: i64, force: bool| {
        with(
            &task(),
            "/spec/stop",
            json!({"reason": "Cancelled", "graceSeconds": grace, "force": force}),
        )
    };
    assert_eq!(tasks.findings(&harder(3, true), Some(&harder(30, false))), []);
    let phase = |phase: &str| with(&task(), "/status", json!({"phase": phase}));
    for (from, to) in [
        ("Bound", "Claimed"),
        ("Claimed", "Running"),
        ("Running", "Unknown"),
        ("Failed", "Failed"),
    ] {
        assert_eq!(tasks.findings(&phase(to), Some(&phase(from))), []);
    }
}

#[test]
fn rules_about_a_change_lie_where_kubernetes_can_pair_old_with_new() {
    fn look(schema: &Value, path: &str) {
        for rule in schema["x-kubernetes-validations"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let pairs = !path.contains("[]") || !rule["rule"].as_str().unwrap().contains("oldSelf");
            assert!(pairs, "{path}: {rule}");
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            look(property, &format!("{path}.{name}"));
        }
        if schema["items"].is_object() {
            look(&schema["items"], &format!("{path}[]"));
        }
    }
    for kind in ["Job", "Task", "Node", "Queue", "Target"] {
        look(&Rules::of(kind).schema, "");
    }
}
