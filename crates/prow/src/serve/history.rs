//! Keeps the store's history short: every few minutes, what is older than that is forgotten.
//!
//! Watches resume from history, and a client that was away for longer lists anew. Without this the database would grow with
//! every heartbeat.

use std::{sync::Arc, time::Duration};
use store::{Store, StoreError};
use tokio::time::{MissedTickBehavior, interval};

/// How long a client may be away and still resume its watch.
pub const KEPT: Duration = Duration::from_secs(300);

/// Forgets old history until it is dropped.
pub async fn run(store: Arc<dyn Store>) {
    let mut ticks = interval(KEPT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = None;
    loop {
        ticks.tick().await;
        match round(&*store, before).await {
            Ok(head) => before = Some(head),
            // the store says itself when it can write no more; anything else is tried again with the next round
            Err(error) => tracing::warn!(%error, "old history could not be forgotten"),
        }
    }
}

/// Forgets what was already there in the round before; answers where the history ends now.
async fn round(store: &dyn Store, before: Option<store::Revision>) -> Result<store::Revision, StoreError> {
    if let Some(before) = before {
        store.compact(before).await?;
    }
    Ok(store.head().await?.durable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;
    use store::{Durability, Guard, Memory, WatchEnd, Write};

    async fn put(store: &dyn Store, key: &str) -> store::Revision {
        let write = Write::put(key, "x", Guard::Any);
        store
            .commit(vec![write], Durability::Durable)
            .await
            .unwrap()
            .remove(0)
            .unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn history_older_than_a_round_is_forgotten_and_younger_is_kept() {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let old = put(&*store, "a").await;
        put(&*store, "a").await;
        let running = tokio::spawn(run(store.clone()));
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
        let young = put(&*store, "a").await;
        put(&*store, "a").await;
        loop {
            tokio::time::sleep(KEPT).await;
            let ends = store.watch("", old).next().await;
            if matches!(ends, Some(Err(WatchEnd::Compacted { .. }))) {
                break;
            }
        }
        assert!(store.watch("", young).next().await.unwrap().is_ok());
        running.abort();
    }
}
