//! What an agent is told: flags first, then `agent.yaml` in the data folder, then defaults.

use api::{duration, quantity::Quantity};
use serde::{Deserialize, Serialize};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Settings that cannot be used. A retry does not help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// agent.yaml cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// agent.yaml is no YAML, or has fields there are not.
    #[error("{path}: {source}")]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Why and where.
        source: Box<serde_saphyr::Error>,
    },
    /// A value is malformed.
    #[error("{name}: {value:?} is no {wanted}")]
    Value {
        /// Of the setting.
        name: &'static str,
        /// As written.
        value: String,
        /// What it should be, with an example.
        wanted: &'static str,
    },
    /// Neither `--server` nor agent.yaml names the server.
    #[error("no server is known: give --server https://HOST:PORT or set `server` in {0}")]
    NoServer(PathBuf),
}

/// agent.yaml as written; every field may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Written {
    /// The server's address, `https://host:port`.
    pub server: Option<String>,
    /// Name of the node; the host's name where it is left out.
    pub name: Option<String>,
    /// Tasks at once; the number of CPUs, at least two, where it is left out.
    pub slots: Option<u32>,
    /// How long folders of finished tasks are kept, such as `24h`.
    pub task_retention: Option<String>,
    /// The most a step's log may hold, such as `64Mi`.
    pub max_log_size: Option<Quantity>,
    /// Below this much free disk nothing new is taken, such as `1Gi`.
    pub min_free_disk: Option<Quantity>,
}

/// Everything settled.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The data folder.
    pub data_dir: PathBuf,
    /// The server's address, `https://host:port`.
    pub server: String,
    /// Name of the node, where one was given.
    pub name: Option<String>,
    /// A join token, needed once.
    pub token: Option<String>,
    /// The program that runs tasks: this one, started with `run-task`.
    pub program: PathBuf,
    /// Between renewals of the Lease. Four of them without one, and the node counts as lost.
    pub renew: Duration,
    /// Tasks at once.
    pub slots: u32,
    /// How long folders of finished tasks are kept.
    pub task_retention: Duration,
    /// The most bytes a step's log may hold.
    pub max_log_bytes: u64,
    /// Below so many free bytes nothing new is taken.
    pub min_free_disk: u64,
}

impl Written {
    /// Reads `agent.yaml` of a data folder; all empty where there is none.
    pub fn load(data_dir: &Path) -> Result<Self, Error> {
        let path = data_dir.join("agent.yaml");
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_saphyr::from_str(&text).map_err(|source| Error::Yaml {
                path,
                source: Box::new(source),
            }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(Error::File { path, source }),
        }
    }

    /// These settings, and where they say nothing, those of `other`.
    pub fn or(self, other: Self) -> Self {
        Self {
            server: self.server.or(other.server),
            name: self.name.or(other.name),
            slots: self.slots.or(other.slots),
            task_retention: self.task_retention.or(other.task_retention),
            max_log_size: self.max_log_size.or(other.max_log_size),
            min_free_disk: self.min_free_disk.or(other.min_free_disk),
        }
    }

    /// Fills in defaults and checks values.
    pub fn settle(
        self,
        data_dir: PathBuf,
        program: PathBuf,
        token: Option<String>,
        renew: Duration,
    ) -> Result<Settings, Error> {
        let server = self
            .server
            .ok_or_else(|| Error::NoServer(data_dir.join("agent.yaml")))?;
        let retention = self.task_retention.unwrap_or_else(|| "24h".into());
        let task_retention = duration::parse(&retention).map_err(|_| Error::Value {
            name: "taskRetention",
            value: retention,
            wanted: "duration such as 24h or 90m",
        })?;
        Ok(Settings {
            data_dir,
            server,
            name: self.name,
            token,
            program,
            renew,
            slots: self.slots.unwrap_or_else(default_slots),
            task_retention,
            max_log_bytes: bytes("maxLogSize", self.max_log_size, 64 << 20)?,
            min_free_disk: bytes("minFreeDisk", self.min_free_disk, 1 << 30)?,
        })
    }
}

fn default_slots() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    u32::try_from(cpus).unwrap_or(u32::MAX).max(2)
}

fn bytes(name: &'static str, written: Option<Quantity>, default: u64) -> Result<u64, Error> {
    written.map_or(Ok(default), |quantity| {
        quantity.value().ok_or_else(|| Error::Value {
            name,
            value: quantity.0.clone(),
            wanted: "size such as 64Mi or 1Gi",
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(written: Written) -> Result<Settings, Error> {
        written.settle("/d".into(), "/p".into(), None, Duration::from_secs(10))
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let folder = tempfile::tempdir().unwrap();
        let text = "server: https://file:1\nslots: 7\ntaskRetention: 90m\nminFreeDisk: 2Gi\n";
        std::fs::write(folder.path().join("agent.yaml"), text).unwrap();
        let flags = Written {
            server: Some("https://flag:1".into()),
            ..Written::default()
        };
        let settings = settle(flags.or(Written::load(folder.path()).unwrap())).unwrap();
        assert_eq!((settings.server.as_str(), settings.slots), ("https://flag:1", 7));
        assert_eq!(settings.task_retention, Duration::from_secs(90 * 60));
        assert_eq!(
            (settings.min_free_disk, settings.max_log_bytes),
            (2 << 30, 64 << 20)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            settle(Written::default())
                .unwrap_err()
                .to_string()
                .contains("agent.yaml")
        );
        std::fs::write(folder.path().join("agent.yaml"), "slot: 7\n").unwrap();
        let error = Written::load(folder.path()).unwrap_err().to_string();
        assert!(error.contains("slot"), "{error}");
        let written = Written {
            server: Some("https://a".into()),
            task_retention: Some("soon".into()),
            ..Written::default()
        };
        assert!(settle(written).unwrap_err().to_string().contains("taskRetention"));
    }
}
