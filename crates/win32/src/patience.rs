//! Trying again while a virus scanner or an indexer has a file open: they take every fresh file for a moment.

use std::{io, path::Path, time::Duration};
use windows_sys::Win32::Foundation::{
    ERROR_ACCESS_DENIED, ERROR_DELETE_PENDING, ERROR_DIR_NOT_EMPTY, ERROR_LOCK_VIOLATION,
    ERROR_SHARING_VIOLATION, ERROR_USER_MAPPED_FILE, WIN32_ERROR,
};

/// First pause; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(5);
/// How often it is tried again: 2.5 s in all.
const TIMES: u32 = 9;

/// What is gone by itself once the other lets go of the file. Access denied is among them since that is what is said of a file whose
/// deletion waits for its last handle.
const PASSING: [WIN32_ERROR; 6] = [
    ERROR_SHARING_VIOLATION,
    ERROR_LOCK_VIOLATION,
    ERROR_ACCESS_DENIED,
    ERROR_DELETE_PENDING,
    ERROR_DIR_NOT_EMPTY,
    ERROR_USER_MAPPED_FILE,
];

/// Does something with a file, again and again for a while where another program is in the way. The error that is left names what was
/// to be done and the path.
pub fn patiently<T>(doing: &str, path: &Path, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut pause = FIRST;
    let mut left = TIMES;
    loop {
        let error = match attempt() {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if !is_passing(&error) || left == 0 {
            return Err(io::Error::new(
                error.kind(),
                format!("{doing} {}: {error}", path.display()),
            ));
        }
        left -= 1;
        // nobody tells when another process closes its handle
        #[allow(clippy::disallowed_methods)]
        std::thread::sleep(pause);
        pause *= 2;
    }
}

/// Whether an error may be gone in a moment.
fn is_passing(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<crate::Error>());
    let code = inner
        .map(|e| e.code)
        .or_else(|| error.raw_os_error().map(i32::cast_unsigned));
    code.is_some_and(|code| PASSING.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: WIN32_ERROR) -> io::Error {
        io::Error::from_raw_os_error(code.cast_signed())
    }

    /// AL-02.
    #[test]
    fn only_what_passes_is_tried_again_and_the_rest_is_named() {
        let mut tries = 0;
        let done = patiently("removing", Path::new("x"), || {
            tries += 1;
            if tries < 4 {
                Err(of(ERROR_SHARING_VIOLATION))
            } else {
                Ok(tries)
            }
        });
        assert_eq!(done.unwrap(), 4);

        let mut tries = 0;
        let error = patiently("removing", Path::new(r"C:\x"), || {
            tries += 1;
            Err::<(), _>(of(windows_sys::Win32::Foundation::ERROR_FILE_NOT_FOUND))
        });
        assert_eq!(tries, 1);
        assert!(error.unwrap_err().to_string().starts_with(r"removing C:\x: "));
    }

    #[test]
    fn it_ends() {
        let mut tries = 0;
        let error = patiently("renaming", Path::new("x"), || {
            tries += 1;
            Err::<(), io::Error>(crate::Error::of("MoveFileExW", ERROR_ACCESS_DENIED).into())
        });
        assert_eq!(tries, TIMES + 1);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
