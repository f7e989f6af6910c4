//! The controllers: one module each, level-triggered. They compare what is wanted with what the shared watches show and act by
//! compare-and-swap; doing anything twice changes nothing.
//!
//! - `job`: a Job's status from its Tasks, snapshots, stops, ends of Tasks no agent will end, finalizers;
//! - `node`: loss of nodes and what follows for their Tasks, labels from facts, evictions;
//! - `disruption`: cordons and drains nodes for disruptive work, allows restarts, gives nodes back;
//! - `ttl`: finished Jobs go after their time, or when there are too many;
//! - `gc`: what belonged to something that is gone;
//! - `namespace`: empties namespaces that are being deleted;
//! - `counts`: the numbers in the status of Queues and Targets;
//! - `tokens`: enrolment tokens that are used up or have ended;
//! - `events`: what an operator would want to know, and the expiry of that.
//!
//! [`run`] runs all of them for as long as it is polled; whoever elects a leader runs it while it leads.

mod context;
mod counts;
mod disruption;
mod error;
mod events;
mod gc;
mod job;
mod keyed;
mod namespace;
mod node;
mod patch;
mod run;
mod tasks;
mod tokens;
mod ttl;

pub use context::Options;
pub use run::run;
