//! Safe wrappers over Win32: each module is one thing of Windows, owns its handles and gives errors that name the call.
//!
//! This is the one crate with unsafe code for Windows; on other systems it is empty. It knows nothing of tasks and steps: what the
//! agent makes of these things is in `agent::platform::windows`.
#![cfg(windows)]

pub mod account;
pub mod clock;
pub mod console;
pub mod desktop;
pub mod environment;
mod error;
pub mod event_log;
mod folder;
mod handle;
pub mod job;
pub mod path;
mod patience;
pub mod pipe;
pub mod private;
pub mod privilege;
pub mod process;
pub mod registry;
pub mod security;
pub mod service;
pub mod shutdown;
pub mod spawn;
pub mod system;
pub mod version;
pub mod volume;
mod wide;
pub mod window;

pub use error::{Error, Result};
pub use folder::{Folder, Kind};
pub use patience::patiently;
