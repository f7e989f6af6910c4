//! Real task runners, with a fake agent at the other end of the local endpoint. New tests go to the file of what they attack.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may

#[cfg(windows)]
mod cmd;
#[cfg(unix)]
mod durability;
#[cfg(unix)]
mod outcomes;
#[cfg(unix)]
mod output;
#[cfg(unix)]
mod processes;
#[path = "../programs.rs"]
mod programs;
mod rig;
#[cfg(unix)]
mod secrets;
#[cfg(unix)]
mod shells;
#[cfg(unix)]
mod stopping;
#[cfg(unix)]
mod walking;
#[cfg(windows)]
mod windows;
