//! The API over real HTTP and TLS. A new test goes to the file of its verb; what several verbs share to `objects`.

#![allow(clippy::unwrap_used, clippy::expect_used)] // the helpers are tests too, which clippy does not see

#[path = "api/harness.rs"]
mod harness;

#[path = "api/deletes.rs"]
mod deletes;
#[path = "api/enrolment.rs"]
mod enrolment;
#[path = "api/lists.rs"]
mod lists;
#[path = "api/nodes.rs"]
mod nodes;
#[path = "api/objects.rs"]
mod objects;
#[path = "api/patches.rs"]
mod patches;
#[path = "api/paths.rs"]
mod paths;
#[path = "api/status.rs"]
mod status;
#[path = "api/watches.rs"]
mod watches;
