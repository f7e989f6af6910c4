//! The agent and the task runner.
//!
//! The agent watches, claims, reports and ships logs; for each Task it starts a runner, a process of its own that runs the steps.

pub mod codepage;
pub mod crilog;
pub mod hollow;
pub mod journal;
pub mod layout;
pub mod local;
pub mod mask;
pub mod platform;
pub mod runner;
pub mod service;
