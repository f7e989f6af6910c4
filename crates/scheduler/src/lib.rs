//! The scheduler: decides which waiting work goes to which node and makes Tasks that are bound from the start.
//!
//! [`core`] decides, as a pure state machine; [`run`] feeds it what the API shows and carries its decisions out. Nothing is stored:
//! what is wanted follows from Jobs and Tasks, so a restart rebuilds everything, and two schedulers at once collide on the names of
//! Tasks.

pub mod core;
mod create;
mod driver;
mod members;
mod stop;

pub use driver::{Options, run};
