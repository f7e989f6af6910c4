//! The real agent program against a real API server: claims, crashes, cuts, stops, secrets.
//!
//! The server runs in the test's process, on an in-memory store; agents are processes of their own that reach it through a [`door`]
//! which the test can close. There is no scheduler: tests make Tasks bound as it would.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers outside #[test] functions may panic too

#[cfg(unix)]
mod claiming;
mod crashing;
mod cut_off;
#[cfg(unix)]
mod diagnosing;
mod door;
mod hollow;
mod identity;
#[path = "../programs.rs"]
mod programs;
#[cfg(unix)]
mod rebooting;
#[cfg(unix)]
mod running;
mod stopping;
mod world;
