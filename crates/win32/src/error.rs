//! A failed call: which one, and what Windows said.

use std::{fmt, io};

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// A call that failed.
#[derive(Debug)]
pub struct Error {
    /// Name of the function, such as `CreateJobObjectW`.
    pub call: &'static str,
    /// The Win32 error code. Source: System Error Codes of the Win32 documentation.
    pub code: u32,
}

impl Error {
    /// The calling thread's last error, of this call. To be made right after it.
    pub fn last(call: &'static str) -> Self {
        let code = io::Error::last_os_error().raw_os_error().unwrap_or_default();
        Self {
            call,
            code: code.cast_unsigned(),
        }
    }

    /// With a code that the call returned itself.
    pub fn of(call: &'static str, code: u32) -> Self {
        Self { call, code }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = io::Error::from_raw_os_error(self.code.cast_signed());
        write!(f, "{}: {text}", self.call)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = io::Error::from_raw_os_error(error.code.cast_signed()).kind();
        io::Error::new(kind, error)
    }
}
