//! The verbs of the API, one file each.

pub(crate) mod admit;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod read;
pub(crate) mod update;
pub(crate) mod watch;

use axum::body::Body;
use http::Response;
use machinery::status::Status;

/// What a verb gives.
pub(crate) type Outcome = Result<Response<Body>, Status>;
