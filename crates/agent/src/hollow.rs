//! Hollow agents, for load: they hold Leases, claim Tasks and end them over real HTTP, but run nothing and keep nothing on disk.
//!
//! What they send is what real agents send for work that does nothing: a claim with the resourceVersion, a terminal status with one
//! step, a renewal every period. Two forms: [`Identities::Own`], each node with its own certificate, watch and connections, as in a
//! real fleet, and [`Identities::Shared`], one administrator's certificate and one watch for all nodes, which costs the machine that
//! makes the load far less. [`register`] makes the Nodes.

mod node;
mod shared;
mod wire;

pub use wire::Error;

use crate::service::connection::BadUrl;
use api::{Node, NodeStatus, clock::Clock, node::SLOTS, quantity::Quantity};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use pki::Credentials;
use rustls::pki_types::CertificateDer;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use wire::Target;

/// Who the agents are to the server.
pub enum Identities {
    /// All nodes through one administrator's certificate, on this many connections for writing.
    Shared {
        /// The administrator's.
        credentials: Credentials,
        /// Names of the nodes.
        nodes: Vec<String>,
        /// Connections for writing. Each carries one request at a time and a write waits for the disk, so as many as writes should be
        /// under way at once: 128 is plenty.
        connections: usize,
    },
    /// Each node by itself: its name and its own certificate.
    Own(Vec<(String, Credentials)>),
}

/// A fleet.
pub struct Options {
    /// The server, `https://host:port`.
    pub server: String,
    /// Who signed the server's certificate.
    pub authority: CertificateDer<'static>,
    /// Who the agents are.
    pub identities: Identities,
    /// Between renewals of each node's Lease.
    pub renew: Duration,
    /// Tells the times in claims and statuses.
    pub clock: Arc<dyn Clock>,
}

/// What a fleet has done, since it started.
#[derive(Debug, Default)]
pub struct Counters {
    /// Claims acknowledged.
    pub claimed: AtomicU64,
    /// Ends acknowledged.
    pub finished: AtomicU64,
    /// Claims that somebody else had, or that were withdrawn.
    pub lost: AtomicU64,
    /// Renewals acknowledged.
    pub renewed: AtomicU64,
    /// Requests that failed and were made again.
    pub failed: AtomicU64,
}

impl Counters {
    fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Why a fleet cannot start. A retry does not help.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// See there.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// See there.
    #[error(transparent)]
    Pki(#[from] pki::Error),
}

/// Runs a fleet until `shutdown`. Lost connections are made again.
pub async fn run(
    options: Options,
    counters: Arc<Counters>,
    shutdown: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let target = |credentials: &Credentials| -> Result<Target, StartError> {
        let tls = pki::tls::client(&options.authority, Some(credentials), &["http/1.1"])?;
        Ok(Target::new(&options.server, tls)?)
    };
    let mut work = tokio::task::JoinSet::new();
    match &options.identities {
        Identities::Shared {
            credentials,
            nodes,
            connections,
        } => {
            let fleet = shared::Fleet {
                target: target(credentials)?,
                renew: options.renew,
                clock: options.clock.clone(),
                counters,
            };
            work.spawn(fleet.run(nodes.clone(), *connections));
        }
        Identities::Own(nodes) => {
            let each = options.renew / u32::try_from(nodes.len().max(1)).unwrap_or(u32::MAX);
            for (place, (name, credentials)) in (0..).zip(nodes) {
                let node = node::Node {
                    name: name.clone(),
                    target: target(credentials)?,
                    renew: options.renew,
                    // Spread over the period, as agents that started at different times are.
                    first: each * place,
                    clock: options.clock.clone(),
                    counters: counters.clone(),
                };
                work.spawn(node.run());
            }
        }
    }
    tokio::select! {
        () = shutdown => {}
        () = async { while work.join_next().await.is_some() {} } => {}
    }
    Ok(())
}

/// Makes a Node that is ready, with so many slots, as an enrolled agent would have it. Needs an administrator's client.
pub async fn register(
    client: &kube::Client,
    name: &str,
    slots: u32,
    clock: &dyn Clock,
) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = Node::new(name, api::NodeSpec::default());
    match nodes.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        other => drop(other?),
    }
    let amounts = [("cpu", "64"), ("memory", "256Gi"), ("disk", "1Ti")];
    let mut capacity: api::placement::ResourceList = amounts
        .into_iter()
        .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
        .collect();
    capacity.insert(SLOTS.to_owned(), Quantity(slots.to_string()));
    let status = NodeStatus {
        allocatable: capacity.clone(),
        capacity,
        conditions: vec![Condition {
            type_: "Ready".into(),
            status: "True".into(),
            reason: "AgentRunning".into(),
            message: "a hollow agent".into(),
            last_transition_time: Time(clock.now()),
            observed_generation: None,
        }],
        ..NodeStatus::default()
    };
    let patch = Patch::Merge(json!({"status": status}));
    nodes
        .patch_status(name, &PatchParams::default(), &patch)
        .await
        .map(|_| ())
}

/// The time as the API writes it.
fn now(clock: &dyn Clock) -> String {
    match serde_json::to_value(MicroTime(clock.now())) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(), // a time always serialises to a string
    }
}
