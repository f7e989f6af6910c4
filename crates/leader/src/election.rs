//! Taking the Lease, keeping it, and what happens when it is lost.

use crate::{BootClock, Fence};
use api::clock::Clock;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{Api, Client, api::PostParams};
use std::{future::Future, sync::Arc, time::Duration};

/// Who runs for which Lease, and how long it is good for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace of the Lease. Not one whose Leases are stored lazily.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who this is. A Lease held in this name is taken for this process's own, so no two living processes may share one.
    pub identity: String,
    /// How long the Lease is good for without a renewal. It is renewed every third of that.
    pub lease: Duration,
}

impl Options {
    fn renew_every(&self) -> Duration {
        self.lease / 3
    }

    /// How long after a renewal was sent its holder may still write: another one leads a third of the Lease later at the earliest.
    fn good_for(&self) -> Duration {
        self.lease * 2 / 3
    }
}

/// Runs `parts` whenever this process leads, for as long as it does, until `shutdown`. They get a fence to put before their clients, and
/// are dropped wherever they are when the lead is lost; then this waits to lead again. Ends early only when the parts end by themselves.
pub async fn lead<P, F>(
    client: Client,
    options: Options,
    clock: Arc<dyn Clock>,
    boot: Arc<dyn BootClock>,
    mut parts: P,
    shutdown: impl Future<Output = ()>,
) where
    P: FnMut(Fence) -> F,
    F: Future<Output = ()>,
{
    let candidate = Candidate {
        api: Api::namespaced(client, &options.namespace),
        options,
        clock,
        boot,
    };
    tokio::pin!(shutdown);
    loop {
        let mut held = tokio::select! {
            held = candidate.take() => held,
            () = &mut shutdown => return,
        };
        tracing::info!(identity = candidate.options.identity, "leading");
        let work = parts(held.fence.clone());
        let ended = tokio::select! {
            () = work => true,
            () = candidate.keep(&mut held) => false,
            () = &mut shutdown => true,
        };
        if ended {
            return candidate.release(held).await;
        }
        tracing::warn!(identity = candidate.options.identity, "the lead is lost");
    }
}

struct Candidate {
    api: Api<Lease>,
    options: Options,
    clock: Arc<dyn Clock>,
    boot: Arc<dyn BootClock>,
}

/// The Lease, as last written.
struct Held {
    lease: Lease,
    fence: Fence,
}

/// What others are seen to do with the Lease: how it looked, and since when it looks so.
struct Seen {
    version: Option<String>,
    since: Duration,
}

impl Candidate {
    /// Waits until the Lease is ours.
    async fn take(&self) -> Held {
        let mut seen: Option<Seen> = None;
        loop {
            match self.try_take(&mut seen).await {
                Ok(Some(held)) => return held,
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "the leader's Lease cannot be taken yet"),
            }
            tokio::time::sleep(self.options.renew_every() / 2).await;
        }
    }

    async fn try_take(&self, seen: &mut Option<Seen>) -> Result<Option<Held>, kube::Error> {
        let sent = self.boot.now();
        let lease = match self.in_time(self.api.get_opt(&self.options.name)).await? {
            None => {
                let lease = self.claimed(Lease::default());
                self.in_time(self.api.create(&PostParams::default(), &lease))
                    .await
            }
            Some(lease) => {
                let holder = holder(&lease);
                let free = holder.is_empty() || holder == self.options.identity;
                if !free && !self.is_silent(&lease, seen) {
                    return Ok(None);
                }
                self.write(&self.claimed(lease)).await
            }
        };
        match lease {
            Ok(lease) => {
                let fence = Fence::new(self.boot.clone());
                fence.extend(sent + self.options.good_for());
                Ok(Some(Held { lease, fence }))
            }
            Err(error) if is_conflict(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether the holder has not renewed for as long as the Lease is good for, as seen from here: its times are another machine's.
    fn is_silent(&self, lease: &Lease, seen: &mut Option<Seen>) -> bool {
        let version = lease.metadata.resource_version.clone();
        let now = self.boot.now();
        match seen {
            Some(before) if before.version == version => {
                let spec = lease.spec.as_ref();
                let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
                // a holder with other settings is given its own time
                let theirs = Duration::from_secs(seconds.unwrap_or_default().unsigned_abs().into());
                now.saturating_sub(before.since) >= self.options.lease.max(theirs)
            }
            _ => {
                *seen = Some(Seen { version, since: now });
                false
            }
        }
    }

    /// Renews; returns when the lead is lost.
    async fn keep(&self, held: &mut Held) {
        loop {
            tokio::time::sleep(self.options.renew_every()).await;
            loop {
                let sent = self.boot.now();
                match self.write(&self.renewed(held.lease.clone())).await {
                    Ok(lease) => {
                        held.lease = lease;
                        held.fence.extend(sent + self.options.good_for());
                        break;
                    }
                    Err(error) if is_conflict(&error) => {
                        match self.in_time(self.api.get(&self.options.name)).await {
                            // ours all the same: the answer to a renewal was lost, or somebody labelled it
                            Ok(lease) if holder(&lease) == self.options.identity => held.lease = lease,
                            Ok(_) => return,
                            Err(error) => tracing::warn!(%error, "the leader's Lease cannot be read"),
                        }
                    }
                    Err(error) => tracing::warn!(%error, "the leader's Lease cannot be renewed"),
                }
                if held.fence.left().is_zero() {
                    return;
                }
                tokio::time::sleep(self.options.renew_every() / 10).await;
            }
        }
    }

    /// Gives the Lease back, so that the next one need not wait.
    async fn release(&self, held: Held) {
        let mut lease = held.lease;
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(String::new());
        spec.renew_time = Some(MicroTime(self.clock.now()));
        if let Err(error) = self.write(&lease).await {
            tracing::warn!(%error, "the leader's Lease could not be given back; it runs out by itself");
        }
    }

    async fn write(&self, lease: &Lease) -> Result<Lease, kube::Error> {
        let params = PostParams::default();
        self.in_time(self.api.replace(&self.options.name, &params, lease))
            .await
    }

    /// A call may take as long as the time between two renewals.
    async fn in_time<T>(&self, call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
        let answer = tokio::time::timeout(self.options.renew_every(), call).await;
        answer.unwrap_or_else(|_| Err(kube::Error::Service("the server did not answer in time".into())))
    }

    fn claimed(&self, mut lease: Lease) -> Lease {
        lease.metadata.name = Some(self.options.name.clone());
        let now = MicroTime(self.clock.now());
        let seconds = i32::try_from(self.options.lease.as_secs()).unwrap_or(i32::MAX);
        let before = lease.spec.take().unwrap_or_default();
        let changed = before.holder_identity.as_ref() != Some(&self.options.identity);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.options.identity.clone()),
            lease_duration_seconds: Some(seconds.max(1)),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(before.lease_transitions.unwrap_or_default() + i32::from(changed)),
            ..before
        });
        lease
    }

    fn renewed(&self, mut lease: Lease) -> Lease {
        lease.spec.get_or_insert_default().renew_time = Some(MicroTime(self.clock.now()));
        lease
    }
}

fn holder(lease: &Lease) -> &str {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.holder_identity.as_deref())
        .unwrap_or_default()
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}
