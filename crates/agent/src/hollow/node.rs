//! A hollow agent with an identity of its own: one connection for its watch, one for what it writes.

use super::{
    Counters, now,
    wire::{Connection, Error, Event, Seen, Target, status_path},
};
use crate::service::Backoff;
use api::clock::Clock;
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval_at},
};

/// Where the Leases of nodes are.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/prow-node-leases/leases";

pub(super) struct Node {
    pub name: String,
    pub target: Target,
    pub renew: Duration,
    pub first: Duration,
    pub clock: Arc<dyn Clock>,
    pub counters: Arc<Counters>,
}

impl Node {
    pub async fn run(self) {
        let (send, mut seen) = mpsc::unbounded_channel();
        let watching = follow(&self.target, Some(&self.name), &self.counters, |task| {
            let _ = send.send(task); // ends with us
        });
        let working = async {
            let mut renewals = interval_at(Instant::now() + self.first, self.renew);
            renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut writer = Writer::new(self.target.clone(), self.clock.clone(), self.counters.clone());
            let mut done = HashSet::new();
            loop {
                tokio::select! {
                    _ = renewals.tick() => writer.renew(&self.name).await,
                    Some(task) = seen.recv() => {
                        if done.insert(task.uid.clone()) {
                            writer.carry_out(&task).await;
                        } else if !task.phase.is_empty() {
                            // Seen again as it was claimed; an end is not shown.
                            done.remove(&task.uid);
                        }
                    }
                }
            }
        };
        tokio::join!(watching, working);
    }
}

/// Watches for ever and passes on every Task that is not yet under way.
pub(super) async fn follow(
    target: &Target,
    node: Option<&str>,
    counters: &Counters,
    mut pass: impl FnMut(Seen),
) {
    let mut retry = Backoff::new(Duration::from_secs(5));
    let mut version: Option<String> = None;
    loop {
        let result = async {
            let mut watch = target.watch(node, version.as_deref()).await?;
            while let Some(event) = watch.next().await? {
                match event {
                    Event::Mark(mark) => version = Some(mark),
                    Event::Task(task) => {
                        version = Some(task.version.clone());
                        pass(task);
                    }
                }
            }
            Ok::<_, Error>(())
        };
        match result.await {
            Ok(()) => retry.reset(),
            Err(error) => {
                tracing::debug!(node, %error, "a hollow watch ended");
                if matches!(error, Error::CutOff | Error::Refused(_)) {
                    version = None;
                }
                Counters::count(&counters.failed);
                retry.wait().await;
            }
        }
    }
}

/// Writes what agents write, on one connection, which is made again when it breaks.
pub(super) struct Writer {
    target: Target,
    clock: Arc<dyn Clock>,
    counters: Arc<Counters>,
    connection: Option<Connection>,
}

impl Writer {
    pub fn new(target: Target, clock: Arc<dyn Clock>, counters: Arc<Counters>) -> Self {
        Self {
            target,
            clock,
            counters,
            connection: None,
        }
    }

    /// Claims a Task nobody has claimed, and ends it.
    pub async fn carry_out(&mut self, task: &Seen) {
        if task.withdrawn && task.phase.is_empty() {
            return;
        }
        let path = status_path(&task.namespace, &task.name);
        let claimed_at = now(&*self.clock);
        if task.phase.is_empty() {
            let version = &task.version;
            let claim = format!(
                r#"{{"metadata":{{"resourceVersion":"{version}"}},"status":{{"phase":"Claimed","claim":{{"agentInstance":"hollow","bootID":"hollow","nonce":"hollow","time":"{claimed_at}"}}}}}}"#
            );
            if !self.write(&path, claim).await {
                return Counters::count(&self.counters.lost);
            }
            Counters::count(&self.counters.claimed);
        }
        let ended_at = now(&*self.clock);
        let end = format!(
            r#"{{"status":{{"phase":"Succeeded","startedSteps":true,"startedAt":"{claimed_at}","finishedAt":"{ended_at}","steps":[{{"name":"main","phase":"Succeeded","attempts":1,"exitCode":0,"startedAt":"{claimed_at}","finishedAt":"{ended_at}","logBytes":0}}]}}}}"#
        );
        if self.write(&path, end).await {
            Counters::count(&self.counters.finished);
        }
    }

    /// Renews the Lease of a node, or makes it.
    pub async fn renew(&mut self, node: &str) {
        let now = now(&*self.clock);
        let spec = format!(
            r#""spec":{{"holderIdentity":"hollow/hollow","leaseDurationSeconds":40,"renewTime":"{now}"}}"#
        );
        let renewed = match self.connected().await {
            Ok(connection) => match connection
                .patch(&format!("{LEASES}/{node}"), format!("{{{spec}}}"))
                .await
            {
                Err(Error::Refused(status)) if status == http::StatusCode::NOT_FOUND => {
                    let object = format!(
                        r#"{{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{node}"}},{spec}}}"#
                    );
                    connection.post(LEASES, object).await
                }
                other => other,
            },
            Err(error) => Err(error),
        };
        match renewed {
            Ok(()) => Counters::count(&self.counters.renewed),
            Err(error) => self.failed(&error),
        }
    }

    /// Writes until the server has answered; false where it refused.
    async fn write(&mut self, path: &str, body: String) -> bool {
        let mut retry = Backoff::new(Duration::from_secs(5));
        loop {
            let sent = match self.connected().await {
                Ok(connection) => connection.patch(path, body.clone()).await,
                Err(error) => Err(error),
            };
            match sent {
                Ok(()) => return true,
                Err(Error::Refused(status)) if status.is_client_error() && status.as_u16() != 429 => {
                    tracing::debug!(path, %status, "refused");
                    return false;
                }
                Err(error) => self.failed(&error),
            }
            retry.wait().await;
        }
    }

    async fn connected(&mut self) -> Result<&mut Connection, Error> {
        if self.connection.is_none() {
            self.connection = Some(self.target.connect().await?);
        }
        self.connection.as_mut().ok_or(Error::CutOff)
    }

    fn failed(&mut self, error: &Error) {
        tracing::debug!(%error, "a hollow request failed");
        Counters::count(&self.counters.failed);
        if !matches!(error, Error::Refused(_)) {
            self.connection = None;
        }
    }
}
