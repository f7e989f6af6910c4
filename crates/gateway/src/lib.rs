//! What the server serves over HTTP beside the Kubernetes API: the logs of Tasks.
//!
//! * `put`: an agent ships a range of a step's log.
//! * `get`: anybody who may reads a log, its last lines, or follows it to its end (`follow`).
//! * [`Gateway::run`]: removes the logs of Tasks that are gone, and wakes followers when a Task ends.
//!
//! Who asks is in the request's `api::identity::Identity` extension, set by the API server's authentication. Errors are
//! Kubernetes `Status` objects. Everything about Tasks is read through the API like any other client does.

mod access;
mod follow;
mod get;
mod put;
mod refusal;
mod tail;
mod tasks;

use ::logs::Logs;
use api::task::Task;
use axum::Router;
use informer::Informer;
use kube::Client;
use std::{sync::Arc, time::Duration};
use tasks::Tasks;

/// The routes and the work behind them. Clones are of the same gateway.
#[derive(Clone)]
pub struct Gateway {
    logs: Arc<dyn Logs>,
    tasks: Arc<Tasks>,
    patience: Duration,
}

impl Gateway {
    /// A gateway over `logs`. `tasks` must watch all Tasks and keep each one's `spec.nodeName` and `status`; `client` asks for what it has
    /// not seen yet.
    pub fn new(logs: Arc<dyn Logs>, tasks: Informer<Task>, client: Client) -> Self {
        Self {
            logs,
            tasks: Arc::new(Tasks::new(tasks, client)),
            patience: Duration::from_secs(60),
        }
    }

    /// How long followers of a Task that has ended wait for ranges its agent still owes; default 60 s. An agent may be gone for good.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The routes; authentication is in front of them.
    pub fn router(&self) -> Router {
        Router::new()
            .route(
                "/logs/v1/namespaces/{namespace}/tasks/{task}/{uid}/steps/{step}",
                axum::routing::put(put::put),
            )
            .route(
                "/logs/v1/namespaces/{namespace}/tasks/{task}/steps/{step}",
                axum::routing::get(get::get),
            )
            .with_state(self.clone())
    }

    /// Removes the logs of Tasks that are gone and tells followers of Tasks that ended, for as long as it is polled.
    /// Without it logs pile up and followers do not end.
    pub async fn run(&self) {
        tasks::run(&self.tasks, &*self.logs).await;
    }
}
