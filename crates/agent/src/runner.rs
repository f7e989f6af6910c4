//! The task runner: a process of its own for each task, which outlives the agent that started it.
//!
//! For the agent: [`spawn`] starts one, [`Identity::is_alive`] recognises it again, [`has_begun`] tells whether one ever took the task,
//! [`status_from_journal`] and [`status_when_lost`] tell what became of the task.

mod identity;
mod spawn;
mod status;

pub use identity::Identity;
pub use spawn::{Options, Recover, Spawned, spawn};
pub use status::{has_begun, status_from_journal, status_when_lost};
