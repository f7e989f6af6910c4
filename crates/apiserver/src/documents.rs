//! Discovery, OpenAPI and version: documents made once at start.

use crate::wire::answer;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use machinery::discovery;
use machinery::kind::Kind;
use machinery::negotiate::{self, Form};
use machinery::openapi::OpenApi;
use machinery::status::Status;
use serde_json::{Value, json};
use std::collections::HashMap;

/// See the module.
pub(crate) struct Documents {
    /// Plain JSON by path.
    plain: HashMap<String, Bytes>,
    /// The aggregated forms of `/api` and `/apis`.
    aggregated: HashMap<&'static str, Bytes>,
    openapi: OpenApi,
}

impl Documents {
    pub(crate) fn new(kinds: &[Kind], build: &str) -> Self {
        let mut plain = HashMap::new();
        let mut put = |path: String, value: Value| plain.insert(path, Bytes::from(value.to_string()));
        put("/api".into(), discovery::api_versions(""));
        put("/apis".into(), discovery::group_list(kinds));
        for kind in kinds {
            let (group, version) = (&kind.group, &kind.version);
            let base = if group.is_empty() {
                "/api".to_owned()
            } else {
                format!("/apis/{group}")
            };
            if let Some(list) = discovery::resource_list(kinds, group, version) {
                put(format!("{base}/{version}"), list);
            }
            if let Some(described) = (!group.is_empty())
                .then(|| discovery::group(kinds, group))
                .flatten()
            {
                put(base, described);
            }
        }
        put("/version".into(), version(build));
        let openapi = OpenApi::new(kinds);
        put("/openapi/v3".into(), openapi.index());
        let paths: Vec<_> = plain.keys().cloned().collect();
        plain.insert(
            "/".into(),
            Bytes::from(json!({"paths": sorted(paths)}).to_string()),
        );
        let aggregated = [
            ("/api", discovery::aggregated(kinds, true)),
            ("/apis", discovery::aggregated(kinds, false)),
        ];
        Self {
            plain,
            aggregated: aggregated
                .map(|(path, value)| (path, Bytes::from(value.to_string())))
                .into(),
            openapi,
        }
    }

    /// The document at a path; `None` if there is none.
    pub(crate) fn get(&self, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
        let path = if path.len() > 1 {
            path.trim_end_matches('/')
        } else {
            path
        };
        if let Some(document) = path.strip_prefix("/openapi/v3/") {
            let document = self.openapi.document(document)?;
            let tag = format!("\"{}\"", document.hash);
            if headers
                .get(header::IF_NONE_MATCH)
                .is_some_and(|seen| seen.as_bytes() == tag.as_bytes())
            {
                let mut response = Response::new(Body::empty());
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                return Some(response);
            }
            let mut response = answer::json(StatusCode::OK, document.body.clone());
            if let Ok(tag) = HeaderValue::from_str(&tag) {
                response.headers_mut().insert(header::ETAG, tag);
            }
            return Some(response);
        }
        let plain = self.plain.get(path)?;
        let accept = headers
            .get(header::ACCEPT)
            .and_then(|accept| accept.to_str().ok());
        let forms: &[Form] = if self.aggregated.contains_key(path) {
            &[Form::Discovery]
        } else {
            &[]
        };
        let accept = match negotiate::accept(accept, forms) {
            Ok(accept) => accept,
            Err(status) => return Some(answer::failure(&status)),
        };
        let body = match accept.form {
            Form::Discovery => self.aggregated.get(path)?,
            _ => plain,
        };
        Some(answer::rendered(StatusCode::OK, accept, body.clone()))
    }

    /// What there is at an unknown path.
    pub(crate) fn nothing() -> Response<Body> {
        answer::failure(&Status::no_such_path())
    }
}

fn sorted(mut paths: Vec<String>) -> Vec<String> {
    paths.extend(["/healthz", "/livez", "/metrics", "/readyz"].map(String::from));
    paths.sort();
    paths
}

/// The version in Kubernetes' form: clients decide by `gitVersion` what they may ask for.
fn version(build: &str) -> Value {
    json!({
        "major": "1", "minor": "37", "gitVersion": format!("v1.37.0+prow-{build}"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        }),
    })
}
