//! Scheduler and controllers against the real API server, with agents that only pretend to run things. Time is simulated.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too, which clippy does not see

#[path = "control/world.rs"]
mod world;

#[path = "control/agent.rs"]
mod agent;

#[path = "control/deletes.rs"]
mod deletes;
#[path = "control/loss.rs"]
mod loss;
#[path = "control/nodes.rs"]
mod nodes;
#[path = "control/restarts.rs"]
mod restarts;
#[path = "control/runs.rs"]
mod runs;
