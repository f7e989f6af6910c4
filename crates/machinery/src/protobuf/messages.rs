//! The messages of the kinds kubectl writes in protobuf, as tables: field number, JSON name, type. The numbers are those
//! of Kubernetes' `generated.proto` files.

use super::wire::{Message, Type::*};

/// The message of a kind; `None` if the kind is not served in protobuf.
pub(super) fn message(api_version: &str, kind: &str) -> Option<&'static Message> {
    // Clients send delete options in the group of whatever they delete.
    if kind == "DeleteOptions" {
        return Some(&DELETE_OPTIONS);
    }
    let all: [(&str, &str, &'static Message); 13] = [
        ("v1", "Namespace", &NAMESPACE),
        ("v1", "Secret", &SECRET),
        ("v1", "ConfigMap", &CONFIG_MAP),
        ("v1", "ServiceAccount", &SERVICE_ACCOUNT),
        ("v1", "ResourceQuota", &RESOURCE_QUOTA),
        ("v1", "Event", &EVENT),
        ("v1", "Status", &STATUS),
        ("coordination.k8s.io/v1", "Lease", &LEASE),
        (
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            &CERTIFICATE_SIGNING_REQUEST,
        ),
        ("scheduling.k8s.io/v1", "PriorityClass", &PRIORITY_CLASS),
        (
            "authentication.k8s.io/v1",
            "SelfSubjectReview",
            &SELF_SUBJECT_REVIEW,
        ),
        (
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            &SELF_SUBJECT_ACCESS_REVIEW,
        ),
        (
            "authorization.k8s.io/v1",
            "SelfSubjectRulesReview",
            &SELF_SUBJECT_RULES_REVIEW,
        ),
    ];
    all.iter()
        .find(|(v, k, _)| *v == api_version && *k == kind)
        .map(|(.., message)| *message)
}

static OBJECT_META: Message = Message(&[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (4, "selfLink", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Number),
    (8, "creationTimestamp", Time),
    (9, "deletionTimestamp", Time),
    (10, "deletionGracePeriodSeconds", Always(&Number)),
    (11, "labels", Map(&Text)),
    (12, "annotations", Map(&Text)),
    (13, "ownerReferences", List(&Object(&OWNER_REFERENCE))),
    (14, "finalizers", List(&Text)),
    (17, "managedFields", List(&Object(&MANAGED_FIELDS_ENTRY))),
]);

static OWNER_REFERENCE: Message = Message(&[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", Always(&Flag)),
    (7, "blockOwnerDeletion", Always(&Flag)),
]);

static MANAGED_FIELDS_ENTRY: Message = Message(&[
    (1, "manager", Text),
    (2, "operation", Text),
    (3, "apiVersion", Text),
    (4, "time", Time),
    (6, "fieldsType", Text),
    (7, "fieldsV1", Json),
    (8, "subresource", Text),
]);

static DELETE_OPTIONS: Message = Message(&[
    (1, "gracePeriodSeconds", Always(&Number)),
    (2, "preconditions", Object(&PRECONDITIONS)),
    (3, "orphanDependents", Always(&Flag)),
    (4, "propagationPolicy", Always(&Text)),
    (5, "dryRun", List(&Text)),
    (
        6,
        "ignoreStoreReadErrorWithClusterBreakingPotential",
        Always(&Flag),
    ),
]);

static PRECONDITIONS: Message = Message(&[(1, "uid", Always(&Text)), (2, "resourceVersion", Always(&Text))]);

static FIELD_SELECTOR_REQUIREMENT: Message = Message(&[
    (1, "key", Text),
    (2, "operator", Text),
    (3, "values", List(&Text)),
]);

static LABEL_SELECTOR_REQUIREMENT: Message = Message(&[
    (1, "key", Text),
    (2, "operator", Text),
    (3, "values", List(&Text)),
]);

static NAMESPACE: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "spec", Object(&NAMESPACE_SPEC)),
    (3, "status", Object(&NAMESPACE_STATUS)),
]);

static NAMESPACE_SPEC: Message = Message(&[(1, "finalizers", List(&Text))]);

static NAMESPACE_STATUS: Message = Message(&[
    (1, "phase", Text),
    (2, "conditions", List(&Object(&NAMESPACE_CONDITION))),
]);

static NAMESPACE_CONDITION: Message = Message(&[
    (1, "type", Text),
    (2, "status", Text),
    (4, "lastTransitionTime", Time),
    (5, "reason", Text),
    (6, "message", Text),
]);

static SECRET: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "data", Map(&Bytes)),
    (3, "type", Text),
    (4, "stringData", Map(&Text)),
    (5, "immutable", Always(&Flag)),
]);

static CONFIG_MAP: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "data", Map(&Text)),
    (3, "binaryData", Map(&Bytes)),
    (4, "immutable", Always(&Flag)),
]);

static SERVICE_ACCOUNT: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "secrets", List(&Object(&OBJECT_REFERENCE))),
    (3, "imagePullSecrets", List(&Object(&LOCAL_OBJECT_REFERENCE))),
    (4, "automountServiceAccountToken", Always(&Flag)),
]);

static OBJECT_REFERENCE: Message = Message(&[
    (1, "kind", Text),
    (2, "namespace", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "resourceVersion", Text),
    (7, "fieldPath", Text),
]);

static LOCAL_OBJECT_REFERENCE: Message = Message(&[(1, "name", Text)]);

static RESOURCE_QUOTA: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "spec", Object(&RESOURCE_QUOTA_SPEC)),
    (3, "status", Object(&RESOURCE_QUOTA_STATUS)),
]);

static RESOURCE_QUOTA_SPEC: Message = Message(&[
    (1, "hard", Map(&Quantity)),
    (2, "scopes", List(&Text)),
    (3, "scopeSelector", Object(&SCOPE_SELECTOR)),
]);

static RESOURCE_QUOTA_STATUS: Message = Message(&[(1, "hard", Map(&Quantity)), (2, "used", Map(&Quantity))]);

static SCOPE_SELECTOR: Message = Message(&[(
    1,
    "matchExpressions",
    List(&Object(&SCOPED_RESOURCE_SELECTOR_REQUIREMENT)),
)]);

static SCOPED_RESOURCE_SELECTOR_REQUIREMENT: Message = Message(&[
    (1, "scopeName", Text),
    (2, "operator", Text),
    (3, "values", List(&Text)),
]);

static EVENT: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "involvedObject", Object(&OBJECT_REFERENCE)),
    (3, "reason", Text),
    (4, "message", Text),
    (5, "source", Object(&EVENT_SOURCE)),
    (6, "firstTimestamp", Time),
    (7, "lastTimestamp", Time),
    (8, "count", Number),
    (9, "type", Text),
    (10, "eventTime", MicroTime),
    (11, "series", Object(&EVENT_SERIES)),
    (12, "action", Text),
    (13, "related", Object(&OBJECT_REFERENCE)),
    (14, "reportingComponent", Text),
    (15, "reportingInstance", Text),
]);

static EVENT_SOURCE: Message = Message(&[(1, "component", Text), (2, "host", Text)]);

static EVENT_SERIES: Message = Message(&[(1, "count", Number), (2, "lastObservedTime", MicroTime)]);

static LEASE: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "spec", Object(&LEASE_SPEC)),
]);

static LEASE_SPEC: Message = Message(&[
    (1, "holderIdentity", Always(&Text)),
    (2, "leaseDurationSeconds", Always(&Number)),
    (3, "acquireTime", MicroTime),
    (4, "renewTime", MicroTime),
    (5, "leaseTransitions", Always(&Number)),
    (6, "strategy", Always(&Text)),
    (7, "preferredHolder", Always(&Text)),
]);

static CERTIFICATE_SIGNING_REQUEST: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "spec", Object(&CERTIFICATE_SIGNING_REQUEST_SPEC)),
    (3, "status", Object(&CERTIFICATE_SIGNING_REQUEST_STATUS)),
]);

static CERTIFICATE_SIGNING_REQUEST_SPEC: Message = Message(&[
    (1, "request", Bytes),
    (2, "username", Text),
    (3, "uid", Text),
    (4, "groups", List(&Text)),
    (5, "usages", List(&Text)),
    (6, "extra", Map(&Texts)),
    (7, "signerName", Text),
    (8, "expirationSeconds", Always(&Number)),
]);

static CERTIFICATE_SIGNING_REQUEST_STATUS: Message = Message(&[
    (
        1,
        "conditions",
        List(&Object(&CERTIFICATE_SIGNING_REQUEST_CONDITION)),
    ),
    (2, "certificate", Bytes),
]);

static CERTIFICATE_SIGNING_REQUEST_CONDITION: Message = Message(&[
    (1, "type", Text),
    (2, "reason", Text),
    (3, "message", Text),
    (4, "lastUpdateTime", Time),
    (5, "lastTransitionTime", Time),
    (6, "status", Text),
]);

static PRIORITY_CLASS: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "value", Always(&Number)),
    (3, "globalDefault", Flag),
    (4, "description", Text),
    (5, "preemptionPolicy", Always(&Text)),
]);

static SELF_SUBJECT_REVIEW: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "status", Object(&SELF_SUBJECT_REVIEW_STATUS)),
]);

static SELF_SUBJECT_REVIEW_STATUS: Message = Message(&[(1, "userInfo", Object(&USER_INFO))]);

static USER_INFO: Message = Message(&[
    (1, "username", Text),
    (2, "uid", Text),
    (3, "groups", List(&Text)),
    (4, "extra", Map(&Texts)),
]);

static SELF_SUBJECT_ACCESS_REVIEW: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "spec", Object(&SELF_SUBJECT_ACCESS_REVIEW_SPEC)),
    (3, "status", Object(&SUBJECT_ACCESS_REVIEW_STATUS)),
]);

static SELF_SUBJECT_ACCESS_REVIEW_SPEC: Message = Message(&[
    (1, "resourceAttributes", Object(&RESOURCE_ATTRIBUTES)),
    (2, "nonResourceAttributes", Object(&NON_RESOURCE_ATTRIBUTES)),
]);

static SUBJECT_ACCESS_REVIEW_STATUS: Message = Message(&[
    (1, "allowed", Flag),
    (2, "reason", Text),
    (3, "evaluationError", Text),
    (4, "denied", Flag),
]);

static RESOURCE_ATTRIBUTES: Message = Message(&[
    (1, "namespace", Text),
    (2, "verb", Text),
    (3, "group", Text),
    (4, "version", Text),
    (5, "resource", Text),
    (6, "subresource", Text),
    (7, "name", Text),
    (8, "fieldSelector", Object(&FIELD_SELECTOR_ATTRIBUTES)),
    (9, "labelSelector", Object(&LABEL_SELECTOR_ATTRIBUTES)),
]);

static NON_RESOURCE_ATTRIBUTES: Message = Message(&[(1, "path", Text), (2, "verb", Text)]);

static FIELD_SELECTOR_ATTRIBUTES: Message = Message(&[
    (1, "rawSelector", Text),
    (2, "requirements", List(&Object(&FIELD_SELECTOR_REQUIREMENT))),
]);

static LABEL_SELECTOR_ATTRIBUTES: Message = Message(&[
    (1, "rawSelector", Text),
    (2, "requirements", List(&Object(&LABEL_SELECTOR_REQUIREMENT))),
]);

static SELF_SUBJECT_RULES_REVIEW: Message = Message(&[
    (1, "metadata", Object(&OBJECT_META)),
    (2, "spec", Object(&SELF_SUBJECT_RULES_REVIEW_SPEC)),
    (3, "status", Object(&SUBJECT_RULES_REVIEW_STATUS)),
]);

static SELF_SUBJECT_RULES_REVIEW_SPEC: Message = Message(&[(1, "namespace", Text)]);

static SUBJECT_RULES_REVIEW_STATUS: Message = Message(&[
    (1, "resourceRules", List(&Object(&RESOURCE_RULE))),
    (2, "nonResourceRules", List(&Object(&NON_RESOURCE_RULE))),
    (3, "incomplete", Flag),
    (4, "evaluationError", Text),
]);

static RESOURCE_RULE: Message = Message(&[
    (1, "verbs", List(&Text)),
    (2, "apiGroups", List(&Text)),
    (3, "resources", List(&Text)),
    (4, "resourceNames", List(&Text)),
]);

static NON_RESOURCE_RULE: Message =
    Message(&[(1, "verbs", List(&Text)), (2, "nonResourceURLs", List(&Text))]);

static STATUS: Message = Message(&[
    (2, "status", Text),
    (3, "message", Text),
    (4, "reason", Text),
    (5, "details", Object(&STATUS_DETAILS)),
    (6, "code", Number),
]);

static STATUS_DETAILS: Message = Message(&[
    (1, "name", Text),
    (2, "group", Text),
    (3, "kind", Text),
    (4, "causes", List(&Object(&STATUS_CAUSE))),
    (5, "retryAfterSeconds", Number),
    (6, "uid", Text),
]);

static STATUS_CAUSE: Message = Message(&[(1, "reason", Text), (2, "message", Text), (3, "field", Text)]);
