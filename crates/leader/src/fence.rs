//! What keeps a leader that no longer leads from writing.

use crate::BootClock;
use http::{Method, Request};
use kube::{Client, client::Body};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A write was not sent: this process may not be the leader any more. A retry helps if it still is, once it has renewed its Lease.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("not sent: the leader's Lease was not renewed in time, another process may lead by now")]
pub struct Stale;

/// Lets writes through while leading is certain.
#[derive(Clone)]
pub struct Fence {
    clock: Arc<dyn BootClock>,
    /// Until when, in nanoseconds of the clock.
    until: Arc<AtomicU64>,
}

impl Fence {
    /// Closed until it is first extended.
    pub(crate) fn new(clock: Arc<dyn BootClock>) -> Self {
        Self {
            clock,
            until: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Lets writes through until then.
    pub(crate) fn extend(&self, until: Duration) {
        let nanos = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.until.store(nanos, Ordering::Release);
    }

    /// How long it stays open.
    pub(crate) fn left(&self) -> Duration {
        Duration::from_nanos(self.until.load(Ordering::Acquire)).saturating_sub(self.clock.now())
    }

    /// The same client, reading as ever, writing only while the fence is open.
    pub fn client(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let fence = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, fence) = (client.clone(), fence.clone());
            async move {
                if !reads(request.method()) && fence.left().is_zero() {
                    return Err(Box::<dyn std::error::Error + Send + Sync>::from(Stale));
                }
                Ok(client.send(request).await?)
            }
        });
        Client::new(service, namespace)
    }
}

fn reads(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}
