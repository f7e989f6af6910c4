//! What identifies a process, and starting one that outlives us.

use super::command_line;
use crate::runner::Identity;
use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::windows::{io::AsHandle, process::ExitStatusExt},
    path::Path,
    process::ExitStatus,
    sync::LazyLock,
};
use tokio::{sync::oneshot, task::JoinHandle};
use win32::{
    console,
    process::{self, Process},
    spawn::{Console, Spawn},
};

/// Exit code of what was ended by us, so that it is not taken for one of a program: it has no name in Windows and is no HRESULT.
pub(super) const ENDED: u32 = 0x2050_0057;
/// ERROR_ACCESS_DENIED.
pub(super) const DENIED: u32 = 5;

/// When a process was created, in 100 ns since 1601; `None` if there is no such process.
pub fn created(pid: u32) -> Option<u64> {
    let process = living(pid)?;
    Some(process.times().ok()?.created)
}

/// A process that lives.
pub(super) fn living(pid: u32) -> Option<Process> {
    Process::open(pid).ok()?.filter(|process| !process.has_ended())
}

/// The program of a process, as an absolute path.
pub fn image(pid: u32) -> io::Result<String> {
    let process = Process::open(pid)?.ok_or(io::ErrorKind::NotFound)?;
    Ok(process.image()?.to_string_lossy().into_owned())
}

/// Sees to it that Ctrl-C reaches the steps: a flag to ignore it is inherited. A runner has no console that could end it.
pub fn detach_from_session() -> io::Result<()> {
    Ok(console::heed_ctrl_c()?)
}

/// Ends this very process at once; one that is gone is fine.
pub fn end_process(identity: &Identity) {
    if let Ok(Some(process)) = Process::open(identity.pid)
        && identity.is_alive()
    {
        let _ = process.terminate(ENDED); // gone in between
    }
}

/// Whether runners go on when the agent's process ends: not if it is in a job that lets none leave, as under some shells, build servers
/// and container hosts. Found out once: it stays so.
pub fn runners_survive() -> bool {
    static SURVIVE: LazyLock<bool> =
        LazyLock::new(|| !process::is_in_job().unwrap_or(false) || leaves_jobs());
    *SURVIVE
}

/// What it means where they do not.
pub const RUNNERS_DIE: &str =
    "the agent is in a job that lets no process leave, so running steps end with it: start it as a service";

/// Whether a process started here may leave the jobs we are in; tried with one that does nothing.
fn leaves_jobs() -> bool {
    let (Ok(folder), Ok(nul)) = (win32::system::system_folder(), File::open("NUL")) else {
        return false;
    };
    let program = folder.join("cmd.exe");
    let spawn = Spawn {
        program: &program,
        command_line: OsStr::new("cmd.exe /d /c exit 0"),
        environment: None,
        folder: &folder,
        streams: [nul.as_handle(), nul.as_handle(), nul.as_handle()],
        jobs: &[],
        console: Console::None,
        desktop: None,
        leave_jobs: true,
    };
    spawn.start().is_ok()
}

/// A process that does not end with us.
pub struct Detached {
    /// Its pid.
    pub pid: u32,
    /// Resolves with its end. Dropping it changes nothing for the process.
    pub ended: JoinHandle<io::Result<ExitStatus>>,
}

/// Starts a process without a console, in none of our jobs where these let it go, with nothing of ours but `log` for what it says.
pub fn start_detached(program: &Path, args: &[&OsStr], folder: &Path, log: &File) -> io::Result<Detached> {
    let nul = File::open("NUL")?;
    let command_line = command_line::join(program.as_os_str(), args);
    let spawn = |leave_jobs| {
        Spawn {
            program,
            command_line: &command_line,
            environment: None,
            folder,
            streams: [nul.as_handle(), nul.as_handle(), log.as_handle()],
            jobs: &[],
            console: Console::None,
            desktop: None,
            leave_jobs,
        }
        .start()
    };
    let process = match spawn(process::is_in_job()?) {
        Err(error) if error.code == DENIED => spawn(false),
        other => other,
    }?;
    let pid = process.pid();
    let ended = on_end(process, |code| code);
    Ok(Detached {
        pid,
        ended: tokio::spawn(async {
            let code = ended.await.map_err(io::Error::other)?;
            code.map(ExitStatus::from_raw)
        }),
    })
}

/// Waits for the end of a process on a thread of its own: there are few, and the system calls nobody back on ours.
pub(super) fn on_end<T: Send + 'static>(
    process: Process,
    tell: impl FnOnce(io::Result<u32>) -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (told, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let code = process.wait().map_err(io::Error::from);
        let _ = told.send(tell(code)); // nobody may wait any more
    });
    ended
}
