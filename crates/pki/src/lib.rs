//! Certificates: who is who on the wire.
//!
//! A server makes one [`Authority`] at its first start and trusts nobody else. From it come the server's own certificate, those of
//! users (common name = user name, organizations = groups) and those of agents, which ask for theirs with a [`Request`] and a one-time
//! [`JoinToken`]. The token carries the hash of the authority's certificate, so an agent knows at first contact, before it says its
//! secret, that it talks to the right server ([`tls::Pinned`]).
//!
//! What does not belong here: who may do what (the API server's business), HTTP, and key stores of the operating system.

pub mod authority;
pub mod certificate;
pub mod credentials;
mod file;
pub mod request;
mod subject;
pub mod tls;
pub mod token;

pub use authority::Authority;
pub use certificate::Leaf;
pub use credentials::Credentials;
pub use request::Request;
pub use rustls::pki_types::CertificateDer;
pub use token::{Bearer, JoinToken};

/// Why a certificate could not be made, read or trusted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written. A retry can help once the cause is gone.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// A file holds no usable certificate or key. A retry does not help.
    #[error("{path}: {what}")]
    Damaged {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Bytes that should be a certificate, key or request are not. A retry does not help.
    #[error("{0}")]
    Malformed(String),
    /// A signing request asks for what it may not have. A retry does not help.
    #[error("the signing request is refused: {0}")]
    Refused(String),
    /// A certificate could not be made; a bad name is the usual cause. A retry does not help.
    #[error("cannot make a certificate: {0}")]
    Issue(#[from] rcgen::Error),
    /// TLS does not take the certificate or key. A retry does not help.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// A join token is not of the form `prow1.<id>.<secret>.<hash>`. A retry does not help.
    #[error(
        "not a join token: {0}; expected prow1.<id>.<secret>.<hash>, as `prow node token create` prints it"
    )]
    Token(&'static str),
    /// The system gave no random bytes. A retry can help.
    #[error("no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}
