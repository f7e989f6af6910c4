//! systemd: one unit file.

use super::{DESCRIPTION, HOST_WAITS, NAME, State, Wanted};
use anyhow::{Context, bail};
use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Where programs are installed.
pub fn default_programs() -> anyhow::Result<PathBuf> {
    Ok("/opt/prow".into())
}

/// Whether this host can have the agent as a service.
pub fn check_supported() -> anyhow::Result<()> {
    Ok(())
}

/// Only root may change services.
pub fn check_administrator() -> anyhow::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    bail!("only root may do this: use sudo")
}

/// Steps must be able to run as other accounts later, and the host be restarted: root it is.
pub fn check_account(account: Option<&str>) -> anyhow::Result<()> {
    match account {
        None => Ok(()),
        Some(_) => bail!("--service-account: not supported on Linux: the agent runs as root"),
    }
}

/// Nothing is left to do: the folder was made private, and the account is root.
pub fn prepare_data_folder(wanted: &Wanted) -> anyhow::Result<()> {
    check_account(wanted.account.as_deref())
}

/// The service manager.
pub struct Manager {
    /// The root of the file system it is about; `None` for that of this host, where units are also loaded and started.
    root: Option<PathBuf>,
}

impl Manager {
    /// Of this host, or of an image of one in a folder.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self { root }
    }

    fn unit(&self) -> PathBuf {
        let root = self.root.as_deref().unwrap_or(Path::new("/"));
        root.join("etc/systemd/system").join(format!("{NAME}.service"))
    }

    /// Whether there is such a service.
    pub fn is_installed(&self) -> anyhow::Result<bool> {
        Ok(self.unit().exists())
    }

    /// Writes the unit; whether that changed anything.
    pub fn install(&self, wanted: &Wanted) -> anyhow::Result<bool> {
        let path = self.unit();
        let text = unit(wanted)?;
        let wants = path
            .with_file_name("multi-user.target.wants")
            .join(format!("{NAME}.service"));
        if std::fs::read_to_string(&path).is_ok_and(|there| there == text) && wants.is_symlink() {
            return Ok(false);
        }
        let write = || {
            std::fs::create_dir_all(wants.parent().unwrap_or(&wants))?;
            std::fs::write(&path, &text)?;
            match std::os::unix::fs::symlink(Path::new("..").join(format!("{NAME}.service")), &wants) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
                made => made,
            }
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
        self.systemctl(&["daemon-reload"])?;
        Ok(true)
    }

    /// Starts it, anew if it runs.
    pub fn restart(&self) -> anyhow::Result<()> {
        self.systemctl(&["restart", NAME])
    }

    /// Starts it.
    pub fn start(&self) -> anyhow::Result<()> {
        self.systemctl(&["start", NAME])
    }

    /// Stops it; runners go on.
    pub fn stop(&self) -> anyhow::Result<()> {
        self.systemctl(&["stop", NAME])
    }

    /// Removes the unit.
    pub fn remove(&self) -> anyhow::Result<()> {
        let path = self.unit();
        let wants = path
            .with_file_name("multi-user.target.wants")
            .join(format!("{NAME}.service"));
        for file in [wants, path] {
            match std::fs::remove_file(&file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(e).with_context(|| format!("cannot remove {}", file.display()));
                }
                _ => {}
            }
        }
        self.systemctl(&["daemon-reload"])
    }

    /// How it is doing; `None` if there is no such service.
    pub fn state(&self) -> anyhow::Result<Option<State>> {
        if !self.is_installed()? || self.root.is_some() {
            return Ok(None);
        }
        let output = Command::new("systemctl").args(["is-active", NAME]).output();
        let words = match output {
            Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
            Err(error) => format!("unknown: systemctl: {error}"),
        };
        Ok(Some(State {
            runs: words == "active" || words == "activating",
            words,
        }))
    }

    fn systemctl(&self, args: &[&str]) -> anyhow::Result<()> {
        if self.root.is_some() {
            return Ok(());
        }
        let output = Command::new("systemctl")
            .args(args)
            .output()
            .context("cannot run systemctl")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("systemctl {}: {}", args.join(" "), said.trim());
        }
        Ok(())
    }
}

/// The unit. `KillMode=process` leaves runners alone; `Delegate=yes` lets them have control groups of their own.
fn unit(wanted: &Wanted) -> anyhow::Result<String> {
    let (program, data_dir) = (quoted(&wanted.program)?, quoted(&wanted.data_dir)?);
    let wait = HOST_WAITS.as_secs();
    Ok(format!(
        "[Unit]\n\
         Description=Prow agent\n\
         # {DESCRIPTION}\n\
         After=network-online.target\n\
         Wants=network-online.target\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         ExecStart={program} run --service --data-dir {data_dir}\n\
         Restart=on-failure\n\
         RestartSec=5\n\
         KillMode=process\n\
         Delegate=yes\n\
         TimeoutStopSec={wait}\n\
         UMask=0077\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    ))
}

/// A path as a unit file takes it. Source: systemd.service(5), COMMAND LINES.
fn quoted(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    let text = text.with_context(|| format!("{} cannot stand in a unit file", path.display()))?;
    let text = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    Ok(format!("\"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(data_dir: &str) -> Wanted {
        Wanted {
            program: "/opt/prow/1/prow-agent".into(),
            data_dir: data_dir.into(),
            account: None,
        }
    }

    #[test]
    fn the_unit_leaves_runners_alone_and_takes_any_path() {
        let text = unit(&wanted("/srv/a b%c$d\"e")).unwrap();
        for line in ["KillMode=process", "Delegate=yes", "TimeoutStopSec=120"] {
            assert!(text.lines().any(|l| l == line), "{text}");
        }
        let start = r#"ExecStart="/opt/prow/1/prow-agent" run --service --data-dir "/srv/a b%%c$$d\"e""#;
        assert!(text.contains(start), "{text}");
        assert!(unit(&wanted("/srv/a\nExecStart=b")).is_err());
    }

    #[test]
    fn a_unit_is_written_once_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let manager = Manager::new(Some(root.path().to_owned()));
        assert!(!manager.is_installed().unwrap());
        assert!(manager.install(&wanted("/d")).unwrap());
        assert!(!manager.install(&wanted("/d")).unwrap());
        assert!(manager.install(&wanted("/other")).unwrap());
        assert!(manager.is_installed().unwrap());
        let enabled = root
            .path()
            .join("etc/systemd/system/multi-user.target.wants/prow-agent.service");
        assert!(std::fs::read_to_string(&enabled).unwrap().contains("/other"));
        manager.remove().unwrap();
        manager.remove().unwrap();
        assert!(!manager.is_installed().unwrap() && !enabled.is_symlink());
    }
}
