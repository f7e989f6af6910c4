//! Services: being one, and managing one.
//!
//! `windows-service` does the calls; what it lacks is done here.

mod host;
mod manage;

pub use host::{Control, Controls, Reporter, dispatch};
pub use manage::{Config, Service, State, Status};

use crate::Error;
use windows_sys::Win32::Foundation::{ERROR_INVALID_DATA, ERROR_INVALID_PARAMETER};

/// What `windows-service` says, with the call it is about.
fn of(call: &'static str) -> impl FnOnce(windows_service::Error) -> Error {
    move |error| {
        let code = match error {
            windows_service::Error::Winapi(error) => error.raw_os_error().unwrap_or_default().cast_unsigned(),
            windows_service::Error::ParseValue(..) => ERROR_INVALID_DATA,
            _ => ERROR_INVALID_PARAMETER, // a zero inside of a text
        };
        Error::of(call, code)
    }
}
