//! Fetching Secrets and ConfigMaps when a step is about to run.
//!
//! What is missing is looked for again for 30 s: it may be on its way, or the server may not yet have seen the Task that gives access to
//! it. Values never go into a log: answers are read here and not by a client that would quote them in an error.

use super::{connection::read, retry::Backoff};
use crate::local::{FromAgent, Value, Values, Wanted, WantedKind};
use base64::{Engine, prelude::BASE64_STANDARD};
use kube::client::Body;
use serde::Deserialize;
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// How long is looked for what is missing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Kubernetes' own limit of a Secret or ConfigMap is 1 MiB; base64 and names come on top.
const LIMIT: usize = 4 << 20;

/// Data of a Secret (base64) or of a ConfigMap (text, and base64 for bytes).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
    #[serde(default)]
    binary_data: Option<BTreeMap<String, String>>,
}

/// Why one is not there.
struct Unavailable(String);

/// Looks up all that a step needs; the answer to question `id`.
pub async fn answer(client: kube::Client, namespace: String, id: u64, wanted: Vec<Wanted>) -> FromAgent {
    let end = Instant::now() + PATIENCE;
    let (mut secrets, mut config_maps) = (Values::new(), Values::new());
    for one in wanted {
        let mut backoff = Backoff::new(Duration::from_secs(2));
        loop {
            let missing = match fetch(&client, &namespace, &one).await {
                Ok(Some(data)) => {
                    let absent = one.keys.iter().find(|key| !data.contains_key(*key));
                    match absent {
                        Some(key) if !one.optional => format!("has no key {key:?}"),
                        _ => {
                            let values = match one.kind {
                                WantedKind::Secret => &mut secrets,
                                WantedKind::ConfigMap => &mut config_maps,
                            };
                            values.insert(one.name.clone(), data);
                            break;
                        }
                    }
                }
                Ok(None) if one.optional => break,
                Ok(None) => "does not exist".to_owned(),
                Err(Unavailable(why)) => why,
            };
            if Instant::now() >= end {
                let (kind, reason) = match one.kind {
                    WantedKind::Secret => ("Secret", "SecretUnavailable"),
                    WantedKind::ConfigMap => ("ConfigMap", "ConfigMapUnavailable"),
                };
                return FromAgent::Missing {
                    id,
                    reason: reason.to_owned(),
                    message: format!("{kind} {namespace}/{} {missing}", one.name),
                };
            }
            backoff.wait().await;
        }
    }
    FromAgent::Values {
        id,
        secrets,
        config_maps,
    }
}

async fn fetch(
    client: &kube::Client,
    namespace: &str,
    wanted: &Wanted,
) -> Result<Option<BTreeMap<String, Value>>, Unavailable> {
    let plural = match wanted.kind {
        WantedKind::Secret => "secrets",
        WantedKind::ConfigMap => "configmaps",
    };
    let failed = |what: &dyn std::fmt::Display| Unavailable(format!("cannot be read: {what}"));
    let request = http::Request::get(format!("/api/v1/namespaces/{namespace}/{plural}/{}", wanted.name))
        .body(Body::empty())
        .map_err(|e| failed(&e))?;
    let answer = async {
        let response = client.send(request).await?;
        let status = response.status();
        Ok::<_, kube::Error>((status, read(response, LIMIT).await?))
    };
    let (status, mut bytes) = tokio::time::timeout(Duration::from_secs(10), answer)
        .await
        .map_err(|_| failed(&"no answer in 10 s"))?
        .map_err(|e| failed(&super::enrol::chain(&e)))?;
    match status.as_u16() {
        200 => {}
        404 => return Ok(None),
        403 => return Err(failed(&"the server does not let this node read it (403)")),
        code => return Err(failed(&format_args!("the server answered {code}"))),
    }
    let object: Result<Object, _> = serde_json::from_slice(&bytes);
    bytes.fill(0);
    // The parser's error would quote the value it stumbled over.
    let object = object.map_err(|_| failed(&"the answer is not one"))?;
    let (encoded, plain) = match wanted.kind {
        WantedKind::Secret => (object.data, None),
        WantedKind::ConfigMap => (object.binary_data, object.data),
    };
    let plain = plain.unwrap_or_default().into_iter();
    let mut data: BTreeMap<_, _> = plain
        .map(|(key, text)| (key, Value::new(text.into_bytes())))
        .collect();
    for (key, text) in encoded.unwrap_or_default() {
        let bytes = BASE64_STANDARD
            .decode(text)
            .map_err(|_| failed(&format_args!("key {key:?} is not base64")))?;
        data.insert(key, Value::new(bytes));
    }
    Ok(Some(data))
}
