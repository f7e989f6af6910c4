//! Each core kind as a client sees it.

use super::*;
use crate::{kind::Context, metadata};
use api::identity::Identity;
use jiff::Timestamp;
use serde_json::json;

fn decode(plural: &str, object: Value) -> Value {
    let decoded = by_plural(plural).unwrap().strategy.decode(object).unwrap();
    assert_eq!(decoded.unknown, Vec::<String>::new());
    decoded.object
}

fn mistakes(plural: &str, object: Value) -> String {
    let kind = by_plural(plural).unwrap();
    match kind.strategy.decode(object) {
        Ok(decoded) => kind.strategy.validate_create(&decoded.object).to_string(),
        Err(error) => error.to_string(),
    }
}

fn change(plural: &str, old: Value, new: Value) -> String {
    let (old, new) = (decode(plural, old), decode(plural, new));
    by_plural(plural)
        .unwrap()
        .strategy
        .validate_update(&new, &old)
        .to_string()
}

#[test]
fn every_reference_of_every_schema_is_defined() {
    for kind in all() {
        let text = json!([kind.schema, kind.definitions]).to_string();
        for part in text.split("\"$ref\":\"").skip(1) {
            let name = part.split('"').next().unwrap().strip_prefix(REFERENCE).unwrap();
            assert!(
                kind.definitions.iter().any(|(n, _)| n == name),
                "{}: {name}",
                kind.kind
            );
        }
    }
}

#[test]
fn a_misspelt_field_of_a_core_kind_has_a_hint() {
    let kind = by_plural("configmaps").unwrap();
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "lables": {}}, "dta": {}});
    let decoded = kind.strategy.decode(object).unwrap();
    assert_eq!(
        decoded.unknown,
        [
            r#"metadata.lables: unknown field, did you mean "labels"?"#,
            r#"dta: unknown field, did you mean "data"?"#
        ]
    );
    assert!(decoded.object.get("dta").is_none());
}

#[test]
fn a_config_map_wants_texts() {
    let text = mistakes("configmaps", json!({"data": {"port": 8080}}));
    assert!(
        text.starts_with("data[port]: ") && text.contains("quote it: \"8080\""),
        "{text}"
    );
}

#[test]
fn secret_texts_are_folded_into_data_and_the_type_defaults() {
    let secret = decode(
        "secrets",
        json!({"metadata": {"name": "s"}, "data": {"a": "b2xk", "b": "Yg=="}, "stringData": {"a": "new"}}),
    );
    assert_eq!(secret["data"], json!({"a": "bmV3", "b": "Yg=="}));
    assert_eq!(
        (secret.get("stringData"), &secret["type"]),
        (None, &json!("Opaque"))
    );
}

#[test]
fn secret_data_must_be_base64() {
    let text = mistakes("secrets", json!({"data": {"a": "not base64!"}}));
    assert!(text.starts_with("data[a]: Invalid value"), "{text}");
}

#[test]
fn secret_types_have_their_keys() {
    assert!(
        mistakes(
            "secrets",
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": ""}})
        )
        .contains("data[tls.key]: Required")
    );
    assert!(
        mistakes("secrets", json!({"type": "kubernetes.io/basic-auth"})).contains("username or password")
    );
    assert_eq!(
        mistakes(
            "secrets",
            json!({"type": "kubernetes.io/basic-auth", "stringData": {"password": "x"}})
        ),
        "[]"
    );
}

#[test]
fn data_keys_and_size_are_bounded() {
    for bad in ["", "a/b", "..", "..x", ".", &"k".repeat(254)] {
        assert!(
            mistakes("secrets", json!({"data": {bad: ""}})).contains("it becomes a file name"),
            "{bad}"
        );
    }
    let half = "x".repeat(600 * 1024);
    assert!(mistakes("configmaps", json!({"data": {"a": half, "b": half}})).contains("data: Too long"));
    assert!(
        mistakes("configmaps", json!({"data": {"a": ""}, "binaryData": {"a": ""}}))
            .contains("binaryData[a]: Invalid")
    );
}

#[test]
fn immutable_stays_immutable() {
    let old = json!({"immutable": true, "data": {"a": "MQ=="}});
    assert_eq!(
        change(
            "secrets",
            old.clone(),
            json!({"immutable": true, "data": {"a": "MQ=="}, "metadata": {"labels": {"x": "y"}}})
        ),
        "[]"
    );
    assert!(
        change(
            "secrets",
            old.clone(),
            json!({"immutable": true, "data": {"a": "Mg=="}})
        )
        .starts_with("data: Forbidden")
    );
    assert!(change("secrets", old, json!({"data": {"a": "MQ=="}})).starts_with("immutable: Forbidden"));
    assert!(
        change(
            "configmaps",
            json!({"immutable": true}),
            json!({"immutable": true, "binaryData": {"a": ""}})
        )
        .starts_with("binaryData")
    );
    assert!(
        change("secrets", json!({"type": "a"}), json!({"type": "b"}))
            .contains("type: Invalid value: \"b\": field is immutable")
    );
}

#[test]
fn a_namespace_is_born_active_and_labelled() {
    let kind = by_plural("namespaces").unwrap();
    let user = Identity::anonymous();
    let mut object = decode(
        "namespaces",
        json!({"metadata": {"name": "ops"}, "status": {"phase": "Terminating"}}),
    );
    metadata::prepare_create(&kind, &mut object, "u", Timestamp::UNIX_EPOCH);
    kind.strategy.prepare_create(
        &mut object,
        &Context {
            user: &user,
            now: Timestamp::UNIX_EPOCH,
        },
    );
    assert_eq!(object["status"]["phase"], "Active");
    assert_eq!(object["metadata"]["labels"]["kubernetes.io/metadata.name"], "ops");
}

#[test]
fn only_finalize_lets_a_namespace_go() {
    let kind = by_plural("namespaces").unwrap();
    let user = Identity::anonymous();
    let context = Context {
        user: &user,
        now: Timestamp::UNIX_EPOCH,
    };
    let mut old = decode("namespaces", json!({"metadata": {"name": "ops"}}));
    kind.strategy.prepare_create(&mut old, &context);
    assert_eq!(old["spec"]["finalizers"], json!(["kubernetes"]));
    let emptied =
        json!({"metadata": {"name": "ops", "labels": {"a": "b"}}, "spec": {}, "status": {"phase": "Gone"}});
    let (mut updated, mut finalized) = (emptied.clone(), emptied);
    kind.strategy.prepare_update(&mut updated, &old, &context);
    assert_eq!(updated["spec"], old["spec"]);
    kind.strategy
        .prepare_subresource("finalize", &mut finalized, &old, &context);
    assert_eq!(
        (&finalized["spec"], &finalized["status"]),
        (&json!({}), &old["status"])
    );
    assert_eq!(finalized["metadata"], old["metadata"]);
}

fn csr(pem: &str) -> Value {
    use base64::{Engine, prelude::BASE64_STANDARD};
    json!({"metadata": {"name": "agent-1"}, "spec": {"request": BASE64_STANDARD.encode(pem), "signerName": "prow.windows/node-client",
        "usages": ["client auth"], "username": "forged", "groups": ["system:masters"]}})
}

const REQUEST: &str = "-----BEGIN CERTIFICATE REQUEST-----\nMII\n-----END CERTIFICATE REQUEST-----\n";

#[test]
fn a_certificate_request_says_who_really_asks() {
    let kind = by_plural("certificatesigningrequests").unwrap();
    let user = Identity {
        name: "system:bootstrap:abc".into(),
        groups: vec!["system:bootstrappers".into()],
    };
    let mut object = decode("certificatesigningrequests", csr(REQUEST));
    kind.strategy.prepare_create(
        &mut object,
        &Context {
            user: &user,
            now: Timestamp::UNIX_EPOCH,
        },
    );
    assert_eq!(object["spec"]["username"], "system:bootstrap:abc");
    assert_eq!(object["spec"]["groups"], json!(["system:bootstrappers"]));
    assert_eq!(mistakes("certificatesigningrequests", csr(REQUEST)), "[]");
}

#[test]
fn a_bad_certificate_request_names_its_fields() {
    let text = mistakes("certificatesigningrequests", csr("hello"));
    assert!(text.contains("spec.request: Invalid"), "{text}");
    let mut other = csr(REQUEST);
    other["spec"]["signerName"] = "nobody".into();
    other["spec"]["usages"] = json!([]);
    let text = mistakes("certificatesigningrequests", other);
    assert!(
        text.contains("spec.signerName: Invalid") && text.contains("spec.usages: Required"),
        "{text}"
    );
}

#[test]
fn only_the_approval_subresource_decides() {
    let kind = by_plural("certificatesigningrequests").unwrap();
    let user = Identity::anonymous();
    let context = Context {
        user: &user,
        now: Timestamp::UNIX_EPOCH,
    };
    let old = decode("certificatesigningrequests", csr(REQUEST));
    let mut new = old.clone();
    new["spec"]["signerName"] = "a.b/changed".into();
    new["status"] =
        json!({"certificate": "Zm9yZ2Vk", "conditions": [{"type": "Approved", "status": "True"}]});
    assert!(
        kind.strategy
            .validate_status(&new, &old)
            .to_string()
            .contains("approval only")
    );
    kind.strategy
        .prepare_subresource("approval", &mut new, &old, &context);
    assert_eq!(new["spec"], old["spec"]);
    assert_eq!(
        new["status"]["conditions"][0]["lastUpdateTime"],
        "1970-01-01T00:00:00Z"
    );
    assert!(new["status"].get("certificate").is_none());
    let mut both = new.clone();
    both["status"]["conditions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"type": "Denied", "status": "True"}));
    assert!(
        kind.strategy
            .validate_update(&both, &new)
            .to_string()
            .contains("not both")
    );
}

#[test]
fn a_priority_class_keeps_its_value() {
    let class = |value: i64| json!({"metadata": {"name": "high"}, "value": value});
    assert_eq!(
        decode("priorityclasses", class(5))["preemptionPolicy"],
        "PreemptLowerPriority"
    );
    assert!(change("priorityclasses", class(5), class(6)).starts_with("value: Forbidden"));
    assert!(mistakes("priorityclasses", class(1_000_000_001)).contains("value: Invalid"));
    let text = mistakes(
        "priorityclasses",
        json!({"metadata": {"name": "x"}, "value": 1, "preemptionPolicy": "never"}),
    );
    assert!(text.contains("did you mean \"Never\"?"), "{text}");
}

#[test]
fn quotas_leases_events_and_reviews_are_checked() {
    let quota = |amount: &str| json!({"spec": {"hard": {"jobs": amount}}});
    assert_eq!(mistakes("resourcequotas", quota("10")), "[]");
    assert!(mistakes("resourcequotas", quota("-1")).starts_with("spec.hard[jobs]: Invalid"));
    assert!(
        mistakes("leases", json!({"spec": {"leaseDurationSeconds": 0}}))
            .contains("spec.leaseDurationSeconds")
    );
    let event = json!({"metadata": {"namespace": "a"}, "involvedObject": {"namespace": "b"}});
    assert!(mistakes("events", event).contains("involvedObject.namespace: Invalid"));
    assert!(mistakes("selfsubjectaccessreviews", json!({"spec": {}})).contains("exactly one"));
    assert!(mistakes("selfsubjectrulesreviews", json!({"spec": {}})).contains("spec.namespace: Required"));
}

#[test]
fn an_api_version_of_another_kind_is_refused() {
    let text = mistakes("configmaps", json!({"apiVersion": "v2", "kind": "ConfigMap"}));
    assert!(text.contains("v1"), "{text}");
}
