//! Asking the processes of a step to end. Whoever sends a control event leaves its own console for the step's and hears the event too, so
//! a short-lived process does it: `prow-agent send-signal`.

use super::{command_line, process::on_end};
use api::step::StopSignal;
use std::{fs::File, io, os::windows::io::AsHandle};
use win32::{
    console::{self, Event},
    desktop::Desktop,
    job::Job,
    spawn::{Console, Spawn},
    window,
};

/// How processes are asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Ctrl-C in the step's console.
    CtrlC,
    /// Ctrl-Break in the step's console.
    CtrlBreak,
    /// WM_CLOSE to the process's windows.
    Close,
}

/// Exit code of the helper where the process has no window. Windows' own: ERROR_INVALID_WINDOW_HANDLE.
const NO_WINDOW: u32 = 1400;

impl Ask {
    const ALL: [Self; 3] = [Self::CtrlC, Self::CtrlBreak, Self::Close];

    /// What a manifest's stop signal means here; nothing for Kill.
    pub fn of(signal: StopSignal) -> Option<Self> {
        match signal {
            StopSignal::CtrlC => Some(Self::CtrlC),
            StopSignal::CtrlBreak => Some(Self::CtrlBreak),
            StopSignal::Close => Some(Self::Close),
            StopSignal::Kill => None,
        }
    }

    /// What is tried where this cannot be done: programs without a console may have windows.
    pub fn fallback(self) -> Option<Self> {
        match self {
            Self::CtrlC | Self::CtrlBreak => Some(Self::Close),
            Self::Close => None,
        }
    }

    /// Its name as Windows has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CtrlC => "Ctrl-C",
            Self::CtrlBreak => "Ctrl-Break",
            Self::Close => "WM_CLOSE",
        }
    }
}

/// What `prow-agent send-signal` does: asks a process, and with it all of its console, by the name of an [`Ask`]. Its exit code: 0, or the
/// system's error.
pub fn send_signal(pid: u32, name: &str) -> u32 {
    let Some(ask) = Ask::ALL.into_iter().find(|ask| ask.name() == name) else {
        return 87; // ERROR_INVALID_PARAMETER
    };
    let sent = match ask {
        Ask::CtrlC => console::send(pid, Event::CtrlC),
        Ask::CtrlBreak => console::send(pid, Event::CtrlBreak),
        Ask::Close => match window::close(pid) {
            Ok(0) => return NO_WINDOW,
            other => other.map(drop),
        },
    };
    sent.map_or_else(|error| error.code, |()| 0)
}

/// Has it done, by a process in the task's job, on the desktop that the step's windows are on.
pub(super) async fn send(task: &Job, desktop: Option<&Desktop>, pid: u32, ask: Ask) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let nul = File::options().read(true).write(true).open("NUL")?;
    let args = ["send-signal", &pid.to_string(), ask.name()];
    let helper = Spawn {
        program: &program,
        command_line: &command_line::join(program.as_os_str(), &args),
        environment: None,
        folder: &win32::system::system_folder()?,
        streams: [nul.as_handle(), nul.as_handle(), nul.as_handle()],
        jobs: &[task],
        console: Console::None,
        desktop,
        leave_jobs: false,
    }
    .start()?;
    let code = on_end(helper, |code| code).await.map_err(io::Error::other)??;
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.cast_signed())),
    }
}
