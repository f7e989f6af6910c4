//! Strings as Win32 takes them: UTF-16 with a zero at the end.

use std::{
    ffi::{OsStr, OsString},
    os::windows::ffi::{OsStrExt, OsStringExt},
};

/// The text with a zero at its end. What stands behind a zero inside the text is lost to Windows, so callers refuse such text first.
pub(crate) fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// A text up to its first zero.
pub(crate) fn text(wide: &[u16]) -> OsString {
    let end = wide.iter().position(|unit| *unit == 0).unwrap_or(wide.len());
    OsString::from_wide(&wide[..end])
}

/// The text at a pointer, up to its zero.
///
/// # Safety
/// `start` points to UTF-16 that ends with a zero and stays as it is during the call.
pub(crate) unsafe fn text_at(start: *const u16) -> OsString {
    let mut len = 0;
    // SAFETY: everything before the zero is readable, as the caller promises.
    while unsafe { *start.add(len) } != 0 {
        len += 1;
    }
    // SAFETY: the loop has read all of it.
    OsString::from_wide(unsafe { std::slice::from_raw_parts(start, len) })
}
