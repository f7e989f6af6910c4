use super::*;
use crate::{core_kinds::by_plural, typed::tests_support::widget};
use api::field::{Errors, Path};

#[test]
fn messages_in_kubernetes_words() {
    let (ours, core) = (widget(), by_plural("secrets").unwrap());
    let user = Identity {
        name: "ann".into(),
        groups: Vec::new(),
    };
    for (status, code, message) in [
        (
            Status::not_found(&ours, "x"),
            404,
            "widgets.test.example \"x\" not found",
        ),
        (Status::not_found(&core, "x"), 404, "secrets \"x\" not found"),
        (
            Status::already_exists(&ours, "x"),
            409,
            "widgets.test.example \"x\" already exists",
        ),
        (
            Status::modified(&ours, "x"),
            409,
            "Operation cannot be fulfilled on widgets.test.example \"x\": the object has been modified; please apply your changes to the latest version and try again",
        ),
        (
            Status::not_allowed(&ours, "x", &user, "get", "widgets/status", "ops", ""),
            403,
            "widgets.test.example \"x\" is forbidden: User \"ann\" cannot get resource \"widgets/status\" in API group \"test.example\" in the namespace \"ops\"",
        ),
        (
            Status::not_allowed(&core, "", &user, "list", "secrets", "", "ask an admin"),
            403,
            "secrets is forbidden: User \"ann\" cannot list resource \"secrets\" in API group \"\" at the cluster scope: ask an admin",
        ),
        (
            Status::strict(
                &ours,
                &[
                    "unknown field \"spec.x\"".into(),
                    "duplicate field \"spec.y\"".into(),
                ],
            ),
            400,
            "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.x\", duplicate field \"spec.y\"",
        ),
        (Status::too_old(3, 9), 410, "too old resource version: 3 (9)"),
        (Status::internal("disk"), 500, "Internal error occurred: disk"),
    ] {
        assert_eq!((status.code(), status.to_string().as_str()), (code, message));
    }
}

#[test]
fn a_body_as_clients_read_it() {
    let body = Status::not_found(&widget(), "x").to_value();
    let wanted = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "widgets.test.example \"x\" not found", "reason": "NotFound",
        "details": {"name": "x", "group": "test.example", "kind": "widgets"}, "code": 404});
    assert_eq!(body, wanted);
    assert!(Status::bad_request("no").to_value().get("details").is_none());
    assert_eq!(
        Status::timeout("slow", 3).to_value()["details"]["retryAfterSeconds"],
        3
    );
}

#[test]
fn every_status_is_one_that_kubernetes_types_can_read() {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status as Typed;
    let mut errors = Errors::new();
    errors.required(&Path::new("spec"), "x");
    for status in [
        Status::invalid(&widget(), "x", errors),
        Status::future_version(9, 3),
        Status::too_large(7),
    ] {
        let typed: Typed = serde_json::from_value(status.to_value()).unwrap();
        assert_eq!(typed.code, Some(status.code().into()));
    }
    let typed: Typed = serde_json::from_value(deleted(&widget(), "x", "u")).unwrap();
    assert_eq!(
        (typed.status.as_deref(), typed.details.unwrap().uid.as_deref()),
        (Some("Success"), Some("u"))
    );
}

#[test]
fn an_invalid_object_has_a_cause_for_each_mistake() {
    let mut errors = Errors::new();
    errors.required(&Path::new("spec").child("title"), "name it");
    let one = Status::invalid(&widget(), "x", errors.clone());
    assert_eq!(
        one.message,
        "Widget.test.example \"x\" is invalid: spec.title: Required value: name it"
    );
    errors.duplicate(&Path::new("spec").child("steps").index(1).child("name"), "a");
    let two = Status::invalid(&widget(), "x", errors).to_value();
    assert_eq!(two["code"], 422);
    assert_eq!(two["details"]["kind"], "Widget");
    assert!(
        two["message"]
            .as_str()
            .unwrap()
            .contains("is invalid: [spec.title: Required value: name it, spec.steps[1].name: Duplicate")
    );
    assert_eq!(
        two["details"]["causes"][1],
        json!({"reason": "FieldValueDuplicate", "message": "Duplicate value: \"a\"", "field": "spec.steps[1].name"})
    );
}

#[test]
fn a_terminating_namespace_is_machine_readable() {
    let status = Status::namespace_terminating(&widget(), "x", "ops");
    assert_eq!(
        (status.code(), status.details.causes[0].reason.as_str()),
        (403, "NamespaceTerminating")
    );
    assert!(
        status
            .message
            .contains("unable to create new content in namespace ops because it is being terminated")
    );
}
