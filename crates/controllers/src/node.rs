//! The node controller: which nodes are lost and what follows for their Tasks, labels from facts, evictions.
//!
//! Loss is judged by watching ([`watching`]): the time *this* controller watched without seeing a renewal of the node's Lease. Clocks
//! of others are never compared. What follows is worked out first ([`loss`]) and done only after a live read of the Lease has shown
//! that no renewal was missed. If many nodes are lost at once it is rather the network: then nothing is ended.

mod evict;
mod facts;
mod loss;
mod watching;

use crate::{context::Context, error::Error, events::Type, keyed, tasks};
use futures::{StreamExt, stream::FuturesUnordered};
use informer::{Change, NODE_LEASES, on_node};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use loss::Act;
use std::{collections::HashSet, time::Duration};
use tokio::time::{Instant, MissedTickBehavior};
use watching::Watching;

/// How many nodes are worked on at once.
const AT_ONCE: usize = 32;
/// How often observations are looked at, at most.
const TICK: Duration = Duration::from_secs(1);

pub(crate) async fn run(context: &Context) {
    tokio::join!(observe(context), facts::run(context), evict::run(context));
}

/// Watches Leases and acts on what their silence means.
async fn observe(context: &Context) {
    let shared = &context.shared;
    let mut leases = shared.leases.subscribe();
    let mut task_changes = shared.tasks.subscribe();
    let mut watching = Watching::new(
        context.options.node_lost,
        shared.leases.interruptions(),
        Instant::now(),
    );
    let mut with_tasks: HashSet<String> = HashSet::new();
    // a timer of its own: were it set anew with every heartbeat, a busy fleet would never be looked at
    let mut ticks = tokio::time::interval((context.options.node_lost / 8).min(TICK));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = false;
    let mut given_up: HashSet<String> = HashSet::new();
    loop {
        tokio::select! {
            batch = leases.next() => {
                for change in batch {
                    if let Change::Applied(lease) = change {
                        let version = lease.metadata.resource_version.clone().unwrap_or_default();
                        let name = lease.metadata.name.as_deref().unwrap_or_default();
                        watching.renewed(name, &version, Instant::now());
                    }
                }
                continue;
            }
            batch = task_changes.next() => {
                with_tasks.extend(batch.iter().map(|c| c.object().spec.node_name.clone()));
                continue;
            }
            _ = ticks.tick() => {}
        }
        let now = Instant::now();
        watching.tick(shared.leases.interruptions(), now);
        let nodes = shared.nodes.all();
        let known: HashSet<&str> = nodes.iter().map(|n| n.name()).collect();
        with_tasks.retain(|name| shared.tasks.count(&on_node(name)) > 0);
        // a Node that was deleted counts as lost once its agent is silent too
        let orphaned = with_tasks
            .iter()
            .map(String::as_str)
            .filter(|name| !known.contains(name));
        let all: Vec<&str> = known.iter().copied().chain(orphaned).collect();
        let lost: HashSet<&str> = all
            .iter()
            .copied()
            .filter(|name| watching.is_lost(name, now))
            .collect();
        // hosts that restart are silent for a reason, and no sign of a broken network
        let restarts = |name: &str| {
            let silence = watching.silence(name, now);
            let on_it = shared.tasks.indexed(&on_node(name));
            on_it.iter().any(|task| loss::is_expected(context, task, silence))
        };
        let lost_nodes = lost
            .iter()
            .filter(|name| known.contains(*name) && !restarts(name))
            .count();
        let braked = lost_nodes > 3 && lost_nodes * 5 > known.len();
        let one = nodes.iter().find(|n| lost.contains(n.name()));
        if let (true, false, Some(node)) = (braked, told, one) {
            let message = format!(
                "{lost_nodes} of {} nodes are silent at once: no Task is ended",
                known.len()
            );
            tracing::warn!(message, "fleet disconnected");
            context
                .events
                .tell(&**node, Type::Warning, "FleetDisconnected", message);
        }
        told = braked;
        if !braked {
            let lost_for_long = nodes
                .iter()
                .filter(|n| lost.contains(n.name()) && loss::is_given_up(n));
            given_up.extend(lost_for_long.map(|n| n.name().to_owned()));
        }
        let looks: Vec<Look> = all
            .into_iter()
            .filter(|name| lost.contains(name) || watching.was_heard(name))
            .map(|name| Look {
                node: name.to_owned(),
                silence: lost.contains(name).then(|| watching.silence(name, now)),
                seen: watching.version(name).map(str::to_owned),
                given_up: given_up.contains(name),
                braked,
            })
            .collect();
        let mut heard_after_all = Vec::new();
        for some in looks.chunks(AT_ONCE) {
            let mut acting = FuturesUnordered::new();
            for one in some {
                acting.push(one.act(context));
            }
            while let Some((name, outcome)) = acting.next().await {
                match outcome {
                    Ok(None) | Err(Error::Conflict | Error::Gone) => {}
                    Ok(Some(version)) => heard_after_all.push((name, version)),
                    Err(error) => tracing::warn!(node = name, %error, "will be looked at again"),
                }
            }
        }
        given_up.retain(|name| lost.contains(name.as_str()) || !watching.was_heard(name));
        for (name, version) in heard_after_all {
            watching.renewed(name, &version, Instant::now());
        }
    }
}

/// One node that is looked at.
struct Look {
    node: String,
    /// For how long nothing was heard of it, if it is lost.
    silence: Option<Duration>,
    /// The version of its Lease that was seen last.
    seen: Option<String>,
    /// Whether its loss was told.
    given_up: bool,
    /// Whether many are lost at once.
    braked: bool,
}

impl Look {
    /// Does what follows. Answers the version of a Lease that was renewed after all.
    async fn act(&self, context: &Context) -> (&str, Result<Option<String>, Error>) {
        (&self.node, self.follow(context).await)
    }

    async fn follow(&self, context: &Context) -> Result<Option<String>, Error> {
        let node = context.shared.nodes.get("", &self.node);
        let on_it = context.shared.tasks.indexed(&on_node(&self.node));
        let acts = match self.silence {
            Some(silence) => {
                // a Node an operator deleted is no sign of a broken network
                let braked = self.braked && node.is_some();
                loss::lost(context, node.as_deref(), &on_it, silence, braked)
            }
            None => loss::back(node.as_deref(), &on_it, self.given_up),
        };
        if acts.is_empty() {
            return Ok(None);
        }
        if self.silence.is_some()
            && let Some(version) = live(context, &self.node).await?
            && Some(&version) != self.seen.as_ref()
        {
            return Ok(Some(version));
        }
        let mut failed = Ok(None);
        for act in acts {
            if let Err(error) = perform(context, act).await {
                failed = Err(error);
            }
        }
        failed
    }
}

/// The version of the Lease as the server has it now.
async fn live(context: &Context, name: &str) -> Result<Option<String>, Error> {
    let api: Api<Lease> = Api::namespaced(context.client.clone(), NODE_LEASES);
    let lease = api.get_opt(name).await?;
    Ok(lease.and_then(|l| l.metadata.resource_version))
}

async fn perform(context: &Context, act: Act<'_>) -> Result<(), Error> {
    match act {
        Act::Conditions(node, conditions) => loss::write(context, node, conditions).await,
        Act::Tell(node, type_, reason, message) => {
            context.events.tell(node, type_, reason, message);
            Ok(())
        }
        Act::End(task, phase, reason, message) => tasks::end(context, task, phase, reason, &message).await,
        Act::Mark(task, lost) => {
            let message = if lost {
                "nothing is heard of the node"
            } else {
                "the node is heard of again"
            };
            tasks::set_node_lost(context, task, lost, message).await
        }
    }
}

/// A feed of the names of changed nodes.
fn changed_nodes(context: &Context) -> impl futures::Stream<Item = Vec<(String, Duration)>> {
    keyed::feed(context.shared.nodes.subscribe(), |change| {
        vec![(change.object().name().to_owned(), Duration::ZERO)]
    })
}
