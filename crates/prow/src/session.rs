//! The connection to a server: which one, as whom, and plain requests with kubectl's manners (warnings on stderr, refusals in the
//! server's own words).

use crate::{
    cli::Global,
    outcome::Error,
    state,
    terminal::{self, Tone},
};
use anyhow::{Context, Result};
use http::{Method, Request, Response, header};
use http_body_util::BodyExt;
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A server to talk to.
#[derive(Clone)]
pub struct Session {
    /// For typed requests.
    pub client: Client,
    /// The namespace of requests that name none.
    pub namespace: String,
    /// Where the server is, for messages.
    pub server: String,
    /// The server's CA certificate in DER, where the kubeconfig has one.
    pub ca: Option<Vec<u8>>,
}

/// `application/json`.
pub const JSON: &str = "application/json";
/// A JSON merge patch.
pub const MERGE_PATCH: &str = "application/merge-patch+json";
/// A list or object as the server would print it, else as it is.
pub const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

impl Session {
    /// Finds the server as every Kubernetes client does, with a running `prow dev` before the user's own clusters.
    pub async fn open(global: &Global) -> Result<Self> {
        let kubeconfig = match kubeconfig_path(global) {
            Some(path) => {
                Kubeconfig::read_from(&path).with_context(|| format!("the kubeconfig {} cannot be used", path.display()))?
            }
            None => Kubeconfig::read().map_err(|_| {
                Error::Unreached(
                    "no server is known: start one with `prow dev`, or name a kubeconfig with --kubeconfig or $KUBECONFIG".into(),
                )
            })?,
        };
        let options = KubeConfigOptions {
            context: global.context.clone(),
            ..Default::default()
        };
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .context("the kubeconfig cannot be used")?;
        config.read_timeout = None; // a watch may be silent for long
        let namespace = global
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let ca = config
            .root_cert
            .as_ref()
            .and_then(|certificates| certificates.first().cloned());
        let server = config.cluster_url.to_string();
        let client = Client::try_from(config).context("the kubeconfig cannot be used")?;
        Ok(Self {
            client,
            namespace,
            server,
            ca,
        })
    }

    /// Sends a request, prints the server's warnings, and turns refusals into errors.
    pub async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Body>> {
        let response = self
            .client
            .send(request.map(Body::from))
            .await
            .map_err(|e| self.unreached(e))?;
        for warning in response.headers().get_all(header::WARNING) {
            if let Some(text) = warning.to_str().ok().and_then(warning_text) {
                terminal::note(Tone::Wait, format!("Warning: {text}"));
            }
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status().as_u16();
        let body = self.collect(response).await?;
        let status = serde_json::from_slice(&body).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(&body);
            kube::core::Status::failure(text.trim(), "Unknown").with_code(code)
        });
        Err(Error::Refused(Box::new(status)).into())
    }

    /// Sends a request and reads the answer as JSON.
    pub async fn json(&self, request: Request<Vec<u8>>) -> Result<Value> {
        let response = self.send(request).await?;
        let body = self.collect(response).await?;
        serde_json::from_slice(&body).context("the server's answer is no JSON")
    }

    /// `GET path`.
    pub async fn get(&self, path: &str) -> Result<Value> {
        self.json(request(Method::GET, path, JSON, Vec::new())?).await
    }

    /// `GET path`, as a table where the server can make one.
    pub async fn table(&self, path: &str) -> Result<Value> {
        self.json(request(Method::GET, path, TABLE, Vec::new())?).await
    }

    /// `GET path`, or `None` where there is nothing.
    pub async fn find(&self, path: &str) -> Result<Option<Value>> {
        match self.get(path).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `POST path` with an object.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value> {
        self.json(with_body(Method::POST, path, JSON, object)?).await
    }

    /// `PATCH path` with a merge patch.
    pub async fn merge(&self, path: &str, patch: &Value) -> Result<Value> {
        self.json(with_body(Method::PATCH, path, MERGE_PATCH, patch)?)
            .await
    }

    /// `DELETE path` with DeleteOptions.
    pub async fn delete(&self, path: &str, options: &Value) -> Result<Value> {
        self.json(with_body(Method::DELETE, path, JSON, options)?).await
    }

    async fn collect(&self, response: Response<Body>) -> Result<bytes::Bytes> {
        Ok(response
            .into_body()
            .collect()
            .await
            .map_err(|e| self.unreached(e))?
            .to_bytes())
    }

    /// The error of a server that cannot be talked to.
    pub fn unreached(&self, error: kube::Error) -> anyhow::Error {
        let mut reason: &dyn std::error::Error = &error;
        while let Some(source) = reason.source() {
            reason = source;
        }
        Error::Unreached(format!(
            "the server {} could not be reached: {reason}",
            self.server
        ))
        .into()
    }
}

/// A request without much ado.
pub fn request(method: Method, path: &str, accept: &str, body: Vec<u8>) -> Result<Request<Vec<u8>>> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, accept)
        .body(body)
        .with_context(|| format!("{path} is no path"))
}

fn with_body(method: Method, path: &str, content_type: &str, body: &Value) -> Result<Request<Vec<u8>>> {
    let mut request = request(method, path, JSON, serde_json::to_vec(body)?)?;
    request
        .headers_mut()
        .insert(header::CONTENT_TYPE, http::HeaderValue::from_str(content_type)?);
    Ok(request)
}

/// Whether the server said that there is no such thing.
pub fn is_missing(error: &anyhow::Error) -> bool {
    refusal(error).is_some_and(|status| status.code == 404)
}

/// The server's refusal behind an error.
pub fn refusal(error: &anyhow::Error) -> Option<&kube::core::Status> {
    error
        .chain()
        .find_map(|cause| match cause.downcast_ref::<Error>() {
            Some(Error::Refused(status)) => Some(&**status),
            _ => None,
        })
}

/// The file named by flag or environment, else that of a `prow dev` that runs now.
fn kubeconfig_path(global: &Global) -> Option<PathBuf> {
    if global.kubeconfig.is_some() {
        return global.kubeconfig.clone();
    }
    if std::env::var_os("KUBECONFIG").is_some_and(|v| !v.is_empty()) {
        return None; // may list several files, which are merged
    }
    let data = state::default_data_dir()?;
    is_served(&data).then(|| state::kubeconfig(&data))
}

fn is_served(data: &Path) -> bool {
    state::kubeconfig(data).exists() && state::is_locked(data)
}

/// The text of a `Warning: 299 - "text"` header; source: RFC 7234, section 5.5.
fn warning_text(header: &str) -> Option<String> {
    let quoted = header.split_once('"')?.1;
    let mut text = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(text),
            '\\' => text.push(chars.next()?),
            c => text.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted() {
        assert_eq!(
            warning_text(r#"299 - "runs on 3 nodes""#).as_deref(),
            Some("runs on 3 nodes")
        );
        assert_eq!(
            warning_text(r#"299 - "unknown field \"spec.x\"""#).as_deref(),
            Some(r#"unknown field "spec.x""#)
        );
        assert_eq!(warning_text("299 - nothing"), None);
    }
}
