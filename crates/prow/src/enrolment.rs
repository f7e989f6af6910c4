//! Enrolment tokens: what a host needs to join, once.
//!
//! The text `prow1.<id>.<secret>.<SHA-256 of the CA certificate>` goes to the host; the server keeps a Secret `enrol-<id>` with the
//! hash of the secret, the labels of the node, the names it may take, and when the token ends.

use api::{
    enrolment::{EXPIRES, NAMESPACE, TYPE, USED_BY},
    names::sha256_hex,
    placement::Labels,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use pki::JoinToken;
use serde_json::{Value, json};

/// The collection of tokens.
pub const SECRETS: &str = "/api/v1/namespaces/prow-system/secrets";

/// What the server keeps of a token.
pub fn secret(token: &JoinToken, labels: &Labels, name_pattern: &str, expires: jiff::Timestamp) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": TYPE,
        "metadata": {"name": format!("enrol-{}", token.bearer.id), "namespace": NAMESPACE},
        "stringData": {
            "secret-hash": token.bearer.secret_hash(),
            "labels": json!(labels).to_string(),
            "name-pattern": name_pattern,
            (EXPIRES): expires.to_string(),
        },
    })
}

/// A new token for the server whose CA certificate (DER) this is.
pub fn token(ca_der: &[u8]) -> Result<JoinToken, pki::Error> {
    JoinToken::generate(&sha256_hex(ca_der))
}

/// A token's Secret as cells: id, name pattern, labels, end, the node that used it.
pub fn row(secret: &Value) -> [String; 5] {
    let field = |name: &str| {
        let text = secret["data"][name].as_str().unwrap_or_default();
        STANDARD
            .decode(text)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .unwrap_or_default()
    };
    let name = secret["metadata"]["name"].as_str().unwrap_or_default();
    let labels = serde_json::from_str(&field("labels")).unwrap_or_default();
    [
        name.strip_prefix("enrol-").unwrap_or(name).to_owned(),
        field("name-pattern"),
        crate::output::labels(&labels),
        field(EXPIRES),
        field(USED_BY),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_never_keeps_what_the_host_is_given() {
        let token = token(b"ca").unwrap();
        let secret = secret(&token, &Labels::new(), "web*", jiff::Timestamp::UNIX_EPOCH).to_string();
        assert!(secret.contains(&token.bearer.id));
        for part in token.to_string().split('.').skip(2) {
            assert!(!secret.contains(part));
        }
    }

    #[test]
    fn a_listed_token_shows_what_it_grants() {
        let b64 = |text: &str| STANDARD.encode(text);
        let secret = json!({"metadata": {"name": "enrol-ab"}, "data": {"name-pattern": b64("web*"), "labels": b64("{\"role\":\"web\"}"), "expires": b64("2026-01-01T00:00:00Z"), "used-by": b64("web7")}});
        assert_eq!(
            row(&secret),
            ["ab", "web*", "role=web", "2026-01-01T00:00:00Z", "web7"]
        );
    }
}
