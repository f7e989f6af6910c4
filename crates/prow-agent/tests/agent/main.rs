//! The real agent program against a real API server: claims, crashes, cuts, stops, secrets.
//!
//! The server runs in the test's process, on an in-memory store; agents are processes of their own that reach it through a [`door`]
//! which the test can close. There is no scheduler: tests make Tasks bound as it would.

mod claiming;
mod crashing;
mod cut_off;
mod door;
mod hollow;
mod running;
mod stopping;
mod world;
