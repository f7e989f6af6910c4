//! Keeping `nodes/status` true: facts at the start, conditions as they change.
//!
//! Written with the resourceVersion read before, since the node controller writes conditions too (`Ready` is Unknown once it has not seen
//! a renewal for long; an agent that comes back makes it True again).

use super::{enrol::chain, host::Host, retry::Backoff};
use crate::platform::{self, RebootMark};
use api::{Node, NodeStatus};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{Api, api::PostParams};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior},
};

/// Written anew at least this often.
const EVERY: Duration = Duration::from_secs(300);
/// How often is looked for what nobody tells: memory, marks for a restart, a container engine.
const LOOK: Duration = Duration::from_secs(30);
/// More than this, and the host's clock counts as wrong.
const SKEWED: SignedDuration = SignedDuration::from_secs(5);
/// Percent of memory left below which it is low, and from which on it is enough again.
const LOW_MEMORY: (u64, u64) = (5, 10);

/// What changes while the agent runs.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    low_disk: bool,
    low_memory: bool,
    skewed: bool,
    /// Processes that could not be ended.
    abandoned: String,
    marks: Vec<RebootMark>,
    /// What a step said that asked for a restart which its Job does not allow.
    wish: Option<String>,
    engine: Option<PathBuf>,
}

impl Seen {
    fn now(host: &Host, pressure: &watch::Receiver<bool>, before: &Self) -> Self {
        Self {
            low_disk: *pressure.borrow(),
            low_memory: platform::memory_left().is_some_and(|left| is_low(left, before.low_memory)),
            skewed: is_skewed(host),
            abandoned: host.abandoned.left().borrow().join(", "),
            marks: platform::pending_reboot(),
            wish: host.wish.said().borrow().clone(),
            engine: platform::container_engine(),
        }
    }
}

/// Whether memory is low; one that was low must have become clearly better.
fn is_low(left: u64, before: bool) -> bool {
    left < if before { LOW_MEMORY.1 } else { LOW_MEMORY.0 }
}

/// Writes the status whenever it is due. Never returns.
pub async fn run(host: Arc<Host>, mut pressure: watch::Receiver<bool>) {
    let (settings, data, boot) = (
        host.settings.clone(),
        host.home.data.path().to_owned(),
        host.home.boot_id.clone(),
    );
    let collected = tokio::task::spawn_blocking(move || super::facts::collect(&settings, &data, &boot)).await;
    let Ok(mut facts) = collected else { return };
    // asks programs, which may take long: added when they have answered
    let mut further = tokio::task::spawn_blocking(platform::versions);
    let mut asked = false;
    let nodes: Api<Node> = Api::all(host.client.clone());
    let mut renewals = host.renewals.clone();
    let mut abandoned = host.abandoned.left();
    let mut wish = host.wish.said();
    let mut backoff = Backoff::new(Duration::from_secs(30));
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = Seen::default();
    loop {
        pressure.mark_unchanged();
        abandoned.mark_unchanged();
        wish.mark_unchanged();
        seen = Seen::now(&host, &pressure, &seen);
        match write(&host, &nodes, &facts, &seen).await {
            Ok(()) => backoff.reset(),
            Err(error) => {
                tracing::warn!(node = host.node, error = %chain(&error), "the Node's status was not written");
                backoff.wait().await;
                continue;
            }
        }
        let until = Instant::now() + EVERY;
        loop {
            let gap = u64::try_from((host.settings.renew * 3).as_nanos()).unwrap_or(u64::MAX);
            let before = renewals.borrow_and_update().sent_at;
            tokio::select! {
                () = tokio::time::sleep_until(until) => break,
                Ok(()) = pressure.changed() => break,
                Ok(()) = abandoned.changed() => break,
                Ok(()) = wish.changed() => break,
                versions = &mut further, if !asked => {
                    asked = true;
                    facts.versions.extend(versions.unwrap_or_default()); // a panic there was reported by the runtime
                    break;
                }
                _ = looks.tick() => {
                    if Seen::now(&host, &pressure, &seen) != seen {
                        break;
                    }
                }
                Ok(()) = renewals.changed() => {
                    // After a gap the node may have been given up: say that it is back.
                    let now = renewals.borrow().sent_at;
                    if now.saturating_sub(before) > gap || is_skewed(&host) != seen.skewed {
                        break;
                    }
                }
            }
        }
    }
}

async fn write(host: &Host, nodes: &Api<Node>, facts: &NodeStatus, seen: &Seen) -> Result<(), kube::Error> {
    let limit = Duration::from_secs(15);
    let slow = |_| kube::Error::Service("no answer in time".into());
    let mut node = tokio::time::timeout(limit, nodes.get(&host.node))
        .await
        .map_err(slow)??;
    let before = node.status.clone();
    let mut status = facts.clone();
    status.conditions = before.as_ref().map(|s| s.conditions.clone()).unwrap_or_default();
    let now = Time(host.clock.now() + host.server.skew());
    let data = host.home.data.path().display().to_string();
    for is in conditions(seen, &data, host.server.skew().as_millis()) {
        set(&mut status.conditions, is, &now);
    }
    if before.as_ref() == Some(&status) {
        return Ok(());
    }
    node.status = Some(status);
    let params = PostParams::default();
    let put = nodes.replace_status(&host.node, &params, &node);
    tokio::time::timeout(limit, put).await.map_err(slow)?.map(|_| ())
}

/// A condition as it is now.
struct Is {
    type_: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

/// The conditions that follow from what is seen. `data` is the agent's folder, `skew` in milliseconds.
fn conditions(seen: &Seen, data: &str, skew: i128) -> Vec<Is> {
    let is = |type_, holds, yes: (&'static str, String), no: (&'static str, &str)| {
        let (reason, message) = if holds { yes } else { (no.0, no.1.to_owned()) };
        Is {
            type_,
            holds,
            reason,
            message,
        }
    };
    vec![
        is(
            "Ready",
            true,
            ("AgentRunning", "the agent is at work".into()),
            ("", ""),
        ),
        is(
            "DiskPressure",
            seen.low_disk,
            (
                "LowDisk",
                format!("{data} has less free space than minFreeDisk; no new work is taken"),
            ),
            ("EnoughDisk", &format!("{data} has enough free space")),
        ),
        is(
            "MemoryPressure",
            seen.low_memory,
            (
                "LowMemory",
                format!(
                    "less than {} % of the host's memory can still be had",
                    LOW_MEMORY.0
                ),
            ),
            ("EnoughMemory", "the host has enough memory left"),
        ),
        is(
            "ClockSkewed",
            seen.skewed,
            (
                "ClockWrong",
                format!("the host's clock is {} behind the server's", seconds(skew)),
            ),
            ("ClockRight", "the host's clock agrees with the server's"),
        ),
        pending(&seen.marks, seen.wish.as_deref()),
        is(
            "Degraded",
            !seen.abandoned.is_empty(),
            (
                "ProcessesLeft",
                format!(
                    "processes of ended tasks that cannot be ended: {}; a restart of the host helps",
                    seen.abandoned
                ),
            ),
            ("NothingLeft", "no ended task left a process behind"),
        ),
        is(
            "RunnersDieWithAgent",
            !platform::runners_survive(),
            ("EndedTogether", platform::RUNNERS_DIE.to_owned()),
            ("Detached", "runners go on while the agent restarts"),
        ),
        is(
            "ContainerRuntimeReady",
            seen.engine.is_some(),
            (
                "EngineListens",
                format!(
                    "an engine listens at {}",
                    seen.engine.clone().unwrap_or_default().display()
                ),
            ),
            ("NoEngine", "no container engine listens on this host"),
        ),
    ]
}

/// Marks are named one by one, so that the one that stays set can be found.
fn pending(marks: &[RebootMark], wish: Option<&str>) -> Is {
    let named = |counts: bool| {
        let names: Vec<_> = marks
            .iter()
            .filter(|m| m.counts == counts)
            .map(|m| m.source)
            .collect();
        names.join(", ")
    };
    let (mut counted, shown) = (named(true), named(false));
    if let Some(wish) = wish {
        counted += if counted.is_empty() { "" } else { ", " };
        counted += wish;
    }
    let mut message = match counted.as_str() {
        "" => "no mark that counts is set".to_owned(),
        counted => format!("a restart is due: {counted}"),
    };
    if !shown.is_empty() {
        message += &format!("; also set, not counted: {shown}");
    }
    Is {
        type_: "PendingReboot",
        holds: !counted.is_empty(),
        reason: if counted.is_empty() {
            "NothingPending"
        } else {
            "MarksSet"
        },
        message,
    }
}

fn is_skewed(host: &Host) -> bool {
    host.server.skew().abs() > SKEWED
}

fn seconds(millis: i128) -> String {
    format!("{}.{:03} s", millis / 1000, (millis % 1000).abs())
}

fn set(conditions: &mut Vec<Condition>, is: Is, now: &Time) {
    let status = if is.holds { "True" } else { "False" };
    let old = conditions.iter_mut().find(|c| c.type_ == is.type_);
    let since = match &old {
        Some(old) if old.status == status => old.last_transition_time.clone(),
        _ => now.clone(),
    };
    let new = Condition {
        type_: is.type_.to_owned(),
        status: status.to_owned(),
        reason: is.reason.to_owned(),
        message: is.message,
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

    fn is(type_: &'static str, holds: bool) -> Is {
        Is {
            type_,
            holds,
            reason: "x",
            message: String::new(),
        }
    }

    #[test]
    fn a_condition_keeps_the_time_of_its_last_change_and_others_are_left_alone() {
        let time = |s: &str| Time(s.parse().unwrap());
        let (first, later) = (time("2026-01-01T00:00:00Z"), time("2026-01-02T00:00:00Z"));
        let mut conditions = Vec::new();
        set(&mut conditions, is("FleetDisconnected", true), &first);
        set(&mut conditions, is("Ready", true), &first);
        set(&mut conditions, is("Ready", true), &later);
        assert_eq!(conditions[1].last_transition_time, first);
        set(&mut conditions, is("Ready", false), &later);
        assert_eq!(conditions[1].last_transition_time, later);
        assert_eq!(conditions.len(), 2);
    }

    #[test]
    fn every_condition_has_a_reason_and_a_message_either_way() {
        let mark = |counts| RebootMark {
            source: "a mark",
            counts,
        };
        let troubled = Seen {
            low_disk: true,
            low_memory: true,
            skewed: true,
            abandoned: "7 (x)".into(),
            wish: None,
            marks: vec![mark(true)],
            engine: Some("/sock".into()),
        };
        for seen in [Seen::default(), troubled] {
            for is in conditions(&seen, "/data", 7_123) {
                assert!(!is.reason.is_empty() && !is.message.is_empty(), "{}", is.type_);
            }
        }
    }

    /// AL-08: the mark that stays set is named.
    #[test]
    fn marks_are_named_and_those_that_do_not_count_make_nothing_pending() {
        let mark = |source, counts| RebootMark { source, counts };
        let renames = mark("PendingFileRenameOperations", false);
        let none = pending(std::slice::from_ref(&renames), None);
        assert!(!none.holds && none.message.contains("PendingFileRenameOperations"));
        let set = pending(
            &[mark("CBS RebootPending", true), renames],
            Some("step a of b ended with code 3010"),
        );
        assert!(set.holds);
        assert_eq!(
            set.message,
            "a restart is due: CBS RebootPending, step a of b ended with code 3010; also set, not counted: PendingFileRenameOperations"
        );
    }

    #[test]
    fn low_memory_does_not_flicker() {
        assert!(!is_low(7, false) && is_low(7, true));
        assert!(is_low(4, false) && !is_low(10, true));
    }
}
