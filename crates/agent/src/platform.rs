//! Everything that differs between operating systems, as one set of functions and types; the rest of the crate is the same everywhere.
//!
//! `imp` is `unix` on Unix. A second module for Windows offers the same names: files private to the account, the identity of processes
//! and of the boot, the local endpoint, a step's processes and their containment, the base environment, the way to a program.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
use unix as imp;

pub use imp::*;
