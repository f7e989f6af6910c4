//! Windows of other processes.

use crate::{Error, Result};
use windows_sys::{
    Win32::{
        Foundation::{HWND, LPARAM},
        UI::WindowsAndMessaging::{
            EnumWindows, GW_OWNER, GetWindow, GetWindowThreadProcessId, PostMessageW, WM_CLOSE,
        },
    },
    core::BOOL,
};

struct Search {
    pid: u32,
    found: Vec<HWND>,
}

/// Asks the top-level windows of a process on this process's desktop to close, but for those that another window owns and ends with it;
/// how many there were.
pub fn close(pid: u32) -> Result<usize> {
    let mut search = Search {
        pid,
        found: Vec::new(),
    };
    // SAFETY: `visit` is called during the call only, with the pointer it is given here.
    if unsafe { EnumWindows(Some(visit), (&raw mut search).expose_provenance().cast_signed()) } == 0 {
        return Err(Error::last("EnumWindows"));
    }
    for window in &search.found {
        // SAFETY: takes no pointers; a window that is gone is an error, which is fine.
        unsafe { PostMessageW(*window, WM_CLOSE, 0, 0) };
    }
    Ok(search.found.len())
}

unsafe extern "system" fn visit(window: HWND, search: LPARAM) -> BOOL {
    // SAFETY: `close` passes a pointer to its own variable, which lives during the call.
    let search = unsafe { &mut *std::ptr::with_exposed_provenance_mut::<Search>(search.cast_unsigned()) };
    let mut pid = 0;
    // SAFETY: `pid` takes the result.
    unsafe { GetWindowThreadProcessId(window, &mut pid) };
    // SAFETY: takes no pointers; null where it has no owner.
    let owner = unsafe { GetWindow(window, GW_OWNER) };
    if pid == search.pid && owner.is_null() {
        search.found.push(window);
    }
    1
}
