//! Signing requests: how an agent asks for its certificate, and what the server makes of one.

use crate::Error;
use api::identity::{NODE_PREFIX, NODES};
use rcgen::{
    CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType, KeyPair, PublicKey,
};
use rustls::pki_types::{CertificateSigningRequestDer, pem::PemObject};
use x509_parser::{
    certification_request::X509CertificationRequest, prelude::FromDer, public_key::PublicKey as Parsed,
};

/// The smallest RSA key a certificate is given to, in bits.
const MIN_RSA_BITS: usize = 2048;

/// A new private key with the request for its certificate.
pub struct Request {
    /// The key, PEM; it never leaves the host.
    pub key_pem: String,
    /// The PKCS#10 request, PEM.
    pub csr_pem: String,
}

impl Request {
    /// A new key and a request for the certificate of node `name`.
    pub fn node(name: &str) -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(&format!("{NODE_PREFIX}{name}"), &[NODES.to_owned()]);
        Ok(Self {
            csr_pem: params.serialize_request(&key)?.pem()?,
            key_pem: key.serialize_pem(),
        })
    }
}

/// A node's signing request whose own signature and subject were checked.
pub struct NodeRequest {
    /// Name of the node: what follows `system:node:` in the common name.
    pub name: String,
    pub(crate) public_key: PublicKey,
}

impl NodeRequest {
    /// Reads a PEM request. Nothing of it is used but the name and the public key: names and usages it asks for are refused, not dropped.
    pub fn parse(csr_pem: &str) -> Result<Self, Error> {
        let der = CertificateSigningRequestDer::from_pem_slice(csr_pem.as_bytes())
            .map_err(|e| Error::Malformed(format!("not a PEM signing request: {e}")))?;
        let request = CertificateSigningRequestParams::from_der(&der)
            .map_err(|e| Error::Malformed(format!("not a usable signing request: {e}")))?;
        check_key(&der)?;
        let (common_name, organizations) = read_subject(&der)?;
        let name = common_name.strip_prefix(NODE_PREFIX).unwrap_or_default();
        if name.is_empty() {
            return Err(Error::Refused(format!(
                "its common name is {common_name:?}; it must be {NODE_PREFIX}<name of the node>"
            )));
        }
        if organizations != [NODES] {
            return Err(Error::Refused(format!(
                "its organizations are {organizations:?}; they must be exactly [{NODES:?}]"
            )));
        }
        if !request.params.subject_alt_names.is_empty() {
            return Err(Error::Refused(
                "it asks for alternative names; a node has none".into(),
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            public_key: request.public_key,
        })
    }
}

pub(crate) fn subject(common_name: &str, organizations: &[String]) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    for organization in organizations {
        name.push(DnType::OrganizationName, organization.as_str());
    }
    name
}

fn read_subject(der: &CertificateSigningRequestDer<'_>) -> Result<(String, Vec<String>), Error> {
    let (_, parsed) = X509CertificationRequest::from_der(der)
        .map_err(|e| Error::Malformed(format!("not a signing request: {e}")))?;
    let subject = &parsed.certification_request_info.subject;
    let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        value
            .as_str()
            .map(str::to_owned)
            .map_err(|e| Error::Malformed(format!("the request's subject is not text: {e}")))
    };
    let names: Vec<String> = subject.iter_common_name().map(text).collect::<Result<_, _>>()?;
    match names.as_slice() {
        [one] => Ok((
            one.clone(),
            subject.iter_organization().map(text).collect::<Result<_, _>>()?,
        )),
        _ => Err(Error::Refused(format!(
            "it has {} common names; it must have one",
            names.len()
        ))),
    }
}

fn check_key(der: &CertificateSigningRequestDer<'_>) -> Result<(), Error> {
    let (_, parsed) = X509CertificationRequest::from_der(der)
        .map_err(|e| Error::Malformed(format!("not a signing request: {e}")))?;
    match parsed.certification_request_info.subject_pki.parsed() {
        Ok(Parsed::RSA(key)) if key.key_size() < MIN_RSA_BITS => Err(Error::Refused(format!(
            "its RSA key has {} bits; at least {MIN_RSA_BITS} are needed",
            key.key_size()
        ))),
        _ => Ok(()),
    }
}
