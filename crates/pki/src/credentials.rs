//! A certificate with its private key, in memory and in one file.

use crate::{
    Error, Leaf,
    file::{self, Readers},
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{fmt, path::Path};

/// A private key and the certificate chain that goes with it: its own first, the authority's last.
pub struct Credentials {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    chain_pem: String,
    key_pem: String,
}

impl Credentials {
    /// Takes a chain and its key, both PEM.
    pub fn from_pem(chain_pem: &str, key_pem: &str) -> Result<Self, Error> {
        let chain = CertificateDer::pem_slice_iter(chain_pem.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| Error::Malformed(format!("not a PEM certificate chain: {e}")))?;
        if chain.is_empty() {
            return Err(Error::Malformed("no certificate in the PEM text".into()));
        }
        let key = PrivateKeyDer::from_pem_slice(key_pem.as_bytes())
            .map_err(|e| Error::Malformed(format!("not a PEM private key: {e}")))?;
        Ok(Self {
            chain,
            key,
            chain_pem: chain_pem.to_owned(),
            key_pem: key_pem.to_owned(),
        })
    }

    /// Reads a file written by [`Credentials::save`]; `None` if there is none.
    pub fn load(path: &Path) -> Result<Option<Self>, Error> {
        let Some(bytes) = file::read(path)? else {
            return Ok(None);
        };
        let damaged = |what: String| Error::Damaged {
            path: path.to_owned(),
            what,
        };
        let text = String::from_utf8(bytes).map_err(|_| damaged("not PEM text".into()))?;
        let (key, chain) = text
            .split_once("-----BEGIN CERTIFICATE-----")
            .ok_or_else(|| damaged("no certificate in it".into()))?;
        Self::from_pem(&format!("-----BEGIN CERTIFICATE-----{chain}"), key)
            .map(Some)
            .map_err(|e| damaged(e.to_string()))
    }

    /// Writes key and chain as one file that only its owner may read; they change together or not at all.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let text = format!("{}\n{}", self.key_pem.trim_end(), self.chain_pem);
        file::write(path, text.as_bytes(), Readers::Owner)
    }

    /// The chain, own certificate first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The private key.
    pub fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }

    /// The chain as PEM.
    pub fn chain_pem(&self) -> &str {
        &self.chain_pem
    }

    /// The private key as PEM.
    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// What its own certificate says.
    pub fn leaf(&self) -> Result<Leaf, Error> {
        let own = self
            .chain
            .first()
            .ok_or_else(|| Error::Malformed("an empty certificate chain".into()))?;
        Leaf::parse(own)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}
