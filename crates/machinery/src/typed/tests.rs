use super::tests_support::widget;
use crate::kind::{Context, Scope};
use api::identity::Identity;
use jiff::Timestamp;
use serde_json::{Value, json};

fn object(spec: Value) -> Value {
    json!({"apiVersion": "test.example/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "spec": spec})
}

fn refusal(spec: Value) -> String {
    widget().strategy.decode(object(spec)).unwrap_err().to_string()
}

#[test]
fn the_kind_is_what_the_crd_says() {
    let kind = widget();
    assert_eq!(
        (
            kind.api_version().as_str(),
            kind.plural.as_str(),
            kind.list_kind.as_str()
        ),
        ("test.example/v1", "widgets", "WidgetList")
    );
    assert_eq!((kind.scope, kind.status_subresource), (Scope::Namespaced, true));
    assert_eq!(
        (kind.short_names, kind.categories, kind.selectable),
        (vec!["wd".into()], vec!["all".into()], vec!["spec.owner".into()])
    );
    assert_eq!(kind.columns.len(), 2);
    assert!(!kind.strategy.strategic_merge());
}

#[test]
fn defaults_are_written_out() {
    let decoded = widget().strategy.decode(object(json!({"title": "x"}))).unwrap();
    assert_eq!(
        decoded.object["spec"],
        json!({"title": "x", "steps": [], "mode": "Apply"})
    );
    assert_eq!(
        (&decoded.object["apiVersion"], &decoded.object["kind"]),
        (&json!("test.example/v1"), &json!("Widget"))
    );
}

#[test]
fn unknown_fields_come_with_their_path_and_the_nearest_name() {
    let spec =
        json!({"title": "x", "steps": [{"name": "a"}, {"name": "b", "shel": "bash"}], "colour": "red"});
    let mut object = object(spec);
    object["metadata"]["lables"] = json!({});
    object["extra"] = json!(1);
    let decoded = widget().strategy.decode(object).unwrap();
    assert_eq!(
        decoded.unknown,
        [
            r#"metadata.lables: unknown field, did you mean "labels"?"#,
            r#"spec.steps[1].shel: unknown field, did you mean "shell"?"#,
            "spec.colour: unknown field",
            "extra: unknown field",
        ]
    );
    assert!(decoded.object["spec"].get("colour").is_none());
}

#[test]
fn type_errors_name_the_path_and_mend_yaml_traps() {
    assert_eq!(
        refusal(json!({"title": true})),
        "spec.title: Invalid value: \"true\": expected a string, found a boolean; YAML reads it so unless it is quoted: quote it: \"true\""
    );
    assert!(
        refusal(json!({"title": "x", "steps": [{"shell": 1.5}]}))
            .starts_with("spec.steps[0].shell: Invalid value: \"1.5\"")
    );
    assert!(refusal(json!({"title": "x", "steps": [{"retries": "3"}]})).contains("remove the quotes"));
    assert_eq!(
        refusal(json!({})),
        "spec.title: Required value: What it is called"
    );
    assert!(refusal(json!({"title": "x", "mode": "Aply"})).contains("did you mean \"Apply\"?"));
    assert!(refusal(json!([])).starts_with("spec: Invalid value: expected a map of fields, found a list"));
}

#[test]
fn what_only_serde_finds_has_a_path_too() {
    let mut object = object(json!({"title": "x"}));
    object["metadata"]["creationTimestamp"] = "yesterday".into();
    let text = widget().strategy.decode(object).unwrap_err().to_string();
    assert!(
        text.starts_with("metadata.creationTimestamp: Invalid value"),
        "{text}"
    );
}

#[test]
fn validation_joins_schema_and_rules() {
    let kind = widget();
    let spec = json!({"title": "bad", "steps": [{"retries": 10}, {}, {}, {}]});
    let decoded = kind.strategy.decode(object(spec)).unwrap();
    let text = kind.strategy.validate_create(&decoded.object).to_string();
    for part in [
        "spec.steps: Too many: 4",
        "spec.steps[0].retries: Invalid value: \"10\": must be from 0 to 9",
        "spec.title: Invalid value: \"bad\": is bad",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert_eq!(kind.strategy.warnings(&decoded.object), ["runs 4 steps"]);
}

#[test]
fn a_status_is_checked_alone() {
    let kind = widget();
    let mut new = object(json!({"title": "bad"}));
    new["status"] = json!({"phase": "much too long"});
    let text = kind
        .strategy
        .validate_status(&new, &object(json!({"title": "bad"})))
        .to_string();
    assert_eq!(
        text,
        "status.phase: Too long: 13 characters, may not be more than 8"
    );
}

#[test]
fn preparation_stamps_who_asked() {
    let kind = widget();
    let user = Identity {
        name: "ann".into(),
        groups: Vec::new(),
    };
    let mut value = object(json!({"title": "x"}));
    kind.strategy.prepare_create(
        &mut value,
        &Context {
            user: &user,
            now: Timestamp::UNIX_EPOCH,
        },
    );
    assert_eq!(value["spec"]["owner"], "ann");
}
