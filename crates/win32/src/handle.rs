//! What is shared by all that has a handle.

use crate::{Error, Result};
use std::os::windows::io::{FromRawHandle, OwnedHandle};
use windows_sys::Win32::Foundation::{HANDLE, INVALID_HANDLE_VALUE};

/// Takes ownership of a handle that a call returned; a null or invalid one is that call's failure.
///
/// # Safety
/// The handle must be open and belong to nobody else.
pub(crate) unsafe fn owned(call: &'static str, handle: HANDLE) -> Result<OwnedHandle> {
    if handle.is_null() || handle == INVALID_HANDLE_VALUE {
        return Err(Error::last(call));
    }
    // SAFETY: open and ours alone, as the caller promises.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}
