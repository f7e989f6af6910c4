//! Subjects with several organizations: users are in several groups, while the names of `rcgen` hold each attribute once.
//!
//! The certificate is made with a plain subject, that subject is exchanged in the to-be-signed part (RFC 5280, 4.1), and the result is
//! signed anew.

use crate::Error;
use rcgen::SigningKey;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OID: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const BIT_STRING: u8 = 0x03;
/// 2.5.4.3
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
/// 2.5.4.10
const ORGANIZATION: [u8; 3] = [0x55, 0x04, 0x0a];

/// The same certificate with another subject, signed by `key`, which must be the one that signed the first.
pub(crate) fn exchange(
    certificate: &CertificateDer<'_>,
    common_name: &str,
    organizations: &[String],
    key: &impl SigningKey,
) -> Result<CertificateDer<'static>, Error> {
    let malformed = || Error::Malformed("the new certificate cannot be read back".into());
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|_| malformed())?;
    let old = parsed.tbs_certificate.subject.as_raw();
    let whole = parsed.tbs_certificate.as_ref();
    let body = content(whole).ok_or_else(malformed)?;
    // The subject is the last place where these bytes can stand: the issuer, which might equal it, comes before.
    let at = body
        .windows(old.len())
        .rposition(|window| window == old)
        .ok_or_else(malformed)?;
    let (before, after) = (&body[..at], &body[at + old.len()..]);
    let to_sign = der(
        SEQUENCE,
        &[before, &name(common_name, organizations), after].concat(),
    );
    let mut signature = vec![0]; // no unused bits
    signature.extend(key.sign(&to_sign)?);
    let rest = content(certificate)
        .and_then(|all| all.get(whole.len()..))
        .ok_or_else(malformed)?;
    let algorithm = &rest[..total(rest).ok_or_else(malformed)?];
    Ok(der(
        SEQUENCE,
        &[&to_sign, algorithm, &der(BIT_STRING, &signature)].concat(),
    )
    .into())
}

fn name(common_name: &str, organizations: &[String]) -> Vec<u8> {
    let attribute = |oid: &[u8], value: &str| {
        let pair = [der(OID, oid), der(UTF8_STRING, value.as_bytes())].concat();
        der(SET, &der(SEQUENCE, &pair))
    };
    let mut parts = attribute(&COMMON_NAME, common_name);
    for organization in organizations {
        parts.extend(attribute(&ORGANIZATION, organization));
    }
    der(SEQUENCE, &parts)
}

/// One element: tag, length, content.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().take_while(|b| **b == 0).count()..];
    match content.len() {
        short @ 0..=0x7f => out.push(short as u8),
        _ => {
            out.push(0x80 | significant.len() as u8);
            out.extend(significant);
        }
    }
    out.extend(content);
    out
}

/// Size of the head (tag and length) and of the content of the element at the start of `bytes`.
fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    match *bytes.get(1)? {
        short @ 0..=0x7f => Some((2, usize::from(short))),
        long => {
            let count = usize::from(long & 0x7f);
            let length = bytes.get(2..2 + count)?;
            let size = length.iter().fold(0usize, |all, b| (all << 8) | usize::from(*b));
            Some((2 + count, size))
        }
    }
}

fn total(bytes: &[u8]) -> Option<usize> {
    head(bytes).map(|(head, content)| head + content)
}

fn content(bytes: &[u8]) -> Option<&[u8]> {
    let (head, size) = head(bytes)?;
    bytes.get(head..head + size)
}
