//! Control events of consoles: Ctrl-C and Ctrl-Break.

use crate::{Error, Result};
use windows_sys::Win32::System::Console::{
    AttachConsole, CTRL_BREAK_EVENT, CTRL_C_EVENT, FreeConsole, GenerateConsoleCtrlEvent,
    SetConsoleCtrlHandler,
};

/// What all processes of a console are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// As typed by a user: programs may handle it.
    CtrlC,
    /// The same with fewer who do; it breaks into the debugger of Windows PowerShell.
    CtrlBreak,
}

/// Tells all processes that share the console of process `pid`. This process leaves its own console for it and is not ended by the
/// event, but is of little use afterwards: do it in a process made for the purpose.
pub fn send(pid: u32, event: Event) -> Result<()> {
    let event = match event {
        Event::CtrlC => CTRL_C_EVENT,
        Event::CtrlBreak => CTRL_BREAK_EVENT,
    };
    // SAFETY: none of these takes a pointer but the handler, which may be null: that is to ignore Ctrl-C. It is set after the console
    // was attached to, which resets it.
    unsafe {
        FreeConsole(); // there may be none
        if AttachConsole(pid) == 0 {
            return Err(Error::last("AttachConsole"));
        }
        SetConsoleCtrlHandler(Some(ignore), 1);
        // group 0 is all processes of the console
        let sent = match GenerateConsoleCtrlEvent(event, 0) {
            0 => Err(Error::last("GenerateConsoleCtrlEvent")),
            _ => Ok(()),
        };
        FreeConsole();
        sent
    }
}

/// Says of every event that it was handled.
unsafe extern "system" fn ignore(_event: u32) -> i32 {
    1
}

/// Lets Ctrl-C reach this process and those it starts, whatever the one that started it has set.
pub fn heed_ctrl_c() -> Result<()> {
    // SAFETY: no handler, so no pointer: this clears the inherited flag to ignore Ctrl-C.
    match unsafe { SetConsoleCtrlHandler(None, 0) } {
        0 => Err(Error::last("SetConsoleCtrlHandler")),
        _ => Ok(()),
    }
}
