//! The agent as a service: installed, started, stopped, upgraded, removed.
//!
//! On Windows, and under Wine, against the host's own service manager, so one test after the other. On Linux into the image of a host.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers outside #[test] functions may panic too

#[cfg(windows)]
#[path = "../agent/door.rs"]
mod door;
#[cfg(unix)]
mod image;
#[cfg(windows)]
mod manager;
#[cfg(windows)]
mod server;
