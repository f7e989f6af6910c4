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
    /// Steps are to run as another account than the agent's.
    #[error(
        "runAs.default: {0:?} is not supported yet: steps run as the agent's own account, so it must be `agent`"
    )]
    RunAs(String),
    /// agent.yaml cannot be written.
    #[error("{path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Name of the node; the host's name where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tasks at once; the number of CPUs, at least two, where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// How long folders of finished tasks are kept, such as `24h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_retention: Option<String>,
    /// The most a step's log may hold, such as `64Mi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_log_size: Option<Quantity>,
    /// Below this much free disk nothing new is taken, such as `1Gi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_free_disk: Option<Quantity>,
    /// As which accounts steps may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as: Option<RunAs>,
    /// Whether steps may have the host restarted; only with a service where it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_reboot: Option<bool>,
}

/// As which accounts steps may run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunAs {
    /// The account of a step that names none: `agent`, the agent's own. Where that is SYSTEM, a step can do all that the agent can, so
    /// whoever may create Jobs for this node owns it.
    pub default: String,
}

impl RunAs {
    /// The agent's own account.
    pub const AGENT: &str = "agent";
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
    /// Whether the host may be restarted for a step.
    pub may_reboot: bool,
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
            run_as: self.run_as.or(other.run_as),
            allow_reboot: self.allow_reboot.or(other.allow_reboot),
        }
    }

    /// Writes them as `agent.yaml` of a data folder, whole or not at all; what says the same already is left alone.
    pub fn save(&self, data_dir: &Path) -> Result<(), Error> {
        if Self::load(data_dir).is_ok_and(|there| there == *self) {
            return Ok(());
        }
        let path = data_dir.join("agent.yaml");
        let part = data_dir.join("agent.yaml.part");
        let fail = |source| Error::Write {
            path: path.clone(),
            source,
        };
        let text = serde_saphyr::to_string(self).map_err(|e| fail(e.into()))?;
        crate::platform::write_private(&part, text.as_bytes())
            .and_then(|()| crate::platform::rename(&part, &path))
            .map_err(|e| fail(e.into()))
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
        if let Some(run_as) = self.run_as.filter(|run_as| run_as.default != RunAs::AGENT) {
            return Err(Error::RunAs(run_as.default));
        }
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
            may_reboot: self.allow_reboot.unwrap_or(false),
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
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let written = Written {
            server: Some("https://a:1".into()),
            name: Some("yes".into()),
            slots: Some(3),
            run_as: Some(RunAs {
                default: RunAs::AGENT.into(),
            }),
            ..Written::default()
        };
        written.save(folder.path()).unwrap();
        assert_eq!(Written::load(folder.path()).unwrap(), written);
        let path = folder.path().join("agent.yaml");
        let commented = format!("# ours\n{}", std::fs::read_to_string(&path).unwrap());
        std::fs::write(&path, &commented).unwrap();
        written.save(folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), commented, "left alone");
        assert!(!commented.contains("null"), "{commented}");
    }

    #[test]
    fn another_account_is_refused() {
        let written = Written {
            server: Some("https://a:1".into()),
            run_as: Some(RunAs {
                default: "CORP\\jobs".into(),
            }),
            ..Written::default()
        };
        let error = settle(written).unwrap_err().to_string();
        assert!(
            error.contains("CORP") && error.contains("not supported yet"),
            "{error}"
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
