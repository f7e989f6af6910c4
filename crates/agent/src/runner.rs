//! The task runner: a process of its own for each task, which outlives the agent that started it.
//!
//! For the agent: [`spawn`] starts one, [`Identity::is_alive`] recognises it again, [`has_begun`] tells whether one ever took the task,
//! [`status_from_journal`] and [`status_when_lost`] tell what became of the task.
//!
//! Inside: [`run()`] takes the folder and reads what is to be done; `walk` goes through the lists, `step` through the tries of a step,
//! `attempt` through one try, `exec` through the life of one process, `pump` brings its output into the log. `control` says when
//! something must stop; `link` talks with the agent.

mod attempt;
mod backoff;
mod clean;
mod control;
mod encoding;
mod environment;
mod exec;
mod identity;
mod link;
mod outputs;
mod pump;
mod reboot;
mod run;
mod scope;
mod shell;
mod spawn;
mod status;
mod step;
mod values;
mod walk;

pub use identity::Identity;
pub use run::{Error, run};
pub use spawn::{Options, Recover, Spawned, forbid, spawn};
pub use status::{
    awaited_restart, has_begun, phase_when_stopped, restarting_step, status_from_journal, status_when_lost,
};
