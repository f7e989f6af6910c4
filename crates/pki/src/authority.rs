//! The certificate authority: made at the first start, loaded at later ones.

use crate::{
    Credentials, Error, certificate,
    file::{self, Readers},
    request::{NodeRequest, subject},
    subject::exchange,
};
use api::{
    clock::Clock,
    identity::{NODE_PREFIX, NODES},
};
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SerialNumber,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use std::{path::Path, sync::Arc};
use x509_parser::prelude::FromDer;

/// Certificates hold from a day before they are made, for hosts whose clocks are behind.
const BACKDATED: SignedDuration = SignedDuration::from_hours(24);
const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(24 * 365 * 10);
const SERVER_LIFE: SignedDuration = SignedDuration::from_hours(24 * 365);
const NODE_LIFE: SignedDuration = SignedDuration::from_hours(24 * 90);

const CERTIFICATE_FILE: &str = "ca.crt";
const KEY_FILE: &str = "ca.key";
const SERVER_FILE: &str = "server.pem";

/// Signs certificates. `ca.crt` in its folder may be read by all, `ca.key` by its owner only.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    clock: Arc<dyn Clock>,
}

impl Authority {
    /// Loads the authority kept in `folder`, or makes one. Two processes must not do so at once: hold the data folder's lock.
    pub fn open(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let certificate = folder.join(CERTIFICATE_FILE);
        let key = folder.join(KEY_FILE);
        // The certificate is written last: without it nobody has trusted the key yet.
        let Some(pem) = file::read(&certificate)? else {
            return Self::create(folder, clock);
        };
        let damaged = |path: &Path, what: &str| Error::Damaged {
            path: path.to_owned(),
            what: what.to_owned(),
        };
        let pem = String::from_utf8(pem).map_err(|_| damaged(&certificate, "not PEM text"))?;
        let key_pem = file::read(&key)?
            .ok_or_else(|| damaged(&key, "the authority's key is missing; restore it from a backup"))?;
        let key_pair = std::str::from_utf8(&key_pem)
            .ok()
            .and_then(|text| KeyPair::from_pem(text).ok())
            .ok_or_else(|| damaged(&key, "not a PEM private key"))?;
        let der = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| damaged(&certificate, "not a PEM certificate"))?;
        if !belongs(&der, &key_pair) {
            return Err(damaged(
                &key,
                "not the key of ca.crt; restore both from one backup",
            ));
        }
        Ok(Self {
            issuer: Issuer::from_ca_cert_der(&der, key_pair)?,
            certificate: der,
            certificate_pem: pem,
            clock,
        })
    }

    fn create(folder: &Path, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        file::folder(folder)?;
        let key = KeyPair::generate()?;
        let mut params = params(clock.now(), AUTHORITY_LIFE)?;
        // Two authorities of one name would confuse those who meet both.
        let suffix = u32::from_be_bytes(random()?);
        params.distinguished_name = subject(&format!("prow-ca-{suffix:08x}"), &[]);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let made = params.self_signed(&key)?;
        let pem = made.pem();
        file::write(
            &folder.join(KEY_FILE),
            key.serialize_pem().as_bytes(),
            Readers::Owner,
        )?;
        file::write(&folder.join(CERTIFICATE_FILE), pem.as_bytes(), Readers::All)?;
        Ok(Self {
            issuer: Issuer::new(params, key),
            certificate: made.into(),
            certificate_pem: pem,
            clock,
        })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Its certificate as PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// SHA-256 of its certificate in hex, as join tokens carry it.
    pub fn hash(&self) -> String {
        certificate::hash(&self.certificate)
    }

    /// The server's certificate for these DNS names and IP addresses, kept in `folder` as `server.pem`. A new one is made when the names
    /// have changed, another authority signed the old one, or less than a third of its life is left.
    pub fn server(&self, folder: &Path, names: &[String]) -> Result<Credentials, Error> {
        let path = folder.join(SERVER_FILE);
        let mut wanted = names.to_vec();
        wanted.sort();
        wanted.dedup();
        if let Some(kept) = Credentials::load(&path)? {
            let leaf = kept.leaf()?;
            let ours = kept.chain().last() == Some(&self.certificate);
            if ours && leaf.names == wanted && !leaf.should_renew(self.clock.now()) {
                return Ok(kept);
            }
        }
        let mut params = params(self.clock.now(), SERVER_LIFE)?;
        let plain = CertificateParams::new(wanted.clone())?;
        params.subject_alt_names = plain.subject_alt_names;
        params.distinguished_name = subject(wanted.first().map(String::as_str).unwrap_or("prow-server"), &[]);
        usages(&mut params, ExtendedKeyUsagePurpose::ServerAuth);
        let key = KeyPair::generate()?;
        let made = params.signed_by(&key, &self.issuer)?;
        let credentials = Credentials::from_pem(&self.chain(&made.pem()), &key.serialize_pem())?;
        file::folder(folder)?;
        credentials.save(&path)?;
        Ok(credentials)
    }

    /// A new key and certificate for user `name` in `groups`.
    pub fn user(&self, name: &str, groups: &[String], life: SignedDuration) -> Result<Credentials, Error> {
        let key = KeyPair::generate()?;
        let pem = self.client(name, groups, &key, life)?;
        Credentials::from_pem(&pem, &key.serialize_pem())
    }

    /// The certificate chain (PEM) a node asked for.
    pub fn node(&self, request: &NodeRequest) -> Result<String, Error> {
        let name = format!("{NODE_PREFIX}{}", request.name);
        self.client(&name, &[NODES.to_owned()], &request.public_key, NODE_LIFE)
    }

    fn client(
        &self,
        name: &str,
        groups: &[String],
        key: &impl PublicKeyData,
        life: SignedDuration,
    ) -> Result<String, Error> {
        let mut params = params(self.clock.now(), life)?;
        params.distinguished_name = subject("subject", &[]);
        usages(&mut params, ExtendedKeyUsagePurpose::ClientAuth);
        let made = params.signed_by(key, &self.issuer)?;
        let named = exchange(made.der(), name, groups, self.issuer.key())?;
        Ok(self.chain(&pem_text(&named)))
    }

    fn chain(&self, leaf_pem: &str) -> String {
        format!("{}\n{}", leaf_pem.trim_end(), self.certificate_pem)
    }
}

/// A certificate as PEM.
pub fn pem_text(certificate: &CertificateDer<'_>) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE", certificate.as_ref()))
}

fn params(now: Timestamp, life: SignedDuration) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::default();
    params.not_before = date(now - BACKDATED)?;
    params.not_after = date(now + life)?;
    let mut serial = random::<16>()?;
    serial[0] &= 0x7f; // positive, as RFC 5280 (4.1.2.2) asks
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn usages(params: &mut CertificateParams, purpose: ExtendedKeyUsagePurpose) {
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![purpose];
}

fn date(at: Timestamp) -> Result<time::OffsetDateTime, Error> {
    time::OffsetDateTime::from_unix_timestamp(at.as_second())
        .map_err(|e| Error::Malformed(format!("a date out of range: {e}")))
}

fn belongs(certificate: &CertificateDer<'_>, key: &KeyPair) -> bool {
    x509_parser::prelude::X509Certificate::from_der(certificate)
        .is_ok_and(|(_, parsed)| parsed.public_key().raw == key.subject_public_key_info())
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
