//! One agent: started, watched, restarted when it dies, taken over when it was there before us.

use super::process::Process;
use crate::enrolment;
use anyhow::{Context, Result};
use api::{
    clock::{Clock, SystemClock},
    placement::Labels,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::PostParams};
use pki::JoinToken;
use std::{
    fs::{self, File},
    path::PathBuf,
    process::Stdio,
    time::Duration,
};
use tokio::{
    process::{Child, Command},
    sync::watch,
};

/// How long an agent may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// Before a dead agent is started again: short at first, longer while it keeps dying.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// An agent that lived so long is no longer one that keeps dying.
const HEALTHY: Duration = Duration::from_secs(30);

/// Gives a program a console of its own that nobody sees. Source: Process Creation Flags of the Win32 documentation.
#[cfg(windows)]
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// An agent of `prow dev`.
pub struct Agent {
    /// Its node's name.
    pub name: String,
    /// Its data folder.
    pub folder: PathBuf,
    /// `prow-agent`.
    pub program: PathBuf,
    /// The server's URL.
    pub server: String,
    /// What a join token must say of the server.
    pub authority_hash: String,
    /// How often it renews its Lease.
    pub renew_seconds: u32,
    /// To make join tokens.
    pub client: Client,
}

/// An agent that lives: our child, or one that was there before us.
enum Living {
    Child(Box<Child>, Process),
    Adopted(Process),
}

impl Living {
    async fn ended(&mut self) -> String {
        match self {
            Self::Child(child, _) => match child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            },
            Self::Adopted(process) => {
                process.ended().await;
                "it is gone".into()
            }
        }
    }

    fn process(&self) -> &Process {
        match self {
            Self::Child(_, process) | Self::Adopted(process) => process,
        }
    }
}

async fn asked(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await; // a sender that is gone means the same
}

impl Agent {
    /// Keeps the agent alive until told to stop, then ends it.
    pub async fn supervise(self, mut stopping: watch::Receiver<bool>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let started = tokio::time::Instant::now();
            match self.start().await {
                Ok(mut living) => {
                    let end = tokio::select! {
                        end = living.ended() => Some(end),
                        () = asked(&mut stopping) => None,
                    };
                    let Some(end) = end else {
                        self.stop(living).await;
                        return;
                    };
                    tracing::warn!(agent = self.name, log = %self.log().display(), "the agent ended ({end}) and is started again");
                }
                Err(error) => tracing::warn!(agent = self.name, "the agent could not be started: {error:#}"),
            }
            pause = if started.elapsed() > HEALTHY {
                FIRST_PAUSE
            } else {
                (pause * 2).min(LONGEST_PAUSE)
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = asked(&mut stopping) => return,
            }
        }
    }

    /// Takes over the agent of the folder, or starts one.
    async fn start(&self) -> Result<Living> {
        crate::serve::private_folder(&self.folder)?;
        if let Some(process) = fs::read_to_string(self.pid_file())
            .ok()
            .and_then(|text| Process::recall(&text))
        {
            tracing::info!(
                agent = self.name,
                pid = process.pid(),
                "an agent that was running already is taken over"
            );
            return Ok(Living::Adopted(process));
        }
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .with_context(|| format!("{} cannot be written", self.log().display()))?;
        let mut command = Command::new(&self.program);
        command
            .arg("run")
            .arg("--data-dir")
            .arg(&self.folder)
            .args(["--server", &self.server, "--name", &self.name])
            .args(["--renew-seconds", &self.renew_seconds.to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(false);
        if !self.is_enrolled() {
            command.args(["--token", &self.token().await?]);
        }
        // Ctrl-C on the terminal is ours to pass on
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(windows)]
        command.creation_flags(CREATE_NO_WINDOW);
        let child = command
            .spawn()
            .with_context(|| format!("{} cannot be started", self.program.display()))?;
        let pid = child.id().context("the agent ended at once")?;
        let process = Process::of(pid).context("the agent ended at once")?;
        fs::write(self.pid_file(), process.remember())
            .with_context(|| format!("{} cannot be written", self.pid_file().display()))?;
        Ok(Living::Child(Box::new(child), process))
    }

    /// Asks it to end; steps it runs go on. One that does not end is killed.
    async fn stop(&self, mut living: Living) {
        living.process().terminate();
        if tokio::time::timeout(GRACE, living.ended()).await.is_err() {
            tracing::warn!(agent = self.name, "the agent did not end and is killed");
            living.process().kill();
            living.ended().await;
        }
        if let Err(error) = fs::remove_file(self.pid_file()) {
            tracing::warn!(agent = self.name, %error, "its pid file could not be removed");
        }
    }

    /// A one-time token for exactly this name. It is kept until the agent is in: an enrolment whose answer was lost is repeated with
    /// the same one.
    async fn token(&self) -> Result<String> {
        let kept = self.folder.with_extension("token");
        if let Ok(token) = fs::read_to_string(&kept) {
            return Ok(token);
        }
        let token = JoinToken::generate(&self.authority_hash)?;
        let expires = SystemClock.now() + jiff::SignedDuration::from_hours(24 * 365);
        let secret: Secret =
            serde_json::from_value(enrolment::secret(&token, &Labels::new(), &self.name, expires))?;
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), "prow-system");
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .context("no join token could be made")?;
        crate::serve::private_file(&kept, token.to_string().as_bytes())?;
        Ok(token.to_string())
    }

    fn is_enrolled(&self) -> bool {
        self.folder.join("pki/client.pem").exists()
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.with_extension("pid")
    }

    fn log(&self) -> PathBuf {
        self.folder.with_extension("log")
    }
}
