//! What all parts of the agent share.

use super::{
    abandoned::Abandoned, capacity::Capacity, cleanup::Kept, connection::Server, departure::Departure,
    home::Home, lease::Renewal, restart_wish::RestartWish, settings::Settings, work::Works,
};
use api::clock::Clock;
use std::sync::Arc;
use tokio::sync::watch;

/// This agent: who it is, whom it talks to, what it has.
pub struct Host {
    /// Name of the node.
    pub node: String,
    /// The data folder.
    pub home: Home,
    /// The server; tells how far the clocks differ.
    pub server: Server,
    /// For requests that are answered at once.
    pub client: kube::Client,
    /// For logs, on connections of their own.
    pub logs: kube::Client,
    /// Work of Jobs.
    pub works: Works,
    /// What tasks have taken of the host.
    pub capacity: Capacity,
    /// When the Lease was renewed.
    pub renewals: watch::Receiver<Renewal>,
    /// The host's clock.
    pub clock: Arc<dyn Clock>,
    /// What the agent was told.
    pub settings: Settings,
    /// Finished tasks whose folders are kept.
    pub kept: Kept,
    /// Whether the host goes down.
    pub departure: Departure,
    /// Processes that could not be ended.
    pub abandoned: Abandoned,
    /// A restart of the host that a step asked for and nobody may order.
    pub wish: RestartWish,
}
