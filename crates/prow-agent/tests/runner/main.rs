//! Real task runners, with a fake agent at the other end of the local endpoint. New tests go to the file of what they attack.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test may

mod durability;
mod outcomes;
mod output;
mod processes;
mod rig;
mod secrets;
mod stopping;
mod walking;
