//! What all requests share.

use crate::cache::{Cache, Pins};
use crate::documents::Documents;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::server::Options;
use api::clock::Clock;
use std::sync::{Arc, OnceLock};
use store::Store;
use tokio::sync::watch;

/// See the module.
pub(crate) struct Inner {
    pub options: Options,
    pub store: Arc<dyn Store>,
    pub cache: Arc<Cache>,
    pub pins: Pins,
    pub clock: Arc<dyn Clock>,
    pub random: Random,
    pub documents: Documents,
    pub metrics: Metrics,
    /// Other parts' routes, behind the same authentication.
    pub mounted: OnceLock<axum::Router>,
    /// Turns true when the server stops: watches end.
    pub stop: watch::Sender<bool>,
}
