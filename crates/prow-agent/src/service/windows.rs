//! The service manager of Windows.

use super::{DESCRIPTION, HOST_WAITS, NAME, State as Told, Wanted, events::SOURCE};
use anyhow::{Context, bail};
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};
use win32::{
    Folder,
    account::Account,
    event_log,
    security::{Descriptor, is_administrator},
    service::{Config, Service, State, Status},
    version,
};

/// How long after its first, second, ... failure the service is started again.
const RESTART_AFTER: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(60),
];
/// How long the service may take to start or stop.
const PATIENCE: Duration = Duration::from_secs(60);
/// What an account needs to be the agent's: to be a service, to start steps, to restart the host. Source: Account Rights Constants and
/// Privilege Constants of the Win32 documentation.
const RIGHTS: [&str; 4] = [
    "SeServiceLogonRight",
    "SeAssignPrimaryTokenPrivilege",
    "SeIncreaseQuotaPrivilege",
    "SeShutdownPrivilege",
];
/// First build of Windows 10 1809 and Windows Server 2019: before them there are no jobs that a process is born in together with the rest
/// the runner needs, and no support by Microsoft any more.
const OLDEST_BUILD: u32 = 17_763;

/// Where programs are installed.
pub fn default_programs() -> anyhow::Result<PathBuf> {
    let folder = std::env::var_os("ProgramFiles").context("%ProgramFiles% is not set")?;
    Ok(PathBuf::from(folder).join("Prow"))
}

/// Whether this host can have the agent as a service.
pub fn check_supported() -> anyhow::Result<()> {
    let version = version::current().context("cannot tell which Windows this is")?;
    supported(version.major, version.build, &version.name)
}

fn supported(major: u32, build: u32, name: &str) -> anyhow::Result<()> {
    if major >= 10 && build >= OLDEST_BUILD {
        return Ok(());
    }
    bail!(
        "{name} (build {build}) is too old: the agent needs Windows Server 2019, Windows 10 1809 (build {OLDEST_BUILD}) or newer, \
         since older ones cannot hold a step's processes together from their birth"
    )
}

/// Only administrators may change services.
pub fn check_administrator() -> anyhow::Result<()> {
    if is_administrator()? {
        return Ok(());
    }
    bail!("only an administrator may do this: use a prompt that was opened with \"Run as administrator\"")
}

/// Accounts whose password nobody needs to know.
pub fn check_account(account: Option<&str>) -> anyhow::Result<()> {
    match account {
        None => Ok(()),
        Some(name) if is_passwordless(name) => Ok(()),
        Some(name) => bail!(
            "--service-account {name}: an account with a password is not supported: give a group managed service account \
             such as CORP\\prow$, or leave it out for LocalSystem"
        ),
    }
}

fn is_passwordless(name: &str) -> bool {
    let virtual_account = format!(r"NT SERVICE\{NAME}");
    name.contains('\\') && name.ends_with('$') || name.eq_ignore_ascii_case(&virtual_account)
}

/// Lets the service's account use the data folder, which was made private.
pub fn prepare_data_folder(wanted: &Wanted) -> anyhow::Result<()> {
    let Some(name) = &wanted.account else {
        return Ok(());
    };
    let account = Account::named(name).with_context(|| format!("account {name}"))?;
    account
        .grant(&RIGHTS)
        .with_context(|| format!("cannot give rights to {name}"))?;
    let folder = Folder::open_to_stamp(&wanted.data_dir)?;
    Descriptor::private_folder_for(&account.sid()?)?.stamp(&folder)?;
    Ok(())
}

/// The service manager.
pub struct Manager;

impl Manager {
    /// Of this host.
    pub fn new() -> Self {
        Self
    }

    /// Whether there is such a service.
    pub fn is_installed(&self) -> anyhow::Result<bool> {
        Ok(Service::open(NAME)?.is_some())
    }

    /// Makes the service, or makes it like this; whether that changed which program it runs, or how.
    pub fn install(&self, wanted: &Wanted) -> anyhow::Result<bool> {
        let before = match Service::open(NAME)? {
            Some(service) => Some((service.command_line()?, service.account()?)),
            None => None,
        };
        event_log::register(SOURCE)?;
        let (service, made) = Service::install(&Config {
            name: NAME.to_owned(),
            display_name: "Prow agent".to_owned(),
            description: DESCRIPTION.to_owned(),
            program: wanted.program.clone(),
            arguments: arguments(&wanted.data_dir),
            account: wanted.account.clone(),
            preshutdown: HOST_WAITS,
            restart_after: RESTART_AFTER.to_vec(),
        })?;
        Ok(made || before != Some((service.command_line()?, service.account()?)))
    }

    /// Starts it, anew if it runs.
    pub fn restart(&self) -> anyhow::Result<()> {
        self.stop()?;
        self.start()
    }

    /// Starts it, and waits until it runs.
    pub fn start(&self) -> anyhow::Result<()> {
        let service = managed()?;
        if service.status()?.state == State::Stopped {
            service.start().context("the service cannot be started")?;
        }
        settled(&service, State::Running)
    }

    /// Stops it, and waits until it has; runners go on.
    pub fn stop(&self) -> anyhow::Result<()> {
        let service = managed()?;
        service.wait_for_start(PATIENCE)?;
        service.stop().context("the service cannot be stopped")?;
        settled(&service, State::Stopped)
    }

    /// Removes it.
    pub fn remove(&self) -> anyhow::Result<()> {
        if let Some(service) = Service::open_to_manage(NAME)? {
            service.delete().context("the service cannot be removed")?;
        }
        event_log::unregister(SOURCE)?;
        Ok(())
    }

    /// How it is doing; `None` if there is no such service.
    pub fn state(&self) -> anyhow::Result<Option<Told>> {
        let Some(service) = Service::open(NAME)? else {
            return Ok(None);
        };
        let status = service.status()?;
        Ok(Some(Told {
            runs: matches!(status.state, State::Starting | State::Running),
            words: words(&status),
        }))
    }
}

/// The service, to be changed.
pub fn managed() -> anyhow::Result<Service> {
    Service::open_to_manage(NAME)?
        .context("the agent is not installed as a service: use `prow-agent install`")
}

fn settled(service: &Service, wanted: State) -> anyhow::Result<()> {
    let status = service.wait_for(wanted, PATIENCE)?;
    if status.state == wanted {
        return Ok(());
    }
    bail!("the service is {} after {} s", words(&status), PATIENCE.as_secs())
}

fn words(status: &Status) -> String {
    let state = match status.state {
        State::Stopped => "stopped",
        State::Starting => "starting",
        State::Stopping => "stopping",
        State::Running => "running",
        State::Paused => "paused",
    };
    match (status.pid, status.exit_code) {
        (Some(pid), _) => format!("{state}, pid {pid}"),
        (None, 0) => state.to_owned(),
        (None, code) => format!("{state}, exit code {code}"),
    }
}

fn arguments(data_dir: &Path) -> Vec<OsString> {
    let words = ["run", "--service", "--data-dir"].map(OsString::from);
    words
        .into_iter()
        .chain([data_dir.as_os_str().to_owned()])
        .collect()
}

/// The program of an ImagePath, and what stands behind it.
pub fn split(command_line: &OsStr) -> anyhow::Result<(PathBuf, String)> {
    let text = command_line
        .to_str()
        .context("the service's ImagePath is no Unicode")?;
    let (program, rest) = match text.strip_prefix('"') {
        Some(quoted) => quoted
            .split_once('"')
            .context("the service's ImagePath has no second quote")?,
        None => text.split_at(text.find(' ').unwrap_or(text.len())),
    };
    Ok((program.into(), rest.to_owned()))
}

/// An ImagePath with another program; always in quotes, so that no space in it runs another one.
pub fn with_program(program: &Path, rest: &str) -> OsString {
    let mut line = OsString::from("\"");
    line.push(program);
    line.push("\"");
    line.push(rest);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_systems_are_refused_with_the_reason() {
        assert!(supported(10, 17_763, "Windows Server 2019").is_ok());
        assert!(supported(10, 26_100, "Windows 11").is_ok());
        for (major, build) in [(10, 14_393), (10, 17_762), (6, 9600)] {
            let error = supported(major, build, "Windows Server 2016")
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("Server 2019") && error.contains(&build.to_string()),
                "{error}"
            );
        }
    }

    #[test]
    fn only_accounts_without_a_password_are_taken() {
        for name in [r"CORP\prow$", r"nt service\prow-agent"] {
            assert!(check_account(Some(name)).is_ok(), "{name}");
        }
        assert!(check_account(None).is_ok());
        for name in [r"CORP\admin", "prow$", r"NT SERVICE\other", ""] {
            assert!(check_account(Some(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn another_program_leaves_the_arguments_as_they_are() {
        let line = r#""C:\Program Files\Prow\1\prow-agent.exe" run --service --data-dir "D:\a b""#;
        let (program, rest) = split(OsStr::new(line)).unwrap();
        assert_eq!(program, Path::new(r"C:\Program Files\Prow\1\prow-agent.exe"));
        assert_eq!(with_program(&program, &rest), line);
        let (program, rest) = split(OsStr::new(r"P:\x\prow-agent.exe run")).unwrap();
        assert_eq!(with_program(&program, &rest), r#""P:\x\prow-agent.exe" run"#);
        assert!(split(OsStr::new("\"C:\\broken")).is_err());
    }
}
