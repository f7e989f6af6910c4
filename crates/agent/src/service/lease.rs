//! The node's Lease: at most one living agent a node.
//!
//! The holder is `<agentInstance>/<nonce of the process>`. A process takes the Lease over at once if its folder names that nonce and that
//! process has ended in this boot; otherwise it watches for four renewal periods and gives up if the holder renews meanwhile. Every write
//! carries the resourceVersion, so of two that try one wins. A renewal that meets a foreign holder ends the process.

use super::{
    enrol::chain,
    home::Home,
    retry::{Backoff, between},
};
use crate::platform;
use api::clock::Clock;
use k8s_openapi::{api::coordination::v1, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{Api, api::PostParams};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

/// Where the Leases of nodes are.
pub const NAMESPACE: &str = "prow-node-leases";
/// So many renewal periods without a renewal, and a holder counts as gone.
const PERIODS: u32 = 4;

/// Another agent works as this node. A retry does not help while it does.
#[derive(Debug, thiserror::Error)]
#[error(
    "another agent holds the Lease of node {node} ({holder}) and renews it: was the data folder or the machine copied? \
     Stop the other one, or enrol this host under another name with an empty --data-dir"
)]
pub struct Taken {
    /// The node.
    pub node: String,
    /// Who holds the Lease.
    pub holder: String,
}

/// When the last acknowledged renewal was sent ([`platform::boot_nanos`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Nanoseconds since boot.
    pub sent_at: u64,
}

/// The Lease, held.
pub struct Lease {
    api: Api<v1::Lease>,
    node: String,
    holder: String,
    every: Duration,
    clock: Arc<dyn Clock>,
    object: v1::Lease,
    renewals: watch::Sender<Renewal>,
}

impl Lease {
    /// Takes the Lease, waiting for a server that is away and for a silent holder to be given up. `client` should be used for nothing else.
    pub async fn take(
        client: kube::Client,
        home: &Home,
        node: &str,
        every: Duration,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Taken> {
        let api: Api<v1::Lease> = Api::namespaced(client, NAMESPACE);
        let mut backoff = Backoff::new(Duration::from_secs(5).min(every));
        let mut watched: Option<(v1::Lease, Instant)> = None;
        loop {
            let sent_at = platform::boot_nanos();
            let written = match within(every, api.get_opt(node)).await {
                Ok(None) => {
                    let mut object = v1::Lease::default();
                    object.metadata.name = Some(node.to_owned());
                    claim(&mut object, home, every, &*clock);
                    within(every, api.create(&PostParams::default(), &object)).await
                }
                Ok(Some(mut object)) => {
                    let holder = holder(&object).to_owned();
                    let silent = watched.as_ref().is_some_and(|(seen, since)| {
                        same_renewal(seen, &object) && since.elapsed() >= every * PERIODS
                    });
                    let free = holder.is_empty() || holder == home.holder() || home.has_ended(&holder);
                    if free || silent {
                        claim(&mut object, home, every, &*clock);
                        within(every, api.replace(node, &PostParams::default(), &object)).await
                    } else {
                        match &watched {
                            Some((seen, _)) if !same_renewal(seen, &object) => {
                                return Err(Taken {
                                    node: node.to_owned(),
                                    holder,
                                });
                            }
                            Some(_) => {}
                            None => {
                                tracing::info!(
                                    node,
                                    holder,
                                    "another agent holds the Lease; waiting whether it lives"
                                );
                                watched = Some((object, Instant::now()));
                            }
                        }
                        tokio::time::sleep(every / 4).await;
                        continue;
                    }
                }
                Err(error) => Err(error),
            };
            match written {
                Ok(object) => {
                    tracing::info!(node, "holding the Lease");
                    return Ok(Self {
                        api,
                        node: node.to_owned(),
                        holder: home.holder(),
                        every,
                        clock,
                        object,
                        renewals: watch::Sender::new(Renewal { sent_at }),
                    });
                }
                Err(error) => {
                    if !is_conflict(&error) {
                        tracing::warn!(node, error = %chain(&error), "cannot take the Lease yet");
                    }
                    backoff.wait().await;
                }
            }
        }
    }

    /// Tells of every acknowledged renewal.
    pub fn renewals(&self) -> watch::Receiver<Renewal> {
        self.renewals.subscribe()
    }

    /// Renews until another agent holds the Lease.
    pub async fn renew_forever(mut self) -> Taken {
        let spread = self.every / 10;
        let soon = Duration::from_secs(1).min(self.every / 2);
        let mut failing = false;
        loop {
            tokio::time::sleep(if failing {
                between(soon / 2, soon)
            } else {
                between(self.every - spread, self.every + spread)
            })
            .await;
            match self.renew().await {
                Ok(sent_at) => {
                    if failing {
                        tracing::info!(node = self.node, "renewing the Lease again");
                    }
                    failing = false;
                    self.renewals.send_replace(Renewal { sent_at });
                }
                Err(Failure::Taken(taken)) => return taken,
                Err(Failure::Api(error)) => {
                    if !failing {
                        tracing::warn!(node = self.node, error = %chain(&error), "the Lease was not renewed");
                    }
                    failing = true;
                }
            }
        }
    }

    async fn renew(&mut self) -> Result<u64, Failure> {
        let sent_at = platform::boot_nanos();
        self.object.spec.get_or_insert_default().renew_time = Some(MicroTime(self.clock.now()));
        let params = PostParams::default();
        let put = self.api.replace(&self.node, &params, &self.object);
        match within(self.every, put).await {
            Ok(object) => {
                self.object = object;
                return Ok(sent_at);
            }
            Err(error) if is_conflict(&error) || is_missing(&error) => {}
            Err(error) => return Err(Failure::Api(error)),
        }
        // Written by somebody else, by a try of ours whose answer was lost, or removed.
        match within(self.every, self.api.get_opt(&self.node)).await {
            Ok(Some(object)) if holder(&object) == self.holder => {
                self.object.metadata = object.metadata;
                Err(Failure::Api(kube::Error::Service("the Lease had changed".into())))
            }
            Ok(Some(object)) => Err(Failure::Taken(Taken {
                node: self.node.clone(),
                holder: holder(&object).to_owned(),
            })),
            Ok(None) => {
                let mut object = self.object.clone();
                object.metadata = Default::default();
                object.metadata.name = Some(self.node.clone());
                let post = self.api.create(&params, &object);
                self.object = within(self.every, post).await.map_err(Failure::Api)?;
                Ok(sent_at)
            }
            Err(error) => Err(Failure::Api(error)),
        }
    }
}

enum Failure {
    Taken(Taken),
    Api(kube::Error),
}

/// Waits until the last acknowledged renewal is young enough to act on: a holder may be taken for gone after four periods.
pub async fn held(renewals: &mut watch::Receiver<Renewal>, every: Duration) {
    let limit = u64::try_from((every * PERIODS).as_nanos()).unwrap_or(u64::MAX);
    while platform::boot_nanos().saturating_sub(renewals.borrow_and_update().sent_at) >= limit {
        if renewals.changed().await.is_err() {
            // Nobody renews any more: this process is ending.
            std::future::pending::<()>().await;
        }
    }
}

fn claim(object: &mut v1::Lease, home: &Home, every: Duration, clock: &dyn Clock) {
    let now = MicroTime(clock.now());
    let spec = object.spec.get_or_insert_default();
    spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |n| n.saturating_add(1)));
    spec.holder_identity = Some(home.holder());
    spec.acquire_time = Some(now.clone());
    spec.renew_time = Some(now);
    let seconds = (every * PERIODS).as_secs().max(1);
    spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
}

fn holder(object: &v1::Lease) -> &str {
    object
        .spec
        .as_ref()
        .and_then(|s| s.holder_identity.as_deref())
        .unwrap_or_default()
}

fn same_renewal(a: &v1::Lease, b: &v1::Lease) -> bool {
    a.metadata.uid == b.metadata.uid && a.metadata.resource_version == b.metadata.resource_version
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// An answer that takes longer than this is none; the connection it was sent on is given up.
async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    let limit = limit.max(Duration::from_secs(2));
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service("no answer in time".into())),
    }
}
