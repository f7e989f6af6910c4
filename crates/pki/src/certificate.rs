//! Reading certificates: whom one names and how long it holds.

use crate::Error;
use api::{
    identity::{AUTHENTICATED, Identity},
    names::sha256_hex,
};
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

/// What a server reads from the certificate of a peer whose chain TLS has already verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The subject's common name: a user, or `system:node:<name>`.
    pub common_name: String,
    /// The subject's organizations: groups.
    pub organizations: Vec<String>,
    /// DNS names and IP addresses it speaks for, sorted.
    pub names: Vec<String>,
    /// Valid from.
    pub not_before: Timestamp,
    /// Valid until.
    pub not_after: Timestamp,
}

impl Leaf {
    /// Reads a certificate.
    pub fn parse(der: &CertificateDer<'_>) -> Result<Self, Error> {
        let (_, parsed) = X509Certificate::from_der(der)
            .map_err(|e| Error::Malformed(format!("not an X.509 certificate: {e}")))?;
        let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            value
                .as_str()
                .map(str::to_owned)
                .map_err(|e| Error::Malformed(format!("the certificate's subject is not text: {e}")))
        };
        let subject = parsed.subject();
        let time = |t: x509_parser::time::ASN1Time| {
            Timestamp::from_second(t.timestamp())
                .map_err(|e| Error::Malformed(format!("the certificate's dates: {e}")))
        };
        Ok(Self {
            common_name: subject
                .iter_common_name()
                .next()
                .map(text)
                .transpose()?
                .unwrap_or_default(),
            organizations: subject.iter_organization().map(text).collect::<Result<_, _>>()?,
            names: names(&parsed)?,
            not_before: time(parsed.validity().not_before)?,
            not_after: time(parsed.validity().not_after)?,
        })
    }

    /// The user this certificate stands for.
    pub fn identity(&self) -> Identity {
        let mut groups = self.organizations.clone();
        groups.push(AUTHENTICATED.to_owned());
        Identity {
            name: self.common_name.clone(),
            groups,
        }
    }

    /// Whether less than a third of its life is left, or it has not begun: time for a new one.
    pub fn should_renew(&self, now: Timestamp) -> bool {
        let life = self.not_after.as_second() - self.not_before.as_second();
        let left = self.not_after.as_second() - now.as_second();
        now < self.not_before || left < life / 3
    }
}

/// SHA-256 of a certificate in lower-case hex, as join tokens carry it.
pub fn hash(der: &CertificateDer<'_>) -> String {
    sha256_hex(der)
}

fn names(certificate: &X509Certificate<'_>) -> Result<Vec<String>, Error> {
    let extension = certificate
        .subject_alternative_name()
        .map_err(|e| Error::Malformed(format!("the certificate's names: {e}")))?;
    let mut names: Vec<String> = extension
        .map(|e| e.value.general_names.as_slice())
        .unwrap_or_default()
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(dns) => Some((*dns).to_owned()),
            GeneralName::IPAddress(octets) => address(octets).map(|ip| ip.to_string()),
            _ => None,
        })
        .collect();
    names.sort();
    Ok(names)
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from))
        .ok()
}
