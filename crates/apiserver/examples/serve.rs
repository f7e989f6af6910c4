//! The API server alone, over memory, to try clients against: `cargo run -p apiserver --example serve -- FOLDER`.
//!
//! Keeps its certificates in FOLDER, writes an admin's `kubeconfig` there, and serves until Ctrl-C. Nothing schedules or
//! runs anything.

use api::clock::SystemClock;
use api::identity::MASTERS;
use apiserver::{Options, Server};
use base64::{Engine, prelude::BASE64_STANDARD};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: serve FOLDER")?);
    let authority = Arc::new(pki::Authority::open(&folder, Arc::new(SystemClock))?);
    let options = Options {
        authority: Some(authority.clone()),
        ..Options::default()
    };
    let mut kinds = machinery::core_kinds::all();
    kinds.push(machinery::typed::kind::<api::Job>());
    kinds.push(machinery::typed::kind::<api::Task>());
    kinds.push(machinery::typed::kind::<api::Node>());
    kinds.push(machinery::typed::kind::<api::Queue>());
    kinds.push(machinery::typed::kind::<api::Target>());
    let server = Server::start(Arc::new(store::Memory::new()), kinds, options).await?;

    let own = authority.server(&folder, &["localhost".into(), "127.0.0.1".into()])?;
    let tls = pki::tls::server(&own, authority.certificate(), &["h2", "http/1.1"])?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let admin = authority.user("admin", &[MASTERS.into()], jiff::SignedDuration::from_hours(24))?;
    let address = listener.local_addr()?;
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "prow",
        "clusters": [{"name": "prow", "cluster": {"server": format!("https://{address}"),
            "certificate-authority-data": BASE64_STANDARD.encode(authority.certificate_pem())}}],
        "users": [{"name": "admin", "user": {"client-certificate-data": BASE64_STANDARD.encode(admin.chain_pem()),
            "client-key-data": BASE64_STANDARD.encode(admin.key_pem())}}],
        "contexts": [{"name": "prow", "context": {"cluster": "prow", "user": "admin"}}],
    });
    std::fs::write(folder.join("kubeconfig"), kubeconfig.to_string())?;
    println!(
        "ready https://{address} kubeconfig={}",
        folder.join("kubeconfig").display()
    );
    server
        .serve(listener, Some(tls), async { drop(tokio::signal::ctrl_c().await) })
        .await;
    Ok(())
}
