//! The agent's own part of the data folder: who it is.
//!
//! ```text
//! <data>/
//!   agent.lock           held by the living agent
//!   pki/instance         random, made with the folder; a copied folder has a copied one, which is why the Lease also names a nonce
//!   pki/processes.json   nonce and process of the last agents on this folder, the living one last
//!   pki/ca.crt           the authority the server's certificate must come from
//!   pki/client.pem       key and certificate
//!   pki/request.json     key and signing request while the certificate is awaited
//!   pki/join-token       left by `prow-agent install`, gone once the certificate is there
//!   pki/healthy.json     the process that held the node's Lease last: an upgrade waits for the new version's
//! ```

use super::retry;
use crate::{
    layout::{self, DataDir},
    platform,
    runner::Identity,
};
use pki::{Credentials, JoinToken};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// How many earlier agents a folder remembers.
const REMEMBERED: usize = 4;

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// See there.
    #[error(transparent)]
    Layout(#[from] layout::Error),
    /// See there.
    #[error(transparent)]
    Pki(#[from] pki::Error),
    /// Another agent works on this folder. A retry helps once that one has ended.
    #[error("another agent is running on {0}; stop it first, or give this one its own --data-dir")]
    InUse(PathBuf),
    /// The file system refused; a retry may help.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A file was damaged. A retry does not help.
    #[error("{path} is damaged: {source}; restore it, or enrol this host anew with an empty --data-dir")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        source: serde_json::Error,
    },
    /// The system gave no random bytes. A retry can help.
    #[error("no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// An agent process that held, or tried to hold, the node's Lease.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its nonce.
    pub nonce: String,
    /// Which process.
    pub process: Identity,
}

/// The data folder as this agent process holds it.
pub struct Home {
    /// Where tasks lie.
    pub data: DataDir,
    /// Made with the folder.
    pub instance: String,
    /// Of this process.
    pub nonce: String,
    /// Which boot of the host this is.
    pub boot_id: String,
    /// Agents before this one, the last one last.
    pub before: Vec<Process>,
    _lock: File,
}

impl Home {
    /// Opens or makes the folder; refused while another agent works on it.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let data = DataDir::open(root)?;
        let lock = data.path().join("agent.lock");
        let held = platform::lock(&lock).map_err(fail(&lock))?;
        let held = held.ok_or_else(|| Error::InUse(data.path().to_owned()))?;
        let pki = data.path().join("pki");
        platform::create_private_dir(&pki).map_err(fail(&pki))?;

        let instance = pki.join("instance");
        let instance = match read(&instance)? {
            Some(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
            None => {
                let made = retry::random_id()?;
                write(&instance, made.as_bytes())?;
                made
            }
        };
        let processes = pki.join("processes.json");
        let before: Vec<Process> = match read(&processes)? {
            // It only makes taking over faster: one cut short by a crash is as good as none.
            Some(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            None => Vec::new(),
        };
        let nonce = retry::random_id()?;
        let process = Identity::of(std::process::id()).map_err(fail(&processes))?;
        let mut all = before.clone();
        all.push(Process {
            nonce: nonce.clone(),
            process,
        });
        let recent = &all[all.len().saturating_sub(REMEMBERED)..];
        write(&processes, &json(&processes, &recent)?)?;
        Ok(Self {
            boot_id: platform::boot_id().map_err(fail(Path::new("boot id")))?,
            data,
            instance,
            nonce,
            before,
            _lock: held,
        })
    }

    /// What this process is called as the holder of a Lease.
    pub fn holder(&self) -> String {
        format!("{}/{}", self.instance, self.nonce)
    }

    /// Whether the holder of a Lease was an agent on this folder that has ended in this boot.
    pub fn has_ended(&self, holder: &str) -> bool {
        let Some((instance, nonce)) = holder.split_once('/') else {
            return false;
        };
        instance == self.instance
            && self
                .before
                .iter()
                .any(|p| p.nonce == nonce && p.process.boot_id == self.boot_id && !p.process.is_alive())
    }

    /// Key and certificate, once enrolled.
    pub fn credentials(&self) -> Result<Option<Credentials>, Error> {
        Ok(Credentials::load(&self.pki("client.pem"))?)
    }

    /// Keeps key and certificate.
    pub fn keep_credentials(&self, credentials: &Credentials) -> Result<(), Error> {
        Ok(credentials.save(&self.pki("client.pem"))?)
    }

    /// The authority the server's certificate must come from.
    pub fn authority(&self) -> Result<Option<CertificateDer<'static>>, Error> {
        let path = self.pki("ca.crt");
        let pem = read(&path)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(pem.map(|pem| pki::tls::certificate_from_pem(&pem)).transpose()?)
    }

    /// Keeps the authority's certificate.
    pub fn keep_authority(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        write(
            &self.pki("ca.crt"),
            pki::authority::pem_text(certificate).as_bytes(),
        )
    }

    /// What was left of an enrolment or renewal that did not come to its end.
    pub fn pending<T: for<'de> Deserialize<'de>>(&self) -> Result<Option<T>, Error> {
        let path = self.pki("request.json");
        let read = read(&path)?;
        read.map(|bytes| serde_json::from_slice(&bytes))
            .transpose()
            .map_err(|source| Error::Damaged { path, source })
    }

    /// Keeps what is asked for until it is answered.
    pub fn keep_pending<T: Serialize>(&self, pending: &T) -> Result<(), Error> {
        let path = self.pki("request.json");
        write(&path, &json(&path, pending)?)
    }

    /// Forgets what was asked for.
    pub fn drop_pending(&self) -> Result<(), Error> {
        self.remove("request.json")
    }

    /// The token that `prow-agent install` left, until it is used.
    pub fn join_token(&self) -> Result<Option<String>, Error> {
        let token = read(&self.pki("join-token"))?;
        Ok(token.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned()))
    }

    /// Forgets the token: this host is enrolled.
    pub fn drop_join_token(&self) -> Result<(), Error> {
        self.remove("join-token")
    }

    /// Leaves word that this process does its work: it holds the node's Lease.
    pub fn mark_healthy(&self) -> Result<(), Error> {
        let path = self.pki("healthy.json");
        let process = Identity::of(std::process::id()).map_err(fail(&path))?;
        write(&path, &json(&path, &process)?)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        remove(&self.pki(name))
    }

    fn pki(&self, name: &str) -> PathBuf {
        self.data.path().join("pki").join(name)
    }
}

/// Leaves a join token for the agent that will work on this data folder.
pub fn leave_join_token(data: &DataDir, token: &str) -> Result<(), Error> {
    token.parse::<JoinToken>()?; // a mistake is better told now than in a service's log
    let pki = data.path().join("pki");
    platform::create_private_dir(&pki).map_err(fail(&pki))?;
    write(&pki.join("join-token"), token.as_bytes())
}

/// The living process that holds, or held a moment ago, the Lease by this data folder.
pub fn healthy(root: &Path) -> Option<Identity> {
    let bytes = std::fs::read(root.join("pki").join("healthy.json")).ok()?;
    let process: Identity = serde_json::from_slice(&bytes).ok()?;
    process.is_alive().then_some(process)
}

/// Forgets who was healthy, before an upgrade.
pub fn drop_healthy(root: &Path) -> Result<(), Error> {
    remove(&root.join("pki").join("healthy.json"))
}

fn remove(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(fail(path)(e)),
        _ => Ok(()),
    }
}

fn json(path: &Path, value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|source| Error::Damaged {
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(fail(path)(e)),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let part = path.with_extension("part");
    platform::write_private(&part, bytes)
        .and_then(|()| File::options().write(true).open(&part)?.sync_all()) // Windows syncs only what may be written
        .and_then(|()| platform::rename(&part, path))
        .map_err(fail(path))
}

fn fail(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io {
        path: path.clone(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_agent_a_folder_and_the_instance_stays() {
        let folder = tempfile::tempdir().unwrap();
        let first = Home::open(folder.path()).unwrap();
        assert!(matches!(Home::open(folder.path()), Err(Error::InUse(_))));
        let (instance, nonce) = (first.instance.clone(), first.nonce.clone());
        drop(first);
        let second = Home::open(folder.path()).unwrap();
        assert_eq!(second.instance, instance);
        assert_ne!(second.nonce, nonce);
        assert_eq!(second.before.last().unwrap().nonce, nonce);
    }

    #[test]
    fn a_join_token_is_kept_until_it_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        assert!(leave_join_token(&data, "prow1.mistaken").is_err());
        let token = JoinToken::generate(&"0".repeat(64)).unwrap().to_string();
        leave_join_token(&data, &token).unwrap();
        let home = Home::open(folder.path()).unwrap();
        assert_eq!(home.join_token().unwrap(), Some(token));
        home.drop_join_token().unwrap();
        assert_eq!(home.join_token().unwrap(), None);
    }

    #[test]
    fn only_a_living_process_is_healthy() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        assert_eq!(healthy(folder.path()), None);
        home.mark_healthy().unwrap();
        let mut me = healthy(folder.path()).unwrap();
        assert_eq!(me.pid, std::process::id());
        me.created += 1;
        std::fs::write(home.pki("healthy.json"), serde_json::to_vec(&me).unwrap()).unwrap();
        assert_eq!(healthy(folder.path()), None);
        drop_healthy(folder.path()).unwrap();
        drop_healthy(folder.path()).unwrap();
    }

    #[test]
    fn only_an_agent_of_this_folder_and_boot_that_is_gone_has_ended() {
        let folder = tempfile::tempdir().unwrap();
        drop(Home::open(folder.path()).unwrap());
        let mut home = Home::open(folder.path()).unwrap();
        let holder = |home: &Home, nonce: &str| format!("{}/{nonce}", home.instance);
        let nonce = home.before[0].nonce.clone();
        // That process is this one, and lives.
        assert!(!home.has_ended(&holder(&home, &nonce)));
        home.before[0].process.created += 1;
        assert!(home.has_ended(&holder(&home, &nonce)));
        assert!(!home.has_ended(&format!("other/{nonce}")));
        assert!(!home.has_ended(&holder(&home, "unheard")));
        home.before[0].process.boot_id = "an earlier one".into();
        assert!(!home.has_ended(&holder(&home, &nonce)));
    }
}
