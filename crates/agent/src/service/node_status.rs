//! Keeping `nodes/status` true: facts at the start, conditions as they change.
//!
//! Written with the resourceVersion read before, since the node controller writes conditions too (`Ready` is Unknown once it has not seen
//! a renewal for long; an agent that comes back makes it True again).

use super::{enrol::chain, host::Host, retry::Backoff};
use crate::platform;
use api::{Node, NodeStatus};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{Api, api::PostParams};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

/// Written anew at least this often.
const EVERY: Duration = Duration::from_secs(300);
/// More than this, and the host's clock counts as wrong.
const SKEWED: SignedDuration = SignedDuration::from_secs(5);

/// Writes the status whenever it is due. Never returns.
pub async fn run(host: Arc<Host>, mut pressure: watch::Receiver<bool>) {
    let (settings, data, boot) = (
        host.settings.clone(),
        host.home.data.path().to_owned(),
        host.home.boot_id.clone(),
    );
    let collected = tokio::task::spawn_blocking(move || super::facts::collect(&settings, &data, &boot)).await;
    let Ok(facts) = collected else { return };
    let nodes: Api<Node> = Api::all(host.client.clone());
    let mut renewals = host.renewals.clone();
    let mut abandoned = host.abandoned.left();
    let mut backoff = Backoff::new(Duration::from_secs(30));
    loop {
        let low = *pressure.borrow_and_update();
        let left = abandoned.borrow_and_update().join(", ");
        match write(&host, &nodes, &facts, low, &left).await {
            Ok(()) => backoff.reset(),
            Err(error) => {
                tracing::warn!(node = host.node, error = %chain(&error), "the Node's status was not written");
                backoff.wait().await;
                continue;
            }
        }
        let skewed = is_skewed(&host);
        let until = Instant::now() + EVERY;
        loop {
            let gap = u64::try_from((host.settings.renew * 3).as_nanos()).unwrap_or(u64::MAX);
            let before = renewals.borrow_and_update().sent_at;
            tokio::select! {
                () = tokio::time::sleep_until(until) => break,
                Ok(()) = pressure.changed() => break,
                Ok(()) = abandoned.changed() => break,
                Ok(()) = renewals.changed() => {
                    // After a gap the node may have been given up: say that it is back.
                    let now = renewals.borrow().sent_at;
                    if now.saturating_sub(before) > gap || is_skewed(&host) != skewed {
                        break;
                    }
                }
            }
        }
    }
}

async fn write(
    host: &Host,
    nodes: &Api<Node>,
    facts: &NodeStatus,
    low_disk: bool,
    abandoned: &str,
) -> Result<(), kube::Error> {
    let limit = Duration::from_secs(15);
    let slow = |_| kube::Error::Service("no answer in time".into());
    let mut node = tokio::time::timeout(limit, nodes.get(&host.node))
        .await
        .map_err(slow)??;
    let before = node.status.clone();
    let mut status = facts.clone();
    status.conditions = before.as_ref().map(|s| s.conditions.clone()).unwrap_or_default();
    let now = Time(host.clock.now() + host.server.skew());
    let data = host.home.data.path().display();
    let skew = host.server.skew().as_millis();
    for (type_, holds, yes, no) in [
        (
            "Ready",
            true,
            ("AgentRunning", "the agent is at work".to_owned()),
            ("", String::new()),
        ),
        (
            "DiskPressure",
            low_disk,
            (
                "LowDisk",
                format!("{data} has less free space than minFreeDisk; no new work is taken"),
            ),
            ("EnoughDisk", format!("{data} has enough free space")),
        ),
        (
            "ClockSkewed",
            is_skewed(host),
            (
                "ClockWrong",
                format!("the host's clock is {} behind the server's", seconds(skew)),
            ),
            (
                "ClockRight",
                "the host's clock agrees with the server's".to_owned(),
            ),
        ),
        (
            "Degraded",
            !abandoned.is_empty(),
            (
                "ProcessesLeft",
                format!(
                    "processes of ended tasks that cannot be ended: {abandoned}; a restart of the host helps"
                ),
            ),
            ("NothingLeft", "no ended task left a process behind".to_owned()),
        ),
        (
            "RunnersDieWithAgent",
            !platform::runners_survive(),
            (
                "KillMode",
                "the service that runs the agent ends runners with it; set KillMode=process in its unit"
                    .to_owned(),
            ),
            ("Detached", "runners go on while the agent restarts".to_owned()),
        ),
    ] {
        let (reason, message) = if holds { yes } else { no };
        set(&mut status.conditions, type_, holds, reason, message, &now);
    }
    if before.as_ref() == Some(&status) {
        return Ok(());
    }
    node.status = Some(status);
    let params = PostParams::default();
    let put = nodes.replace_status(&host.node, &params, &node);
    tokio::time::timeout(limit, put).await.map_err(slow)?.map(|_| ())
}

fn is_skewed(host: &Host) -> bool {
    host.server.skew().abs() > SKEWED
}

fn seconds(millis: i128) -> String {
    format!("{}.{:03} s", millis / 1000, (millis % 1000).abs())
}

fn set(conditions: &mut Vec<Condition>, type_: &str, holds: bool, reason: &str, message: String, now: &Time) {
    let status = if holds { "True" } else { "False" };
    let old = conditions.iter_mut().find(|c| c.type_ == type_);
    let since = match &old {
        Some(old) if old.status == status => old.last_transition_time.clone(),
        _ => now.clone(),
    };
    let new = Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: since,
        observed_generation: None,
    };
    match old {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_the_time_of_its_last_change_and_others_are_left_alone() {
        let time = |s: &str| Time(s.parse().unwrap());
        let (first, later) = (time("2026-01-01T00:00:00Z"), time("2026-01-02T00:00:00Z"));
        let mut conditions = Vec::new();
        set(
            &mut conditions,
            "FleetDisconnected",
            true,
            "x",
            String::new(),
            &first,
        );
        set(&mut conditions, "Ready", true, "a", String::new(), &first);
        set(&mut conditions, "Ready", true, "b", String::new(), &later);
        assert_eq!(conditions[1].last_transition_time, first);
        set(&mut conditions, "Ready", false, "c", String::new(), &later);
        assert_eq!(conditions[1].last_transition_time, later);
        assert_eq!(conditions.len(), 2);
    }
}
