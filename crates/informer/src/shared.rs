//! The informers that scheduler and controllers of one process share.

use crate::{Informer, Options};
use api::{Job, Node, Queue, Target, Task};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::Client;

/// The namespace of the nodes' heartbeats.
pub const NODE_LEASES: &str = "prow-node-leases";

/// One informer a kind.
#[derive(Clone)]
#[allow(missing_docs)] // each is what its name says
pub struct Shared {
    pub jobs: Informer<Job>,
    /// Without their work and their steps' outputs and messages; filed under [`of_job`] and [`on_node`].
    pub tasks: Informer<Task>,
    pub nodes: Informer<Node>,
    pub queues: Informer<Queue>,
    pub targets: Informer<Target>,
    pub namespaces: Informer<Namespace>,
    /// Heartbeats of nodes.
    pub leases: Informer<Lease>,
}

/// Where the Tasks of a Job are filed.
pub fn of_job(uid: &str) -> String {
    format!("job/{uid}")
}

/// Where the Tasks of a node are filed.
pub fn on_node(name: &str) -> String {
    format!("node/{name}")
}

impl Shared {
    /// Starts to watch. Must be called within a Tokio runtime.
    pub fn start(client: &Client) -> Self {
        Self {
            jobs: Informer::start(client.clone(), Options::all()),
            tasks: Informer::start(
                client.clone(),
                Options::all()
                    .trim(trim_task)
                    .index(|task: &Task| vec![of_job(&task.spec.job_ref.uid), on_node(&task.spec.node_name)]),
            ),
            nodes: Informer::start(client.clone(), Options::all()),
            queues: Informer::start(client.clone(), Options::all()),
            targets: Informer::start(client.clone(), Options::all()),
            namespaces: Informer::start(client.clone(), Options::all()),
            leases: Informer::start(client.clone(), Options::namespaced(NODE_LEASES)),
        }
    }

    /// Waits until everything there was at the start has been seen once.
    pub async fn synced(&self) {
        self.jobs.synced().await;
        self.tasks.synced().await;
        self.nodes.synced().await;
        self.queues.synced().await;
        self.targets.synced().await;
        self.namespaces.synced().await;
        self.leases.synced().await;
    }
}

/// Drops what neither scheduler nor controllers read and what would make up most of the memory.
fn trim_task(task: &mut Task) {
    task.spec.work = None;
    for step in task.status.iter_mut().flat_map(|s| &mut s.steps) {
        step.outputs.clear();
        step.message.clear();
    }
}
