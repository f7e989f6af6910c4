//! How a host gets in: a one-time token, a signing request, a certificate, a Node.
//!
//! A token is the Secret `enrol-<id>` of type `prow.windows/enrolment-token` in `prow-system`, with the keys
//! `secret-hash` (SHA-256 of the secret, hex), `expires` (RFC 3339, optional), `labels` (a JSON object, optional) and
//! `name-pattern` (`*` stands for any characters, optional). Its bearer may create one CertificateSigningRequest; it is
//! signed at once, the token is marked used (`used-by`, the node's name, and `used-at`), and the Node is made with the token's
//! labels. A controller collects used and expired ones.
//! The bearer of a used token may still read its own request: an agent whose answer was lost finds its certificate there.
//! An agent renews by a request for its own name, as long as its Node is there.

use crate::call::{Call, Lost};
use crate::inner::Inner;
use crate::verbs::create;
use api::enrolment;
use api::field::{Errors, Path};
use api::identity::{AUTHENTICATED, BOOTSTRAPPERS, Identity};
use base64::{Engine, prelude::BASE64_STANDARD};
use machinery::metadata;
use machinery::status::Status;
use pki::request::NodeRequest;
use serde_json::{Value, json};
use std::sync::Arc;
use store::Guard;

/// Signs the client certificates of agents.
pub const SIGNER: &str = "prow.windows/node-client";
const USER_PREFIX: &str = "system:bootstrap:";

/// A valid token.
struct Token {
    object: Arc<crate::object::Object>,
    value: Value,
}

impl Token {
    /// Finds a token that has not expired.
    fn find(inner: &Inner, id: &str) -> Option<Self> {
        let object = inner
            .cache
            .plural("", "secrets")?
            .get(enrolment::NAMESPACE, &format!("enrol-{id}"))?;
        let value = object.value().ok()?;
        let token = Self { object, value };
        let expired = match token.text(enrolment::EXPIRES) {
            None => false,
            Some(text) => text
                .trim()
                .parse::<jiff::Timestamp>()
                .map_or(true, |at| at <= inner.clock.now()),
        };
        (token.value["type"] == enrolment::TYPE && !token.object.deleting && !expired).then_some(token)
    }

    fn text(&self, key: &str) -> Option<String> {
        let bytes = BASE64_STANDARD.decode(self.value["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    }
}

/// Who bears a token; `None` if it proves nothing.
pub(crate) fn bearer(inner: &Inner, text: &str) -> Option<Identity> {
    let bearer: pki::Bearer = text.parse().ok()?;
    let token = Token::find(inner, &bearer.id)?;
    bearer
        .matches(token.text("secret-hash")?.trim())
        .then(|| Identity {
            name: format!("{USER_PREFIX}{}", bearer.id),
            groups: vec![BOOTSTRAPPERS.into(), AUTHENTICATED.into()],
        })
}

/// Signs a new request of a token's bearer or of an agent; leaves all other objects alone.
pub(crate) async fn admit(call: &Call<'_>, object: &mut Value) -> Result<(), Status> {
    let kind = call.kind();
    if kind.plural != "certificatesigningrequests" || object["spec"]["signerName"] != SIGNER {
        return if kind.plural == "certificatesigningrequests"
            && call.user.groups.iter().any(|g| g == BOOTSTRAPPERS)
        {
            Err(Status::forbidden(
                kind,
                "",
                format!("the bearer of an enrolment token asks the signer {SIGNER} only"),
            ))
        } else {
            Ok(())
        };
    }
    let request = parse(call, object)?;
    let refused = |why: String| Err(Status::forbidden(kind, "", why));
    if let Some(me) = call.user.node() {
        if request.name != me {
            return refused(format!(
                "the agent of node {me} asks for a certificate of node {}",
                request.name
            ));
        }
        if node(call, me).is_none() {
            return refused(format!(
                "node {me} was deleted; enrol the host again with a new token"
            ));
        }
    } else if let Some(id) = call.user.name.strip_prefix(USER_PREFIX) {
        enrol(call, id, &request).await?;
    } else {
        return Ok(()); // somebody else's request waits for approval
    }
    let Some(authority) = &call.inner.options.authority else {
        return Err(Status::unavailable(
            "this server signs no certificates: it was started without an authority",
            0,
        ));
    };
    let certificate = authority.node(&request).map_err(Status::internal)?;
    let now = metadata::timestamp(call.now);
    object["status"] = json!({
        "conditions": [{"type": "Approved", "status": "True", "reason": "Enrolment", "message": "issued at once to the bearer of a token or to the node itself",
            "lastUpdateTime": now, "lastTransitionTime": now}],
        "certificate": BASE64_STANDARD.encode(certificate),
    });
    Ok(())
}

fn parse(call: &Call<'_>, object: &Value) -> Result<NodeRequest, Status> {
    let invalid = |why: String| {
        let mut errors = Errors::new();
        errors.invalid(&Path::new("spec").child("request"), "", why);
        Status::invalid(
            call.kind(),
            object["metadata"]["name"].as_str().unwrap_or_default(),
            errors,
        )
    };
    let pem = object["spec"]["request"]
        .as_str()
        .and_then(|text| BASE64_STANDARD.decode(text).ok());
    let pem = pem
        .and_then(|pem| String::from_utf8(pem).ok())
        .ok_or_else(|| invalid("must be base64 of a PEM text".into()))?;
    let request = NodeRequest::parse(&pem).map_err(|error| invalid(error.to_string()))?;
    metadata::dns_subdomain(&request.name)
        .map_err(|why| invalid(format!("node name {}: {why}", request.name)))?;
    Ok(request)
}

fn node(call: &Call<'_>, name: &str) -> Option<Arc<crate::object::Object>> {
    call.inner.cache.plural(api::GROUP, "nodes")?.get("", name)
}

/// Uses a token up and makes the Node.
async fn enrol(call: &Call<'_>, id: &str, request: &NodeRequest) -> Result<(), Status> {
    let forbidden = |why: String| Status::forbidden(call.kind(), "", why);
    let token = Token::find(call.inner, id).ok_or_else(Status::unauthorized)?;
    if let Some(by) = token.text(enrolment::USED_BY) {
        return Err(forbidden(format!(
            "the token was used up by node {by}; make a new one: prow node token create"
        )));
    }
    let pattern = token
        .text("name-pattern")
        .filter(|pattern| !pattern.trim().is_empty());
    if let Some(pattern) = pattern.filter(|pattern| !glob(pattern.trim(), &request.name)) {
        return Err(forbidden(format!(
            "the token is for nodes named {}, not for {}",
            pattern.trim(),
            request.name
        )));
    }
    if node(call, &request.name).is_some() {
        return Err(forbidden(taken(&request.name)));
    }
    let labels: Value = match token.text("labels") {
        None => json!({}),
        Some(text) => serde_json::from_str(&text)
            .map_err(|error| forbidden(format!("the token's labels are no JSON object: {error}")))?,
    };
    if call.dry_run()? {
        return Ok(());
    }
    use_up(call, token, &request.name).await?;
    let (Some(nodes), part) = (
        call.inner.cache.plural(api::GROUP, "nodes"),
        Identity::part("enrolment"),
    ) else {
        return Err(Status::internal("the kind Node is not served"));
    };
    let call = Call {
        cache: nodes,
        user: &part,
        namespace: "",
        name: "",
        subresource: "",
        ..*call
    };
    let object = json!({"apiVersion": nodes.shape.kind.api_version(), "kind": "Node",
        "metadata": {"name": request.name, "labels": labels}, "spec": {}});
    let (object, _) = crate::verbs::admit::typed(&call, object)?;
    Box::pin(create::new_object(&call, object, &mut Vec::new()))
        .await
        .map_err(|status| match status.code() {
            409 => forbidden(taken(&request.name)),
            _ => status,
        })?;
    Ok(())
}

fn taken(name: &str) -> String {
    format!(
        "node {name} exists already; give the host another name (--name), or delete that Node first if the host is gone"
    )
}

/// Marks the token used: of two hosts with one token, one wins.
async fn use_up(call: &Call<'_>, token: Token, node: &str) -> Result<(), Status> {
    let Some(secrets) = call.inner.cache.plural("", "secrets") else {
        return Err(Status::unauthorized());
    };
    let name = token.object.name.clone();
    let call = Call {
        cache: secrets,
        namespace: enrolment::NAMESPACE,
        name: &name,
        subresource: "",
        ..*call
    };
    let mut value = token.value;
    for (key, text) in [
        (enrolment::USED_BY, node),
        (enrolment::USED_AT, &call.now.to_string()),
    ] {
        value["data"][key] = BASE64_STANDARD.encode(text).into();
    }
    let stored = crate::verbs::admit::stored(&call, &value)?;
    match call
        .commit(&name, Some(stored), Guard::Revision(token.object.revision))
        .await?
    {
        Ok(_) => Ok(()),
        Err(Lost(_)) => Err(Status::forbidden(
            call.kind(),
            &name,
            "the token was used or changed by somebody else at this moment",
        )),
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters.
fn glob(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => {
            let Some(tail) = name.strip_prefix(start) else {
                return false;
            };
            tail.char_indices()
                .map(|(i, _)| i)
                .chain([tail.len()])
                .any(|i| glob(rest, &tail[i..]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::glob;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("*", "web1"),
            ("web*", "web"),
            ("web-*-eu", "web-3-eu"),
            ("web1", "web1"),
        ] {
            assert!(glob(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("web*", "db1"),
            ("web-*-eu", "web-3-us"),
            ("web", "web1"),
            ("", "x"),
        ] {
            assert!(!glob(pattern, name), "{pattern} {name}");
        }
    }
}
