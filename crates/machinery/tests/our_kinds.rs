//! The kinds of Prow.Windows as this crate presents them: what is stated on the types must work in every view.

#![allow(clippy::unwrap_used)] // clippy takes the helpers of an integration test for code

use api::{Job, Node, Queue, Target, Task, identity::Identity};
use jiff::Timestamp;
use machinery::{
    kind::{Cell, Context, Kind},
    table::{IncludeObject, JsonPath, Table},
    typed::kind,
};
use serde_json::{Value, json};

fn ours() -> Vec<Kind> {
    vec![
        kind::<Job>(),
        kind::<Task>(),
        kind::<Node>(),
        kind::<Queue>(),
        kind::<Target>(),
    ]
}

fn job(spec: Value) -> Value {
    json!({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": "patch", "namespace": "ops"}, "spec": spec})
}

fn decoded(spec: Value) -> Value {
    let decoded = kind::<Job>().strategy.decode(job(spec)).unwrap();
    assert_eq!(decoded.unknown, Vec::<String>::new());
    decoded.object
}

fn refusal(spec: Value) -> String {
    kind::<Job>().strategy.decode(job(spec)).unwrap_err().to_string()
}

#[test]
fn every_column_is_a_path_this_server_can_follow() {
    for kind in ours() {
        for column in &kind.columns {
            let Cell::Path(path) = &column.cell else { continue };
            assert!(
                JsonPath::parse(path).is_some(),
                "{} {}: {path}",
                kind.kind,
                column.name
            );
        }
    }
}

#[test]
fn every_pattern_of_every_schema_can_be_checked() {
    fn patterns(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                found.extend(map.get("pattern").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|v| patterns(v, found));
            }
            Value::Array(list) => list.iter().for_each(|v| patterns(v, found)),
            _ => {}
        }
    }
    for kind in ours() {
        let mut found = Vec::new();
        patterns(&kind.schema, &mut found);
        for pattern in found {
            regex::Regex::new(&pattern).unwrap();
        }
    }
}

#[test]
fn a_job_decodes_with_its_defaults_and_decodes_again_to_the_same() {
    let first = decoded(
        json!({"nodeSelector": {"role": "web"}, "completions": 2, "parallelism": "10%",
        "steps": [{"name": "a", "script": "exit 0\n", "exitCodes": {"success": [0, "0x642", "1-7", -1]}}]}),
    );
    let again = kind::<Job>().strategy.decode(first.clone()).unwrap();
    assert_eq!(again.object, first);
    assert_eq!(again.unknown, Vec::<String>::new());
    assert!(
        kind::<Job>().strategy.validate_create(&first).is_empty(),
        "{}",
        kind::<Job>().strategy.validate_create(&first)
    );
}

#[test]
fn the_misspelt_field_of_the_design_has_its_hint() {
    let object =
        job(json!({"steps": [{"name": "a", "script": "x"}, {"name": "b", "script": "x", "shel": "bash"}]}));
    let decoded = kind::<Job>().strategy.decode(object).unwrap();
    assert_eq!(
        decoded.unknown,
        [r#"spec.steps[1].shel: unknown field, did you mean "shell"?"#]
    );
}

#[test]
fn wrong_types_name_the_path_and_the_way_out() {
    let env = json!({"steps": [{"name": "a", "script": "x", "env": [{"name": "DEBUG", "value": true}]}]});
    let text = refusal(env);
    assert!(
        text.starts_with("spec.steps[0].env[0].value: ") && text.contains("quote it: \"true\""),
        "{text}"
    );
    let text = refusal(json!({"steps": [{"name": 7, "script": "x"}]}));
    assert!(
        text.starts_with("spec.steps[0].name: ") && text.contains("quote it: \"7\""),
        "{text}"
    );
    let text = refusal(json!({"steps": {"name": "a"}}));
    assert!(text.starts_with("spec.steps: "), "{text}");
    let text = refusal(json!({"steps": [{"script": "x"}]}));
    assert!(text.starts_with("spec.steps[0].name: Required value"), "{text}");
    let text = refusal(json!({"onUnavailable": "wait", "steps": []}));
    assert!(
        text.starts_with("spec.onUnavailable: Unsupported value") && text.contains("did you mean \"Wait\"?"),
        "{text}"
    );
    let text = refusal(json!({"completions": "two"}));
    assert!(text.starts_with("spec.completions: "), "{text}");
}

#[test]
fn bounds_of_the_schema_hold_here_too() {
    let too_many = decoded(json!({"completions": 100_000_000, "steps": [{"name": "a", "script": "x"}]}));
    let text = kind::<Job>().strategy.validate_create(&too_many).to_string();
    assert!(
        text.contains("spec.completions: Invalid value: \"100000000\""),
        "{text}"
    );
}

#[test]
fn a_new_job_is_stamped_and_an_old_one_keeps_who_asked() {
    let kind = kind::<Job>();
    let (ann, bob) = (
        Identity {
            name: "ann".into(),
            groups: vec!["g".into()],
        },
        Identity::anonymous(),
    );
    let mut old = decoded(json!({"steps": [{"name": "a", "script": "x"}]}));
    kind.strategy.prepare_create(
        &mut old,
        &Context {
            user: &ann,
            now: Timestamp::UNIX_EPOCH,
        },
    );
    assert_eq!(old["spec"]["requestedBy"]["user"], "ann");
    assert_eq!(old["metadata"]["finalizers"], json!(["prow.windows/tracking"]));
    let mut new = old.clone();
    new["spec"]["requestedBy"]["user"] = "mallory".into();
    kind.strategy.prepare_update(
        &mut new,
        &old,
        &Context {
            user: &bob,
            now: Timestamp::UNIX_EPOCH,
        },
    );
    assert_eq!(new["spec"]["requestedBy"], old["spec"]["requestedBy"]);
}

#[test]
fn a_job_in_a_table() {
    let kind = kind::<Job>();
    let object = json!({"metadata": {"name": "patch", "creationTimestamp": "1970-01-01T00:00:00Z"},
        "status": {"phase": "Running", "succeeded": 3, "desired": 9, "waiting": [{"reason": "Window"}]}});
    let now = Timestamp::from_second(200).unwrap();
    let mut table = Table::new(&kind, IncludeObject::None, now, &json!({}), true);
    table.push(&object);
    let table: Value = serde_json::from_slice(&table.finish()).unwrap();
    let cell = |name: &str| {
        let place = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .position(|c| c["name"] == name)
            .unwrap();
        table["rows"][0]["cells"][place].clone()
    };
    assert_eq!(
        (cell("Name"), cell("Phase"), cell("Succeeded")),
        (json!("patch"), json!("Running"), json!(3))
    );
    assert_eq!(
        (cell("Waiting"), cell("Age"), cell("Failed")),
        (json!("Window"), json!("3m20s"), Value::Null)
    );
}

/// A Job's name is part of its Tasks' names; two rules that said so each reported a bad one.
#[test]
fn a_bad_name_is_reported_once() {
    let jobs = kind::<Job>();
    for name in ["Bad_Name", "with.dot", &"a".repeat(64)] {
        let mut object = decoded(json!({"steps": [{"name": "run", "script": "true"}]}));
        object["metadata"]["name"] = json!(name);
        let mut errors = machinery::metadata::validate(&jobs, &object);
        errors.extend(jobs.strategy.validate_create(&object));
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("metadata.name: "), "{found:?}");
    }
}
