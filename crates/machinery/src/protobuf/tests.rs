//! Bodies as kubectl 1.37 sends them (recorded in `tests/kubectl`), and bodies built with `k8s-pb` for what it never sends.

use super::*;
use crate::core_kinds::by_plural;
use k8s_pb::{
    api::{coordination::v1 as coordination, core::v1 as core},
    apimachinery::pkg::apis::meta::v1 as meta,
};
use prost::Message as _;
use serde_json::json;

macro_rules! recorded {
    ($name:literal) => {
        decode(include_bytes!(concat!("../../tests/kubectl/", $name, ".bin"))).unwrap()
    };
}

/// What the API server makes of it: decoded by the kind, nothing unknown, nothing wrong.
fn accepted(plural: &str, object: Value) -> Value {
    let kind = by_plural(plural).unwrap();
    let decoded = kind.strategy.decode(object).unwrap();
    assert_eq!(decoded.unknown, Vec::<String>::new());
    assert!(kind.strategy.validate_create(&decoded.object).is_empty());
    decoded.object
}

#[test]
fn create_namespace() {
    let object = recorded!("create-namespace");
    assert_eq!(
        object,
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}, "spec": {}, "status": {}})
    );
    accepted("namespaces", object);
}

#[test]
fn create_secret() {
    let object = recorded!("create-secret");
    assert_eq!(
        object["data"],
        json!({"f.bin": "/wBiaW4=", "password": "aHVudGVyMg=="})
    );
    assert!(object.get("immutable").is_none());
    assert_eq!(accepted("secrets", object)["type"], "Opaque");
    let registry = recorded!("create-secret-docker-registry");
    assert_eq!(registry["type"], "kubernetes.io/dockerconfigjson");
    accepted("secrets", registry);
}

#[test]
fn create_configmap_with_text_and_bytes() {
    let object = accepted("configmaps", recorded!("create-configmap"));
    assert_eq!(object["data"], json!({"f.txt": "hello\n", "k": "v"}));
    assert_eq!(object["binaryData"], json!({"f.bin": "/wBiaW4="}));
    assert_eq!(object["metadata"]["namespace"], "ops");
}

#[test]
fn create_serviceaccount_quota_and_priorityclass() {
    assert_eq!(
        accepted("serviceaccounts", recorded!("create-serviceaccount"))["metadata"]["name"],
        "robot"
    );
    let quota = accepted("resourcequotas", recorded!("create-quota"));
    assert_eq!(
        quota["spec"],
        json!({"hard": {"cpu": "1500m", "jobs": "10"}, "scopes": ["BestEffort"]})
    );
    let class = accepted("priorityclasses", recorded!("create-priorityclass"));
    assert_eq!(
        (&class["value"], &class["preemptionPolicy"], &class["description"]),
        (&json!(0), &json!("Never"), &json!("none"))
    );
}

#[test]
fn auth_can_i_and_whoami() {
    let review = accepted("selfsubjectaccessreviews", recorded!("auth-can-i"));
    let wanted = json!({"namespace": "ops", "verb": "create", "group": "prow.windows", "resource": "jobs"});
    let asked = &review["spec"]["resourceAttributes"];
    for field in ["namespace", "verb"] {
        assert_eq!(asked[field], wanted[field]);
    }
    let url = accepted("selfsubjectaccessreviews", recorded!("auth-can-i-url"));
    assert_eq!(
        url["spec"]["nonResourceAttributes"],
        json!({"path": "/healthz", "verb": "get"})
    );
    assert_eq!(
        accepted("selfsubjectrulesreviews", recorded!("auth-can-i-list"))["spec"]["namespace"],
        "ops"
    );
    accepted("selfsubjectreviews", recorded!("auth-whoami"));
}

#[test]
fn certificate_approve() {
    let object = recorded!("certificate-approve");
    assert_eq!(object["spec"]["extra"], json!({"k": ["v1", "v2"]}));
    assert_eq!(
        (&object["spec"]["expirationSeconds"], &object["spec"]["request"]),
        (&json!(3600), &json!("LS0t"))
    );
    assert_eq!(object["metadata"]["creationTimestamp"], "2026-01-02T03:04:05Z");
    let condition = &object["status"]["conditions"][0];
    assert_eq!(
        (&condition["type"], &condition["status"]),
        (&json!("Approved"), &json!("True"))
    );
    assert!(condition["lastUpdateTime"].is_string() && condition.get("lastTransitionTime").is_none());
}

/// Wraps a message as clients do.
fn envelope(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let unknown = k8s_pb::apimachinery::pkg::runtime::Unknown {
        type_meta: Some(k8s_pb::apimachinery::pkg::runtime::TypeMeta {
            api_version: Some(api_version.into()),
            kind: Some(kind.into()),
        }),
        raw: Some(message.to_vec()),
        ..Default::default()
    };
    [b"k8s\0".as_slice(), &unknown.encode_to_vec()].concat()
}

fn lease() -> coordination::Lease {
    coordination::Lease {
        metadata: Some(meta::ObjectMeta {
            name: Some("agent-1".into()),
            namespace: Some("prow-node-leases".into()),
            generation: Some(-1),
            deletion_grace_period_seconds: Some(0),
            labels: [("a".into(), String::new())].into(),
            owner_references: vec![meta::OwnerReference {
                name: Some("o".into()),
                controller: Some(false),
                ..Default::default()
            }],
            finalizers: vec!["a/b".into(), "c/d".into()],
            managed_fields: vec![meta::ManagedFieldsEntry {
                fields_v1: Some(meta::FieldsV1 {
                    raw: Some(br#"{"f:spec":{}}"#.to_vec()),
                }),
                ..Default::default()
            }],
            ..Default::default()
        }),
        spec: Some(coordination::LeaseSpec {
            holder_identity: Some("a/b".into()),
            lease_transitions: Some(0),
            renew_time: Some(meta::MicroTime {
                seconds: Some(1_767_323_045),
                nanos: Some(7_000),
            }),
            ..Default::default()
        }),
    }
}

#[test]
fn a_lease_with_everything_odd() {
    let object = decode(&envelope(
        "coordination.k8s.io/v1",
        "Lease",
        &lease().encode_to_vec(),
    ))
    .unwrap();
    assert_eq!(
        object["spec"],
        json!({"holderIdentity": "a/b", "renewTime": "2026-01-02T03:04:05.000007Z", "leaseTransitions": 0})
    );
    let meta = &object["metadata"];
    assert_eq!(
        (&meta["generation"], &meta["deletionGracePeriodSeconds"]),
        (&json!(-1), &json!(0))
    );
    assert_eq!(
        meta["ownerReferences"],
        json!([{"name": "o", "controller": false}])
    );
    assert_eq!(
        (&meta["labels"], &meta["finalizers"]),
        (&json!({"a": ""}), &json!(["a/b", "c/d"]))
    );
    assert_eq!(meta["managedFields"][0]["fieldsV1"], json!({"f:spec": {}}));
}

#[test]
fn an_event() {
    let event = core::Event {
        involved_object: Some(core::ObjectReference {
            kind: Some("Job".into()),
            ..Default::default()
        }),
        first_timestamp: Some(meta::Time {
            seconds: Some(0),
            nanos: Some(0),
        }),
        last_timestamp: Some(meta::Time::default()),
        count: Some(3),
        r#type: Some("Warning".into()),
        source: Some(core::EventSource {
            component: Some("agent".into()),
            host: Some(String::new()),
        }),
        ..Default::default()
    };
    let object = decode(&envelope("v1", "Event", &event.encode_to_vec())).unwrap();
    let wanted = json!({"apiVersion": "v1", "kind": "Event", "involvedObject": {"kind": "Job"}, "source": {"component": "agent"},
        "firstTimestamp": "1970-01-01T00:00:00Z", "count": 3, "type": "Warning"});
    assert_eq!(object, wanted);
    let typed = by_plural("events").unwrap().strategy.decode(object).unwrap();
    assert!(typed.unknown.is_empty());
}

#[test]
fn delete_options_of_any_group() {
    let options = meta::DeleteOptions {
        grace_period_seconds: Some(0),
        orphan_dependents: Some(false),
        preconditions: Some(meta::Preconditions {
            uid: Some("u".into()),
            resource_version: None,
        }),
        dry_run: vec!["All".into()],
        ..Default::default()
    };
    let object = decode(&envelope(
        "prow.windows/v1",
        "DeleteOptions",
        &options.encode_to_vec(),
    ))
    .unwrap();
    assert_eq!(object["gracePeriodSeconds"], 0);
    assert_eq!(
        (
            &object["orphanDependents"],
            &object["preconditions"],
            &object["dryRun"]
        ),
        (&json!(false), &json!({"uid": "u"}), &json!(["All"]))
    );
}

#[test]
fn what_is_not_understood_says_so() {
    assert!(matches!(decode(b"{}"), Err(Error::Magic)));
    let pod = decode(&envelope("v1", "Pod", &[])).unwrap_err().to_string();
    assert!(pod.contains("kind \"Pod\" in \"v1\""), "{pod}");
    let bad_text = core::Namespace {
        metadata: Some(Default::default()),
        ..Default::default()
    }
    .encode_to_vec();
    let mut bad_text = envelope("v1", "Namespace", &bad_text);
    bad_text.extend_from_slice(&[0x12, 0x05, 0x0a, 0x03, 0x0a, 0x01, 0xff]); // raw again: metadata{name: ff}
    assert!(matches!(decode(&bad_text), Err(Error::Text("name"))));
}

#[test]
fn no_cut_or_flipped_byte_can_make_it_panic() {
    let body = envelope("coordination.k8s.io/v1", "Lease", &lease().encode_to_vec());
    for end in 0..body.len() {
        let _ = decode(&body[..end]);
    }
    for i in 4..body.len() {
        for bit in 0..8 {
            let mut flipped = body.clone();
            flipped[i] ^= 1 << bit;
            let _ = decode(&flipped);
        }
    }
}
