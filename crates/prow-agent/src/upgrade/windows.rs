//! Upgrades of the Windows service.

use super::{
    Upgrade,
    handover::{self, Host, Record, Stage},
};
use crate::{
    programs::{PROGRAM, Programs},
    service::{
        check_administrator, check_supported,
        events::Event,
        process::HAND_OVER,
        windows::{managed, split, with_program},
    },
};
use agent::{layout::DataDir, platform, service::home};
use anyhow::{Context, bail};
use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use win32::{
    process::Process,
    service::{Service, State},
};

const RECORD: &str = "upgrade.json";
const LOCK: &str = "upgrade.lock";
const GUARD: &str = "upgrade-guard.xml";
/// Name of the guard among the scheduled tasks.
const TASK: &str = r"Prow\upgrade guard";
const LOOK: Duration = Duration::from_millis(200);
/// How long the service may take to end before it is ended.
const END: Duration = Duration::from_secs(30);
/// How long Windows may take to start it again, by its failure actions, before we do.
const RESTART: Duration = Duration::from_secs(5);

/// The last upgrade of a data folder's agent, in words.
pub fn last(data_dir: &Path) -> Option<String> {
    let record = load(data_dir).ok()??;
    let (from, to) = (record.from.display(), record.to.display());
    Some(match record.stage {
        Stage::Pending => format!("under way, to {to}"),
        Stage::Done => format!("done, to {to}"),
        Stage::TakenBack { why } => format!("taken back to {from}: {why}"),
    })
}

/// Whether the service is to hand over to another version.
pub fn is_under_way(data_dir: &Path) -> bool {
    load(data_dir).is_ok_and(|record| record.is_some_and(|record| record.stage == Stage::Pending))
}

fn load(data_dir: &Path) -> anyhow::Result<Option<Record>> {
    let path = data_dir.join(RECORD);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(Some(
            serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", path.display()))?,
        )),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e).with_context(|| format!("cannot read {}", path.display())),
    }
}

impl Upgrade {
    /// Begins an upgrade, or as the guard ends one.
    pub fn run(self) -> anyhow::Result<()> {
        check_administrator()?;
        let data = DataDir::open(&self.data_dir)?;
        let mut host = ThisHost {
            service: managed()?,
            data: data.path().to_owned(),
            patience: Duration::from_secs(self.patience_seconds),
            end: None,
        };
        let Some(new) = self.to.filter(|_| !self.guard) else {
            let _lock = wait_for_lock(&host.data)?;
            if is_under_way(&host.data)
                && let Some(stage) = handover::settle(&mut host)?
            {
                tell(&host, &stage);
            }
            return host.disarm();
        };
        check_supported()?;
        let lock = platform::lock(&host.data.join(LOCK))?;
        let _lock = lock.context("another upgrade is under way")?;
        let version = version_of(&new)?;
        let to = Programs::of(&host.program()?)?.add(&new, &version)?;
        Event::UpgradeBegun(format!("to {version}, {}", to.display())).report();
        home::drop_healthy(&host.data)?;
        let stage = handover::upgrade(&mut host, &to)?;
        tell(&host, &stage);
        match stage {
            Stage::TakenBack { why } => bail!("the upgrade to {version} was taken back: {why}"),
            _ => println!("upgraded     {version}, {}", to.display()),
        }
        Ok(())
    }
}

fn tell(host: &ThisHost, stage: &Stage) {
    let program = host.program().unwrap_or_default();
    match stage {
        Stage::TakenBack { why } => {
            Event::UpgradeTakenBack(format!("{why}; the service runs {} again", program.display())).report();
        }
        _ => Event::UpgradeDone(program.display().to_string()).report(),
    }
}

/// The command that began may still be at it.
fn wait_for_lock(data_dir: &Path) -> anyhow::Result<File> {
    loop {
        if let Some(lock) = platform::lock(&data_dir.join(LOCK))? {
            return Ok(lock);
        }
        pause();
    }
}

/// Between looks at other processes, of which nobody tells.
#[allow(clippy::disallowed_methods)]
fn pause() {
    std::thread::sleep(LOOK);
}

/// Asks a program for its version: one that cannot run here is refused before anything changes.
fn version_of(program: &Path) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg("version")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text
        .trim()
        .strip_prefix("prow-agent ")
        .filter(|_| output.status.success());
    let version = version
        .filter(|v| !v.is_empty() && v.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c)));
    version.map(str::to_owned).with_context(|| {
        format!(
            "{} is no {PROGRAM}: `version` says {:?}",
            program.display(),
            text.trim()
        )
    })
}

struct ThisHost {
    service: Service,
    data: PathBuf,
    patience: Duration,
    /// When the patience is over, once somebody has waited.
    end: Option<Instant>,
}

impl ThisHost {
    fn process(&self) -> anyhow::Result<Option<Process>> {
        let pid = self.service.status()?.pid;
        Ok(pid.map(Process::open).transpose()?.flatten())
    }
}

impl Host for ThisHost {
    type Error = anyhow::Error;

    fn program(&self) -> anyhow::Result<PathBuf> {
        Ok(split(&self.service.command_line()?)?.0)
    }

    fn set_program(&mut self, program: &Path) -> anyhow::Result<()> {
        let (_, rest) = split(&self.service.command_line()?)?;
        Ok(self.service.set_command_line(&with_program(program, &rest))?)
    }

    fn running(&self) -> anyhow::Result<Option<PathBuf>> {
        let image = self.process()?.map(|process| process.image()).transpose()?;
        Ok(image.map(PathBuf::from))
    }

    fn hand_over(&mut self) -> anyhow::Result<()> {
        let before = self.service.status()?.pid;
        if let Some(process) = self.process()? {
            // One that hangs or is on its way heeds no control.
            let _ = self.service.control(HAND_OVER);
            let end = Instant::now() + END;
            while !process.has_ended() && Instant::now() < end {
                pause();
            }
            process.terminate(1)?;
        }
        // Windows starts it again since it did not end well; where it does not, we do.
        let end = Instant::now() + RESTART;
        while Instant::now() < end {
            let status = self.service.status()?;
            if status.pid.is_some() && status.pid != before {
                return Ok(());
            }
            pause();
        }
        match self.service.status()?.state {
            State::Running | State::Starting
                if self.process()?.is_some_and(|process| !process.has_ended()) =>
            {
                Ok(())
            }
            _ => Ok(self.service.start()?),
        }
    }

    fn at_work(&self) -> Option<PathBuf> {
        home::healthy(&self.data).map(|process| process.image.into())
    }

    fn wait(&mut self) -> bool {
        let patience = self.patience;
        let end = *self.end.get_or_insert_with(|| Instant::now() + patience);
        pause();
        Instant::now() < end
    }

    fn arm(&mut self, record: &Record) -> anyhow::Result<()> {
        let path = self.data.join(GUARD);
        let text = guard(&record.from, &self.data, self.patience)?;
        let bytes: Vec<u8> = std::iter::once(0xFEFF)
            .chain(text.encode_utf16())
            .flat_map(u16::to_le_bytes)
            .collect();
        platform::write_private(&path, &bytes)?;
        schtasks(&[
            "/create".as_ref(),
            "/f".as_ref(),
            "/tn".as_ref(),
            TASK.as_ref(),
            "/xml".as_ref(),
            path.as_os_str(),
        ])
        .context("the guard of the upgrade cannot be scheduled, so nothing was changed")
    }

    fn disarm(&mut self) -> anyhow::Result<()> {
        let path = self.data.join(GUARD);
        if !path.exists() {
            return Ok(());
        }
        schtasks(&["/delete".as_ref(), "/f".as_ref(), "/tn".as_ref(), TASK.as_ref()])?;
        Ok(std::fs::remove_file(&path)?)
    }

    fn record(&self) -> anyhow::Result<Option<Record>> {
        load(&self.data)
    }

    fn keep(&mut self, record: &Record) -> anyhow::Result<()> {
        let (path, part) = (self.data.join(RECORD), self.data.join("upgrade.part"));
        platform::write_private(&part, &serde_json::to_vec(record)?)?;
        File::options().write(true).open(&part)?.sync_all()?;
        Ok(platform::rename(&part, &path)?)
    }
}

fn schtasks(args: &[&std::ffi::OsStr]) -> anyhow::Result<()> {
    let program = win32::system::system_folder()?.join("schtasks.exe");
    let output = Command::new(&program).args(args).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!("schtasks: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// The guard as a scheduled task: the old program, a minute from now and after each boot, as SYSTEM. Source: Task Scheduler Schema.
fn guard(program: &Path, data_dir: &Path, patience: Duration) -> anyhow::Result<String> {
    let arguments = format!(
        "upgrade --guard --patience-seconds {} --data-dir \"{}\"",
        patience.as_secs(),
        data_dir
            .to_str()
            .context("the data folder's name is no Unicode")?
    );
    let program = program.to_str().context("the program's path is no Unicode")?;
    Ok(format!(
        r#"<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo><Description>Brings the Prow agent back if an upgrade of it fails.</Description></RegistrationInfo>
  <Triggers>
    <BootTrigger/>
    <RegistrationTrigger><Delay>PT1M</Delay></RegistrationTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author"><UserId>S-1-5-18</UserId><RunLevel>HighestAvailable</RunLevel></Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT2H</ExecutionTimeLimit>
  </Settings>
  <Actions Context="Author">
    <Exec><Command>{}</Command><Arguments>{}</Arguments></Exec>
  </Actions>
</Task>
"#,
        escaped(program),
        escaped(&arguments)
    ))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_runs_the_old_program_on_the_same_data() {
        let program = Path::new(r"C:\Program Files\R&D\1\prow-agent.exe");
        let text = guard(program, Path::new(r"D:\a b"), Duration::from_secs(180)).unwrap();
        assert!(
            text.contains(r"<Command>C:\Program Files\R&amp;D\1\prow-agent.exe</Command>"),
            "{text}"
        );
        let arguments = "upgrade --guard --patience-seconds 180 --data-dir &quot;D:\\a b&quot;";
        assert!(
            text.contains(&format!("<Arguments>{arguments}</Arguments>")),
            "{text}"
        );
    }
}
