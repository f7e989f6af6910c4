//! A loop over keys: each is worked on by one at a time, again when it changed, later when asked, after a growing wait when it failed.

use crate::error::Error;
use futures::{Stream, StreamExt, stream::FuturesUnordered};
use informer::{Change, Changes};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fmt::Debug,
    future::Future,
    hash::Hash,
    pin::pin,
    time::Duration,
};
use tokio::time::Instant;

/// After a conflict the watch needs a moment to show what changed.
const CONFLICT_WAIT: Duration = Duration::from_millis(20);
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Done, or to be looked at again after a while.
pub(crate) type Outcome = Result<Option<Duration>, Error>;

/// Keys with the time each is due.
struct Due<K> {
    by_key: HashMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K: Clone + Eq + Hash + Ord> Due<K> {
    /// The earlier time counts.
    fn add(&mut self, key: K, at: Instant) {
        if let Some(known) = self.by_key.get(&key) {
            if *known <= at {
                return;
            }
            self.by_time.remove(&(*known, key.clone()));
        }
        self.by_key.insert(key.clone(), at);
        self.by_time.insert((at, key));
    }

    fn pop(&mut self, now: Instant, busy: &HashSet<K>) -> Option<K> {
        let next = self
            .by_time
            .iter()
            .take_while(|(at, _)| *at <= now)
            .find(|(_, key)| !busy.contains(key));
        let (at, key) = next?.clone();
        self.by_time.remove(&(at, key.clone()));
        self.by_key.remove(&key);
        Some(key)
    }

    fn next(&self, busy: &HashSet<K>) -> Option<Instant> {
        self.by_time
            .iter()
            .find(|(_, key)| !busy.contains(key))
            .map(|(at, _)| *at)
    }
}

/// Calls `act` for every key the feed brings, `at_once` of them at a time; a key comes with how long it can wait.
pub(crate) async fn work<K, S, F, Fut>(what: &'static str, feed: S, at_once: usize, act: F)
where
    K: Clone + Eq + Hash + Ord + Debug,
    S: Stream<Item = Vec<(K, Duration)>>,
    F: Fn(K) -> Fut,
    Fut: Future<Output = Outcome>,
{
    let mut feed = pin!(feed);
    let mut due: Due<K> = Due {
        by_key: HashMap::new(),
        by_time: BTreeSet::new(),
    };
    let mut busy: HashSet<K> = HashSet::new();
    let mut failures: HashMap<K, u32> = HashMap::new();
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < at_once
            && let Some(key) = due.pop(Instant::now(), &busy)
        {
            busy.insert(key.clone());
            let acting = act(key.clone());
            running.push(async move { (key, acting.await) });
        }
        let next = due.next(&busy).filter(|_| running.len() < at_once);
        tokio::select! {
            Some(batch) = feed.next() => {
                let now = Instant::now();
                batch.into_iter().for_each(|(key, wait)| due.add(key, now + wait));
            }
            Some((key, outcome)) = running.next() => {
                busy.remove(&key);
                let again = match outcome {
                    Ok(again) => {
                        failures.remove(&key);
                        again
                    }
                    Err(Error::Gone) => {
                        failures.remove(&key);
                        None
                    }
                    Err(Error::Conflict) => Some(CONFLICT_WAIT),
                    Err(error) => {
                        let times = failures.entry(key.clone()).or_default();
                        let wait = FIRST_WAIT.saturating_mul(1 << (*times).min(10)).min(LONGEST_WAIT);
                        *times += 1;
                        tracing::warn!(what, ?key, %error, ?wait, "will be tried again");
                        Some(wait)
                    }
                };
                if let Some(wait) = again {
                    due.add(key, Instant::now() + wait);
                }
            }
            () = wait_until(next) => {}
        }
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// The keys of changed objects as a feed for [`work`].
pub(crate) fn feed<T, K>(
    changes: Changes<T>,
    keys: impl Fn(&Change<T>) -> Vec<(K, Duration)> + Clone,
) -> impl Stream<Item = Vec<(K, Duration)>> {
    futures::stream::unfold(changes, move |mut changes| {
        let keys = keys.clone();
        async move {
            let batch = changes.next().await;
            Some((batch.iter().flat_map(&keys).collect(), changes))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_worked_on_by_one_at_a_time_and_again_if_it_changed_meanwhile() {
        let seen = RefCell::new(Vec::new());
        let start = Instant::now();
        let steps = [(0, "a"), (10, "a"), (20, "a"), (30, "b")];
        let feed = futures::stream::iter(steps).then(|(at, key)| async move {
            tokio::time::sleep_until(start + Duration::from_millis(at)).await;
            vec![(key, Duration::ZERO)]
        });
        let feed = feed.chain(futures::stream::pending());
        let act = |key| {
            seen.borrow_mut().push((key, start.elapsed().as_millis()));
            async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Ok(None)
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(5), work("test", feed, 8, act)).await;
        assert_eq!(*seen.borrow(), [("a", 0), ("b", 30), ("a", 100)]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_tried_again_ever_later_and_gone_ones_never() {
        let seen = RefCell::new(Vec::new());
        let start = Instant::now();
        let feed = futures::stream::iter([vec![("bad", Duration::ZERO), ("gone", Duration::ZERO)]]);
        let feed = feed.chain(futures::stream::pending());
        let act = |key| {
            seen.borrow_mut().push((key, start.elapsed().as_millis()));
            async move {
                match key {
                    "gone" => Err(Error::Gone),
                    _ => Err(Error::Api(kube::Error::Service("down".into()))),
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(1000), work("test", feed, 1, act)).await;
        assert_eq!(
            *seen.borrow(),
            [("bad", 0), ("gone", 0), ("bad", 100), ("bad", 300), ("bad", 700)]
        );
    }
}
