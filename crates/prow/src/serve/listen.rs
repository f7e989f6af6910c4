//! Where the server listens, and under which names clients may know it.

use anyhow::{Context, Result};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
};
use tokio::net::TcpListener;

/// Binds `wanted`. With port 0 the port of the last start is taken if it is free, so that agents find the server again.
pub async fn bind(data: &Path, wanted: SocketAddr) -> Result<TcpListener> {
    if wanted.port() != 0 {
        return TcpListener::bind(wanted)
            .await
            .with_context(|| format!("cannot listen on {wanted}"));
    }
    let kept = data.join("port");
    let last: Option<u16> = fs::read_to_string(&kept)
        .ok()
        .and_then(|text| text.trim().parse().ok());
    if let Some(port) = last {
        match TcpListener::bind(SocketAddr::new(wanted.ip(), port)).await {
            Ok(listener) => return Ok(listener),
            Err(error) => {
                tracing::warn!(port, %error, "the port of the last start is taken, another one is chosen")
            }
        }
    }
    let listener = TcpListener::bind(wanted)
        .await
        .with_context(|| format!("cannot listen on {wanted}"))?;
    let port = listener.local_addr()?.port();
    fs::write(&kept, format!("{port}\n")).with_context(|| format!("{} cannot be written", kept.display()))?;
    Ok(listener)
}

/// Names and addresses for the server's certificate.
pub fn names(address: SocketAddr, further: &[String]) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".into(), "::1".into()];
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names.extend(host_name());
    names.extend(further.iter().cloned());
    names.sort();
    names.dedup();
    names
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_lowercase();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok().map(|name| name.to_lowercase())
}

/// The URL for clients on this machine.
pub fn url(address: SocketAddr) -> String {
    let ip = if address.ip().is_unspecified() {
        IpAddr::V4(Ipv4Addr::LOCALHOST)
    } else {
        address.ip()
    };
    format!("https://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn port_zero_means_the_same_port_at_every_start() {
        let dir = tempfile::tempdir().unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let first = bind(dir.path(), any).await.unwrap().local_addr().unwrap();
        let second = bind(dir.path(), any).await.unwrap();
        assert_eq!(second.local_addr().unwrap(), first);
        let third = bind(dir.path(), any).await.unwrap().local_addr().unwrap();
        assert_ne!(
            third, first,
            "a taken port must not keep the server from starting"
        );
    }

    #[test]
    fn a_server_on_all_addresses_is_reached_on_this_machine() {
        assert_eq!(url("0.0.0.0:7443".parse().unwrap()), "https://127.0.0.1:7443");
        assert_eq!(url("[::1]:1".parse().unwrap()), "https://[::1]:1");
    }
}
