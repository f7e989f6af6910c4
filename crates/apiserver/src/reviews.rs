//! Questions about oneself, answered at once and never stored: who am I, may I do this, what may I do.

use crate::authz::{self, Ask, Decision};
use crate::call::Call;
use machinery::status::Status;
use serde_json::{Value, json};

/// Answers a review.
pub(crate) fn answer(call: &Call<'_>, mut review: Value) -> Result<Value, Status> {
    let errors = call.kind().strategy.validate_create(&review);
    if !errors.is_empty() {
        return Err(Status::invalid(call.kind(), "", errors));
    }
    let status = match call.kind().kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": {"username": call.user.name, "groups": call.user.groups}}),
        "SelfSubjectAccessReview" => access(call, &review["spec"])?,
        "SelfSubjectRulesReview" => rules(call),
        other => return Err(Status::internal(format!("nobody answers a {other}"))),
    };
    if call.kind().kind == "SelfSubjectReview" {
        review["metadata"]["creationTimestamp"] = machinery::metadata::timestamp(call.now);
    }
    review["status"] = status;
    Ok(review)
}

fn access(call: &Call<'_>, spec: &Value) -> Result<Value, Status> {
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let resource = &spec["resourceAttributes"];
    let decision = if resource.is_object() {
        let [verb, group, plural, subresource, namespace, name] =
            ["verb", "group", "resource", "subresource", "namespace", "name"]
                .map(|field| text(&resource[field]));
        let fields = resource["fieldSelector"]["rawSelector"]
            .as_str()
            .unwrap_or_default()
            .parse()?;
        let ask = Ask {
            verb: &verb,
            group: &group,
            plural: &plural,
            subresource: &subresource,
            namespace: &namespace,
            name: &name,
            fields,
        };
        authz::resource(call.inner, call.user, &ask)
    } else {
        let path = &spec["nonResourceAttributes"];
        if authz::path(call.user, &text(&path["verb"]), &text(&path["path"])) {
            Decision::Allow
        } else {
            Decision::Deny(String::new())
        }
    };
    Ok(match decision {
        Decision::Allow => json!({"allowed": true}),
        Decision::Deny(hint) if hint.is_empty() => json!({"allowed": false}),
        Decision::Deny(hint) => json!({"allowed": false, "reason": hint}),
    })
}

fn rules(call: &Call<'_>) -> Value {
    if call.user.is_master() {
        return json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        });
    }
    let oneself = [
        json!({"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]}),
        json!({"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]}),
    ];
    // What an agent may do depends on the object; that cannot be said in rules.
    let incomplete = call.user.node().is_some();
    json!({
        "resourceRules": oneself,
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz", "/version"]}],
        "incomplete": incomplete,
        "evaluationError": if incomplete { "the node authorizer decides by object" } else { "" },
    })
}
