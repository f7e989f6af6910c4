//! From a join token to a certificate, and from an old certificate to a new one.
//!
//! Key and request are kept before they are sent, and the request's name follows from its text: a repeat after a lost answer finds the
//! certificate that was issued then, though the token is used up.

use super::{
    connection::{BadUrl, PROTOCOLS, Server},
    home::{self, Home},
    retry::Backoff,
};
use api::{
    clock::Clock,
    identity::NODE_PREFIX,
    names::{is_dns_label, sha256_hex},
};
use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequest};
use kube::{Api, api::PostParams};
use pki::{Credentials, JoinToken, Request, tls};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};

const SIGNER: &str = "prow.windows/node-client";
/// Between looks at whether a certificate is due for renewal.
const EVERY: Duration = Duration::from_secs(3600);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// See there.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// See there.
    #[error(transparent)]
    Pki(#[from] pki::Error),
    /// See there.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// No certificate and no token. A retry does not help.
    #[error("this host is not enrolled: make a token with `prow node token create` and give it as --token")]
    NoToken,
    /// The server said no. A retry with another token may help.
    #[error("the server refused to enrol this host: {0}")]
    Refused(String),
    /// The folder belongs to another node. A retry does not help.
    #[error(
        "this data folder belongs to node {kept}, not to {wanted}; leave --name out or use another --data-dir"
    )]
    OtherName {
        /// Name in the certificate.
        kept: String,
        /// Name asked for.
        wanted: String,
    },
    /// The host's name cannot be a node's. A retry does not help.
    #[error(
        "{0:?} cannot be the name of a node: lower-case letters, digits, dashes and dots; give another with --name"
    )]
    BadName(String),
}

/// What is kept while the answer is awaited.
#[derive(Serialize, Deserialize)]
struct Pending {
    node: String,
    key: String,
    csr: String,
}

/// A node with its certificate.
pub struct Enrolled {
    /// Its name.
    pub node: String,
    /// How to reach the server.
    pub server: Server,
}

/// Uses the certificate of the folder, or gets one with the token. Waits for a server that is away; its refusal is an error.
pub async fn enrol(
    home: &Home,
    url: &str,
    name: Option<&str>,
    token: Option<&str>,
    clock: Arc<dyn Clock>,
) -> Result<Enrolled, Error> {
    if let (Some(credentials), Some(authority)) = (home.credentials()?, home.authority()?) {
        let identity = credentials.leaf()?.identity();
        let kept = identity.node().unwrap_or_default().to_owned();
        if let Some(wanted) = name.filter(|name| *name != kept) {
            return Err(Error::OtherName {
                kept,
                wanted: wanted.to_owned(),
            });
        }
        let tls = tls::client(&authority, Some(&credentials), &PROTOCOLS)?;
        return Ok(Enrolled {
            node: kept,
            server: Server::new(url, tls, None, clock)?,
        });
    }
    let token: JoinToken = token.ok_or(Error::NoToken)?.parse()?;
    let node = match name {
        Some(name) => name.to_owned(),
        None => {
            let host = crate::platform::host_name().to_lowercase();
            host.split('.').next().unwrap_or_default().to_owned()
        }
    };
    if node.len() > 253 || !node.split('.').all(is_dns_label) {
        return Err(Error::BadName(node));
    }
    let (tls, pinned) = tls::first_contact(&token.authority, &PROTOCOLS)?;
    let bearer = token.bearer.expose();
    let server = Server::new(url, tls, Some(&bearer), clock.clone())?;
    let credentials = request(home, &server.client(), &node).await?;
    let authority = pinned
        .authority()
        .ok_or_else(|| Error::Refused("it never proved who it is".into()))?;
    home.keep_authority(authority)?;
    finish(home, &credentials)?;
    tracing::info!(node, "enrolled");
    let tls = tls::client(authority, Some(&credentials), &PROTOCOLS)?;
    Ok(Enrolled {
        node,
        server: Server::new(url, tls, None, clock)?,
    })
}

/// Renews the certificate whenever less than a third of its life is left. Never returns.
pub async fn renew_forever(home: &Home, server: &Server, node: &str, clock: &dyn Clock) {
    let client = server.client();
    loop {
        match renew_if_due(home, server, &client, node, clock).await {
            Ok(true) => tracing::info!(node, "certificate renewed"),
            Ok(false) => {}
            Err(error) => tracing::warn!(node, %error, "certificate not renewed; tried again in an hour"),
        }
        tokio::time::sleep(EVERY).await;
    }
}

async fn renew_if_due(
    home: &Home,
    server: &Server,
    client: &kube::Client,
    node: &str,
    clock: &dyn Clock,
) -> Result<bool, Error> {
    let (Some(old), Some(authority)) = (home.credentials()?, home.authority()?) else {
        return Ok(false);
    };
    if !old.leaf()?.should_renew(clock.now()) {
        return Ok(false);
    }
    let credentials = request(home, client, node).await?;
    finish(home, &credentials)?;
    server.exchange(tls::client(&authority, Some(&credentials), &PROTOCOLS)?);
    Ok(true)
}

fn finish(home: &Home, credentials: &Credentials) -> Result<(), Error> {
    home.keep_credentials(credentials)?;
    Ok(home.drop_pending()?)
}

/// Asks until there is an answer.
async fn request(home: &Home, client: &kube::Client, node: &str) -> Result<Credentials, Error> {
    let pending = match home.pending::<Pending>()? {
        Some(pending) if pending.node == node => pending,
        _ => {
            let made = Request::node(node)?;
            let pending = Pending {
                node: node.to_owned(),
                key: made.key_pem,
                csr: made.csr_pem,
            };
            home.keep_pending(&pending)?;
            pending
        }
    };
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let object = signing_request(&pending);
    let name = object.metadata.name.clone().unwrap_or_default();
    let mut backoff = Backoff::new(Duration::from_secs(10));
    loop {
        let answer = match requests.create(&PostParams::default(), &object).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403 | 409) => {
                // Made by an earlier try whose answer was lost? The bearer of a used token may still read its own request.
                match requests.get(&name).await {
                    Err(kube::Error::Api(_)) => Err(kube::Error::Api(status)),
                    other => other,
                }
            }
            other => other,
        };
        match answer {
            Ok(object) => {
                if let Some(chain) = issued(&object)? {
                    return Ok(Credentials::from_pem(&chain, &pending.key)?);
                }
                tracing::info!(node, request = name, "waiting for the certificate");
            }
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) && status.code != 429 => {
                if status.code == 422 || status.code == 403 {
                    home.drop_pending()?; // the next try is a new one
                }
                return Err(Error::Refused(status.message.clone()));
            }
            Err(error) => tracing::warn!(node, error = %chain(&error), "cannot enrol yet"),
        }
        backoff.wait().await;
    }
}

fn signing_request(pending: &Pending) -> CertificateSigningRequest {
    let mut object = CertificateSigningRequest::default();
    let hash = sha256_hex(&pending.csr);
    object.metadata.name = Some(format!("node-csr-{}", &hash[..20]));
    object.spec.request = ByteString(pending.csr.clone().into_bytes());
    object.spec.signer_name = SIGNER.to_owned();
    object.spec.usages = Some(vec!["client auth".into(), "digital signature".into()]);
    object.spec.username = Some(format!("{NODE_PREFIX}{}", pending.node));
    object
}

/// The certificate chain, once issued; an error once denied.
fn issued(object: &CertificateSigningRequest) -> Result<Option<String>, Error> {
    let Some(status) = &object.status else {
        return Ok(None);
    };
    let denied = status.conditions.iter().flatten();
    if let Some(denied) = denied
        .into_iter()
        .find(|c| matches!(c.type_.as_str(), "Denied" | "Failed"))
    {
        return Err(Error::Refused(denied.message.clone().unwrap_or_default()));
    }
    let chain = status.certificate.as_ref();
    Ok(chain
        .filter(|bytes| !bytes.0.is_empty())
        .map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()))
}

/// An error with its causes, since the outermost says little.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
