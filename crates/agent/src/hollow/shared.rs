//! Many hollow agents through one administrator's certificate: one watch for all, a few connections for what they write.

use super::{
    Counters,
    node::{Writer, follow},
    wire::{Seen, Target},
};
use api::clock::Clock;
use std::{
    collections::{HashSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};

pub(super) struct Fleet {
    pub target: Target,
    pub renew: Duration,
    pub clock: Arc<dyn Clock>,
    pub counters: Arc<Counters>,
}

impl Fleet {
    pub async fn run(self, nodes: Vec<String>, connections: usize) {
        let known: HashSet<String> = nodes.iter().cloned().collect();
        let mut workers = JoinSet::new();
        let queues: Vec<mpsc::UnboundedSender<Seen>> = (0..connections.max(1))
            .map(|_| {
                let (send, queue) = mpsc::unbounded_channel();
                workers.spawn(work(self.writer(), queue));
                send
            })
            .collect();
        workers.spawn(renew(self.writer(), nodes, self.renew));
        follow(&self.target, None, &self.counters, |task| {
            // Always the same queue for a Task: what is seen of it stays in order.
            let queue = &queues[place(&task.uid, queues.len())];
            if known.contains(&task.node) {
                let _ = queue.send(task); // workers end with us
            }
        })
        .await;
    }

    fn writer(&self) -> Writer {
        Writer::new(self.target.clone(), self.clock.clone(), self.counters.clone())
    }
}

async fn work(mut writer: Writer, mut queue: mpsc::UnboundedReceiver<Seen>) {
    let mut done = HashSet::new();
    while let Some(task) = queue.recv().await {
        if done.insert(task.uid.clone()) {
            writer.carry_out(&task).await;
        } else if !task.phase.is_empty() {
            done.remove(&task.uid); // seen again as it was claimed; an end is not shown
        }
    }
}

/// Renews all Leases once a period, evenly spread.
async fn renew(mut writer: Writer, nodes: Vec<String>, every: Duration) {
    let count = u32::try_from(nodes.len().max(1)).unwrap_or(u32::MAX);
    // The first round at once: a node without a Lease is not ready.
    for node in &nodes {
        writer.renew(node).await;
    }
    let mut ticks = interval((every / count).max(Duration::from_micros(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for node in nodes.iter().cycle() {
        ticks.tick().await;
        writer.renew(node).await;
    }
}

fn place(uid: &str, places: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    usize::try_from(hasher.finish() % places as u64).unwrap_or_default()
}
