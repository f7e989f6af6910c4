use super::*;
use crate::{core_kinds::by_plural, typed::tests_support::widget};
use proptest::prelude::*;
use serde_json::json;

fn patched(type_: PatchType, plural: &str, object: Value, patch: Value) -> Result<Value, Status> {
    let kind = by_plural(plural).unwrap();
    Patch::decode(type_, patch.to_string().as_bytes())?.apply(&kind, "x", &object)
}

fn strategic(plural: &str, object: Value, patch: Value) -> Value {
    patched(PatchType::Strategic, plural, object, patch).unwrap()
}

#[test]
fn content_types() {
    let (ours, core) = (widget(), by_plural("secrets").unwrap());
    let of = |header, kind| PatchType::of_content_type(Some(header), kind).map_err(|s| (s.code(), s.message));
    assert_eq!(
        of("application/json-patch+json; charset=utf-8", &ours).unwrap(),
        PatchType::Json
    );
    assert_eq!(
        of("application/merge-patch+json", &ours).unwrap(),
        PatchType::Merge
    );
    assert_eq!(
        of("application/strategic-merge-patch+json", &core).unwrap(),
        PatchType::Strategic
    );
    let (code, message) = of("application/strategic-merge-patch+json", &ours).unwrap_err();
    assert!(
        code == 415 && !message.ends_with("strategic-merge-patch+json"),
        "{message}"
    );
    let (code, message) = of("application/apply-patch+yaml", &ours).unwrap_err();
    assert!(
        code == 415 && message.contains("without --server-side"),
        "{message}"
    );
    assert!(PatchType::of_content_type(None, &core).is_err());
}

#[test]
fn json_patch_applies_in_order() {
    let patch = json!([{"op": "test", "path": "/data/a", "value": "1"}, {"op": "replace", "path": "/data/a", "value": "2"},
        {"op": "copy", "from": "/data/a", "path": "/data/b"}, {"op": "add", "path": "/metadata/labels", "value": {"x/y": "z"}},
        {"op": "remove", "path": "/data/a"}]);
    let object = patched(
        PatchType::Json,
        "configmaps",
        json!({"metadata": {}, "data": {"a": "1"}}),
        patch,
    )
    .unwrap();
    assert_eq!(
        object,
        json!({"metadata": {"labels": {"x/y": "z"}}, "data": {"b": "2"}})
    );
}

#[test]
fn a_failed_operation_is_named() {
    let patch = json!([{"op": "remove", "path": "/data/a"}, {"op": "test", "path": "/data/b", "value": 1}]);
    let status = patched(
        PatchType::Json,
        "configmaps",
        json!({"data": {"a": "1", "b": "2"}}),
        patch,
    )
    .unwrap_err();
    assert_eq!(status.code(), 422);
    assert_eq!(
        status.message,
        "configmaps \"x\" cannot be patched: operation 1 (test \"/data/b\"): value did not match"
    );
    assert_eq!(status.details.causes[0].field, "patch[1]");
    let missing = json!([{"op": "replace", "path": "/nope/a", "value": 1}]);
    let status = patched(PatchType::Json, "configmaps", json!({}), missing).unwrap_err();
    assert!(
        status.message.contains("operation 0 (replace \"/nope/a\")"),
        "{status}"
    );
}

#[test]
fn what_is_no_patch_is_a_bad_request_that_says_where() {
    for (type_, body, part) in [
        (PatchType::Json, r#"{"op": "add"}"#, "must be a list"),
        (
            PatchType::Json,
            r#"[{"op": "add", "path": "/a", "value": 1}, {"op": "ad", "path": "/a"}]"#,
            "[1]",
        ),
        (
            PatchType::Json,
            r#"[{"op": "add", "path": "a", "value": 1}]"#,
            "[0]",
        ),
        (PatchType::Merge, "[]", "JSON object"),
        (PatchType::Strategic, "3", "JSON object"),
        (PatchType::Merge, "{", "line 1"),
    ] {
        let status = Patch::decode(type_, body.as_bytes()).unwrap_err();
        assert!(
            status.code() == 400 && status.message.contains(part),
            "{body}: {status}"
        );
    }
}

#[test]
fn a_key_written_twice_is_kept_for_strict_validation() {
    let patch = Patch::decode(PatchType::Merge, br#"{"data": {"a": "1", "a": "2"}}"#).unwrap();
    assert_eq!(patch.strict(), [r#"duplicate field "data.a""#]);
}

#[test]
fn copies_cannot_blow_up_an_object() {
    let mut doubling = vec![json!({"op": "add", "path": "/data", "value": ["x"]})];
    doubling.extend((0..40).map(|_| json!({"op": "copy", "from": "/data", "path": "/data/-"})));
    let status = patched(PatchType::Json, "configmaps", json!({}), json!(doubling)).unwrap_err();
    assert_eq!(status.code(), 422);
    let mut nesting = vec![json!({"op": "add", "path": "/a", "value": {}})];
    nesting.extend((0..200).map(|_| json!({"op": "copy", "from": "/a", "path": "/a/a"})));
    let status = patched(PatchType::Json, "configmaps", json!({}), json!(nesting)).unwrap_err();
    assert!(status.message.contains("nested more than"), "{status}");
    let many = vec![json!({"op": "test", "path": "", "value": 1}); 10_001];
    assert_eq!(
        Patch::decode(PatchType::Json, json!(many).to_string().as_bytes())
            .unwrap_err()
            .code(),
        413
    );
}

#[test]
fn merge_patch_removes_with_null_and_replaces_lists() {
    let object = json!({"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x/y"]}});
    let patch = json!({"metadata": {"labels": {"a": null, "c": "3"}, "finalizers": ["z/z"]}});
    let wanted = json!({"metadata": {"labels": {"b": "2", "c": "3"}, "finalizers": ["z/z"]}});
    assert_eq!(
        patched(PatchType::Merge, "configmaps", object, patch).unwrap(),
        wanted
    );
}

#[test]
fn strategic_merges_lists_by_their_key() {
    let owner = |uid: &str, name: &str| json!({"uid": uid, "name": name, "kind": "K", "apiVersion": "v1"});
    let object =
        json!({"metadata": {"ownerReferences": [owner("1", "a"), owner("2", "b")], "finalizers": ["a/a"]}});
    let patch = json!({"metadata": {"ownerReferences": [{"uid": "2", "name": "B"}, owner("3", "c"), {"uid": "1", "$patch": "delete"}],
        "finalizers": ["b/b", "a/a"]}});
    let result = strategic("configmaps", object, patch);
    assert_eq!(
        result["metadata"]["ownerReferences"],
        json!([owner("2", "B"), owner("3", "c")])
    );
    assert_eq!(result["metadata"]["finalizers"], json!(["a/a", "b/b"]));
}

#[test]
fn what_kubectl_apply_sends_for_service_account_secrets() {
    let object = json!({"secrets": [{"name": "a"}, {"name": "server"}, {"name": "b"}], "imagePullSecrets": [{"name": "p"}]});
    let patch = json!({"$setElementOrder/secrets": [{"name": "c"}, {"name": "a"}], "imagePullSecrets": [{"name": "q"}],
        "secrets": [{"name": "c"}, {"$patch": "delete", "name": "b"}]});
    let result = strategic("serviceaccounts", object, patch);
    assert_eq!(
        result["secrets"],
        json!([{"name": "c"}, {"name": "server"}, {"name": "a"}])
    );
    assert_eq!(result["imagePullSecrets"], json!([{"name": "q"}]));
    assert!(result.get("$setElementOrder/secrets").is_none());
}

#[test]
fn conditions_of_a_namespace_merge_by_type() {
    let object = json!({"status": {"conditions": [{"type": "A", "status": "True", "reason": "R"}]}});
    let patch = json!({"status": {"conditions": [{"type": "A", "status": "False"}, {"type": "B", "status": "True", "reason": null}]}});
    let wanted = json!([{"type": "A", "status": "False", "reason": "R"}, {"type": "B", "status": "True"}]);
    assert_eq!(
        strategic("namespaces", object, patch)["status"]["conditions"],
        wanted
    );
}

#[test]
fn directives() {
    let object = json!({"metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["a/a", "b/b", "c/c"]}, "data": {"k": "v", "l": "w"}});
    let with = |patch| strategic("configmaps", object.clone(), patch);
    assert_eq!(
        with(json!({"data": {"$patch": "replace", "n": "1"}}))["data"],
        json!({"n": "1"})
    );
    assert!(with(json!({"data": {"$patch": "delete"}})).get("data").is_none());
    assert_eq!(
        with(json!({"data": {"$retainKeys": ["l"], "m": "x"}}))["data"],
        json!({"l": "w", "m": "x"})
    );
    let result = with(
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b/b"], "$setElementOrder/finalizers": ["c/c", "a/a"]}}),
    );
    assert_eq!(result["metadata"]["finalizers"], json!(["c/c", "a/a"]));
    assert_eq!(
        with(json!({"metadata": {"finalizers": null}}))["metadata"].get("finalizers"),
        None
    );
}

#[test]
fn wrong_directives_say_where() {
    for (patch, part) in [
        (
            json!({"data": {"$patch": "erase"}}),
            "data: $patch: \"erase\" is none of",
        ),
        (json!({"data": {"$foo": 1}}), "data: $foo is no directive"),
        (
            json!({"metadata": {"ownerReferences": [{"name": "x"}]}}),
            "metadata.ownerReferences[0]: the item has no \"uid\"",
        ),
        (json!({"$retainKeys": 1}), "the top: $retainKeys must be a list"),
    ] {
        let status = patched(PatchType::Strategic, "configmaps", json!({"data": {}}), patch).unwrap_err();
        assert!(
            status.code() == 400 && status.message.contains(part),
            "{part}: {status}"
        );
    }
}

/// Small JSON values without nulls in them.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        "[ab]".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 20, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3).prop_map(|m| m.into_iter().collect()),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", value(), 0..4).prop_map(|m| m.into_iter().collect())
}

proptest! {
    /// Where no list is merged by key and no directive is used, it is a plain merge patch.
    #[test]
    fn strategic_without_its_specials_is_merge_patch(target in object(), patch in object()) {
        let (mut merged, mut strategic) = (target.clone(), target);
        json_patch::merge(&mut merged, &patch);
        super::strategic::apply("ConfigMap", &patch, &mut strategic).unwrap();
        prop_assert_eq!(merged, strategic);
    }

    #[test]
    fn a_strategic_patch_applied_twice_is_the_same_as_once(target in object(), patch in object()) {
        let mut once = target;
        super::strategic::apply("ConfigMap", &patch, &mut once).unwrap();
        let mut twice = once.clone();
        super::strategic::apply("ConfigMap", &patch, &mut twice).unwrap();
        prop_assert_eq!(once, twice);
    }
}
