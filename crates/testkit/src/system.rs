//! `prow dev` as a test sees it.

use crate::{Process, program};
use anyhow::{Context, Result, ensure};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// What is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many agents; without any, a test brings its own.
    pub agents: u32,
    /// Further flags of `prow dev`.
    pub flags: Vec<String>,
}

impl Options {
    /// So many agents, and nothing special.
    pub fn agents(agents: u32) -> Self {
        Self {
            agents,
            flags: Vec::new(),
        }
    }

    /// A further flag without a value.
    pub fn switch(mut self, name: &str) -> Self {
        self.flags.push(name.to_owned());
        self
    }

    /// A further flag with its value.
    pub fn flag(mut self, name: &str, value: impl ToString) -> Self {
        self.flags.extend([name.to_owned(), value.to_string()]);
        self
    }
}

/// A `prow dev` with its agents and everything they run. All of it is killed when this is dropped.
pub struct System {
    options: Options,
    folder: TempDir,
    server: Option<Child>,
    url: String,
}

impl System {
    /// Starts it and waits until it answers.
    pub async fn start(options: Options) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("prow-test-").tempdir()?;
        let mut system = Self {
            options,
            folder,
            server: None,
            url: String::new(),
        };
        system.start_server().await?;
        Ok(system)
    }

    /// Starts the server again after it was killed or stopped.
    pub async fn start_server(&mut self) -> Result<()> {
        ensure!(self.server.is_none(), "the server runs already");
        let log = File::options().create(true).append(true).open(self.log_file())?;
        let mut server = Command::new(program("prow")?)
            .arg("dev")
            .arg("--data-dir")
            .arg(self.data())
            .args([
                "--listen",
                "127.0.0.1:0",
                "--agents",
                &self.options.agents.to_string(),
            ])
            .args(&self.options.flags)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("prow dev cannot be started")?;
        let out = server.stdout.take().context("prow dev has no stdout")?;
        let line = BufReader::new(out).lines().next_line().await?.unwrap_or_default();
        let url = line
            .strip_prefix("ready ")
            .and_then(|rest| rest.split(' ').next());
        self.server = Some(server);
        match url {
            Some(url) => self.url = url.to_owned(),
            None => anyhow::bail!(
                "prow dev did not get ready: {line}\n{}",
                std::fs::read_to_string(self.log_file())?
            ),
        }
        Ok(())
    }

    /// Kills the server, and it alone, and waits until it is gone.
    pub async fn kill_server(&mut self) -> Result<()> {
        let mut server = self.server.take().context("the server does not run")?;
        server.kill().await.context("the server cannot be killed")
    }

    /// Ends server and agents in order.
    pub async fn stop(&mut self) -> Result<()> {
        let mut server = self.server.take().context("the server does not run")?;
        Process(server.id().context("the server is gone")?).terminate();
        let status = server.wait().await?;
        ensure!(
            status.success(),
            "prow dev ended with {status}\n{}",
            std::fs::read_to_string(self.log_file())?
        );
        Ok(())
    }

    /// An administrator's client.
    pub async fn client(&self) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig())?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder of everything the test leaves.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.data().join("kubeconfig")
    }

    /// What the server logged.
    pub fn log_file(&self) -> PathBuf {
        self.folder.path().join("prow-dev.log")
    }

    /// The data folder of agent `number`, from 1.
    pub fn agent_folder(&self, number: u32) -> PathBuf {
        self.data().join("agents").join(format!("agent-{number}"))
    }

    /// The process of the server.
    pub fn server(&self) -> Option<Process> {
        self.server.as_ref()?.id().map(Process)
    }

    /// The process of agent `number`, from 1.
    pub fn agent(&self, number: u32) -> Result<Process> {
        Process::of_file(&self.agent_folder(number).with_extension("pid"))
    }

    /// The task runners that live now.
    pub fn runners(&self) -> Vec<Process> {
        Process::runners_of(&self.data())
    }
}

impl Drop for System {
    fn drop(&mut self) {
        if let Some(server) = self.server() {
            server.kill();
        }
        // what dies may have started another one just before
        for _ in 0..10 {
            let left = Process::of_folder(self.folder.path());
            if left.is_empty() {
                return;
            }
            for process in left {
                process.thaw();
                process.kill();
            }
        }
    }
}
