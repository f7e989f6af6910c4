//! The administrator's kubeconfig, written at each start that finds it missing, out of date or near its end.

use super::private;
use anyhow::Result;
use api::identity::MASTERS;
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use kube::config::Kubeconfig;
use pki::{Authority, Leaf};
use serde_json::{Value, json};
use std::path::Path;

const LIFE: SignedDuration = SignedDuration::from_hours(24 * 365);

/// Writes `path` unless what is there still serves.
pub fn write(path: &Path, url: &str, authority: &Authority, now: Timestamp) -> Result<()> {
    let ca = STANDARD.encode(authority.certificate_pem());
    if is_good(path, url, &ca, now) {
        return Ok(());
    }
    let user = authority.user("admin", &[MASTERS.to_owned()], LIFE)?;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "prow",
        "clusters": [{"name": "prow", "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": "admin", "user": {
            "client-certificate-data": STANDARD.encode(user.chain_pem()),
            "client-key-data": STANDARD.encode(user.key_pem()),
        }}],
        "contexts": [{"name": "prow", "context": {"cluster": "prow", "user": "admin", "namespace": "default"}}],
    });
    private::file(path, crate::output::yaml(&config)?.as_bytes())
}

fn is_good(path: &Path, url: &str, ca: &str, now: Timestamp) -> bool {
    let Ok(config) = Kubeconfig::read_from(path) else {
        return false;
    };
    let Ok(config) = serde_json::to_value(config) else {
        return false;
    };
    let cluster = &config["clusters"][0]["cluster"];
    let certificate = &config["users"][0]["user"]["client-certificate-data"];
    cluster["server"] == url
        && cluster["certificate-authority-data"] == ca
        && leaf(certificate).is_some_and(|l| !l.should_renew(now))
}

fn leaf(data: &Value) -> Option<Leaf> {
    let pem = String::from_utf8(STANDARD.decode(data.as_str()?).ok()?).ok()?;
    Leaf::parse(&pki::tls::certificate_from_pem(&pem).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::clock::{Clock, ManualClock};
    use std::sync::Arc;

    #[test]
    fn it_is_kept_while_it_serves_and_renewed_when_it_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let authority = Authority::open(&dir.path().join("pki"), Arc::new(clock.clone())).unwrap();
        let write = |url: &str| {
            super::write(&path, url, &authority, clock.now()).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        let first = write("https://127.0.0.1:1");
        assert_eq!(write("https://127.0.0.1:1"), first);
        let moved = write("https://127.0.0.1:2");
        assert!(moved.contains("https://127.0.0.1:2"));
        clock.advance(SignedDuration::from_hours(24 * 300));
        assert_ne!(write("https://127.0.0.1:2"), moved);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
    }
}
