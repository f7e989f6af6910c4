//! Real servers and agents for end-to-end tests: processes on a free port, in a temporary folder, gone when the test is.
//!
//! [`System::start`] runs `prow dev` and waits for its ready line; [`System::client`] talks to it; [`System::kill_server`],
//! [`System::agent`] and [`System::runners`] are for tests that break things; [`wait`] awaits what a Job becomes, by watching.
//! The programs come from `$PROW_BIN`, else from where the test itself was built.

mod logs;
mod process;
mod programs;
mod system;
pub mod wait;

pub use logs::log;
pub use process::Process;
pub use programs::program;
pub use system::{Options, System};
