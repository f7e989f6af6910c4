//! The verbs, one file each.

pub mod apply;
pub mod cancel;
pub mod completion;
pub mod controllers;
pub mod cordon;
pub mod delete;
pub mod describe;
pub mod dev;

pub mod get;
pub mod logs;
pub mod node;
pub mod plan;
pub mod resolve;
pub mod run;
pub mod server;

pub mod top;
pub mod version;
pub mod wait;
pub mod why;
