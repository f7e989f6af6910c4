//! Safe wrappers over Win32: each module is one thing of Windows, owns its handles and gives errors that name the call.
//!
//! This is the one crate with unsafe code for Windows; on other systems it is empty. It knows nothing of tasks and steps: what the
//! agent makes of these things is in `agent::platform::windows`.
#![cfg(windows)]

mod error;
mod handle;
pub mod registry;
mod wide;

pub use error::{Error, Result};
