//! TLS settings for servers, clients and the first contact of a new agent.

use crate::{Credentials, Error, certificate};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::WebPkiClientVerifier,
};
use std::sync::{Arc, OnceLock};

/// Settings of a server that asks its peers for a certificate of `authority` but also serves those without one (tokens).
///
/// `protocols` are the ALPN names in order of preference, such as `h2` and `http/1.1`.
pub fn server(
    credentials: &Credentials,
    authority: &CertificateDer<'static>,
    protocols: &[&str],
) -> Result<Arc<ServerConfig>, Error> {
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots([authority.clone()])?), provider())
            .allow_unauthenticated()
            .build()
            .map_err(|e| Error::Malformed(format!("the authority's certificate: {e}")))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients)
        .with_single_cert(credentials.chain().to_vec(), credentials.key())?;
    config.alpn_protocols = alpn(protocols);
    Ok(Arc::new(config))
}

/// Settings of a client that trusts servers with a certificate of `authority` and shows `credentials`, if any.
pub fn client(
    authority: &CertificateDer<'static>,
    credentials: Option<&Credentials>,
    protocols: &[&str],
) -> Result<Arc<ClientConfig>, Error> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots([authority.clone()])?);
    let mut config = match credentials {
        Some(own) => builder.with_client_auth_cert(own.chain().to_vec(), own.key())?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = alpn(protocols);
    Ok(Arc::new(config))
}

/// Settings of a client that knows of the authority only the hash: it accepts exactly a server whose chain ends at a certificate with
/// that hash, for the name asked for. What it saw is in [`Pinned::authority`] after the handshake.
pub fn first_contact(hash: &str, protocols: &[&str]) -> Result<(Arc<ClientConfig>, Arc<Pinned>), Error> {
    let pinned = Arc::new(Pinned {
        hash: hash.to_owned(),
        provider: provider(),
        seen: OnceLock::new(),
    });
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(pinned.clone())
        .with_no_client_auth();
    config.alpn_protocols = alpn(protocols);
    Ok((Arc::new(config), pinned))
}

/// Reads a PEM certificate, such as `ca.crt`.
pub fn certificate_from_pem(pem: &str) -> Result<CertificateDer<'static>, Error> {
    CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|e| Error::Malformed(format!("not a PEM certificate: {e}")))
}

/// Trusts the server whose authority has a known hash.
#[derive(Debug)]
pub struct Pinned {
    hash: String,
    provider: Arc<CryptoProvider>,
    seen: OnceLock<CertificateDer<'static>>,
}

impl Pinned {
    /// The authority's certificate, once a server proved to be signed by it.
    pub fn authority(&self) -> Option<&CertificateDer<'static>> {
        self.seen.get()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let authority = intermediates
            .iter()
            .find(|certificate| certificate::hash(certificate) == self.hash)
            .ok_or(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer))?
            .clone()
            .into_owned();
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone())?;
        let verified = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
            .build()
            .map_err(|e| rustls::Error::General(e.to_string()))?
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        self.seen.get_or_init(|| authority);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signed,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn alpn(protocols: &[&str]) -> Vec<Vec<u8>> {
    protocols.iter().map(|p| p.as_bytes().to_vec()).collect()
}

fn roots(certificates: impl IntoIterator<Item = CertificateDer<'static>>) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store.add(certificate)?;
    }
    Ok(store)
}

#[cfg(test)]
mod tests;
