//! `prow-agent install`: makes the agent a service of this host. Again is fine: what is as wanted stays as it is.

use crate::{
    programs::Programs,
    service::{self, Manager, Wanted},
};
use agent::{
    layout::DataDir,
    service::{RunAs, Written, home},
};
use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};

/// Flags of `install`; what they leave out is kept from an agent.yaml that is there.
#[derive(Args)]
pub struct Install {
    /// The server, https://HOST:PORT
    #[arg(long, env = "PROW_SERVER")]
    server: Option<String>,
    /// Join token, as `prow node token create` prints it; needed once
    #[arg(long, env = "PROW_JOIN_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Name of the node; the host's name if left out
    #[arg(long)]
    name: Option<String>,
    /// Folder for identity and tasks; made private to the system and its administrators
    #[arg(long, env = "PROW_AGENT_DATA_DIR", default_value_os_t = agent::platform::default_data_dir())]
    data_dir: PathBuf,
    /// As which account steps run that name none: `agent` is the service's own, so whoever may create Jobs for this node owns it
    #[arg(long, value_name = "agent|ACCOUNT")]
    run_as_default: Option<String>,
    /// Account of the service: a group managed service account such as CORP\prow$; the system's own if left out
    #[arg(long, value_name = "ACCOUNT")]
    service_account: Option<String>,
    /// Leaves the service stopped; it starts with the host
    #[arg(long)]
    no_start: bool,
    /// Installs into an image of a host in this folder; nothing is started
    #[cfg(unix)]
    #[arg(long)]
    root: Option<PathBuf>,
}

impl Install {
    /// Checks everything first, then changes the host.
    pub fn run(self) -> anyhow::Result<()> {
        service::check_supported()?;
        service::check_account(self.service_account.as_deref())?;
        if !self.is_image() {
            service::check_administrator()?;
        }
        let data_dir = self.in_root(&absolute(&self.data_dir)?);
        let written = self.settings(&data_dir)?;
        let data = DataDir::open(&data_dir)?;
        if let Some(token) = &self.token
            && !is_enrolled(&data)
        {
            home::leave_join_token(&data, token).context("--token")?;
        }
        written.save(data.path())?;

        let program = std::env::current_exe().context("cannot find this program")?;
        let programs = Programs::in_folder(self.in_root(&service::default_programs()?));
        let installed = programs.add(&program, env!("CARGO_PKG_VERSION"))?;
        let wanted = Wanted {
            program: self.out_of_root(&installed),
            data_dir: absolute(&self.data_dir)?,
            account: self.service_account.clone(),
        };
        service::prepare_data_folder(&wanted)?;
        let manager = self.manager();
        let changed = manager.install(&wanted)?;
        println!("installed    {}", wanted.program.display());
        println!("data         {}", wanted.data_dir.display());
        if self.is_image() {
            return Ok(());
        }
        if self.no_start {
            println!("service      {}, starts with the host", service::NAME);
            return Ok(());
        }
        if changed {
            manager.restart()
        } else {
            manager.start()
        }
        .with_context(|| format!("see {}", data.path().join("agent.log").display()))?;
        println!(
            "service      {}, running; `prow-agent status` tells more",
            service::NAME
        );
        Ok(())
    }

    /// agent.yaml as it is to be. Everything is refused here that would only fail once the service runs.
    fn settings(&self, data_dir: &Path) -> anyhow::Result<Written> {
        let flags = Written {
            server: self.server.clone(),
            name: self.name.clone(),
            run_as: self.run_as_default.clone().map(|default| RunAs { default }),
            ..Written::default()
        };
        let written = flags.or(Written::load(data_dir)?);
        if written.run_as.is_none() {
            bail!(
                "--run-as-default: say as which account steps run that name none. `agent` is the service's own account, the system's \
                 unless --service-account says otherwise: then a step can do all that this host's administrator can"
            );
        }
        written.clone().settle(
            data_dir.to_owned(),
            PathBuf::new(),
            None,
            std::time::Duration::from_secs(10),
        )?;
        let enrolled = data_dir.join("pki").join("client.pem").exists();
        if self.token.is_none() && !enrolled && !data_dir.join("pki").join("join-token").exists() {
            bail!("--token: this host is not enrolled: make a token with `prow node token create`");
        }
        Ok(written)
    }
}

#[cfg(unix)]
impl Install {
    fn manager(&self) -> Manager {
        Manager::new(self.root.clone())
    }

    fn is_image(&self) -> bool {
        self.root.is_some()
    }

    fn in_root(&self, path: &Path) -> PathBuf {
        match &self.root {
            Some(root) => root.join(path.strip_prefix("/").unwrap_or(path)),
            None => path.to_owned(),
        }
    }

    fn out_of_root(&self, path: &Path) -> PathBuf {
        let inside = self.root.as_ref().and_then(|root| path.strip_prefix(root).ok());
        inside.map_or_else(|| path.to_owned(), |inside| Path::new("/").join(inside))
    }
}

#[cfg(windows)]
impl Install {
    fn manager(&self) -> Manager {
        Manager::new()
    }

    fn is_image(&self) -> bool {
        false
    }

    fn in_root(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn out_of_root(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

fn is_enrolled(data: &DataDir) -> bool {
    data.path().join("pki").join("client.pem").exists()
}

/// The service has another current folder than this command.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("--data-dir {}", path.display()))
}
