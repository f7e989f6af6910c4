//! Random histories, told alike by the store on disk and the one in memory.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests

use futures::StreamExt;
use proptest::prelude::*;
use std::sync::Arc;
use store::{Batch, Durability, Guard, Memory, Options, Revision, Sqlite, Store, WatchEnd, Write};

/// One thing done to both stores. Numbers that pick a key or a revision are taken modulo what there is.
#[derive(Clone, Debug)]
enum Act {
    Commit {
        writes: Vec<(u8, Option<u8>, u8)>,
        lazy: bool,
    },
    Scan {
        prefix: u8,
        from: u8,
        limit: usize,
    },
    Watch {
        prefix: u8,
        after: u8,
    },
    Compact {
        before: u8,
    },
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let write = (
        any::<u8>(),
        proptest::option::weighted(0.8, any::<u8>()),
        any::<u8>(),
    );
    prop_oneof![
        12 => (proptest::collection::vec(write, 0..6), any::<bool>()).prop_map(|(writes, lazy)| Act::Commit { writes, lazy }),
        4 => (any::<u8>(), any::<u8>(), 0..8usize).prop_map(|(prefix, from, limit)| Act::Scan { prefix, from, limit }),
        3 => (any::<u8>(), any::<u8>()).prop_map(|(prefix, after)| Act::Watch { prefix, after }),
        1 => any::<u8>().prop_map(|before| Act::Compact { before }),
        1 => Just(Act::Reopen),
    ]
}

const PREFIXES: [&str; 4] = ["", "a/", "b/", "a"];

fn key(pick: u8) -> String {
    let kind = ["a", "b", "ab"][usize::from(pick) % 3];
    format!("{kind}/{}", pick % 5)
}

fn guard(pick: u8, revisions: &[Revision]) -> Guard {
    match pick % 4 {
        0 => Guard::Absent,
        1 if !revisions.is_empty() => Guard::Revision(revisions[usize::from(pick) % revisions.len()]),
        2 if !revisions.is_empty() => Guard::Revision(revisions[revisions.len() - 1]),
        _ => Guard::Any,
    }
}

/// Everything a watch tells until it has told of `upto`.
async fn told(
    store: &dyn Store,
    prefix: &str,
    after: Revision,
    upto: Revision,
) -> Result<Vec<Batch>, WatchEnd> {
    let mut watch = store.watch(prefix, after);
    let mut batches = Vec::new();
    if after >= upto {
        // Nothing to wait for; only whether it may start.
        return match futures::poll!(watch.next()) {
            std::task::Poll::Ready(Some(Err(end))) => Err(end),
            other => {
                assert!(other.is_pending(), "{other:?}");
                Ok(batches)
            }
        };
    }
    loop {
        let batch = watch.next().await.unwrap()?;
        let done = batch.revision >= upto;
        if !batch.events.is_empty() {
            batches.push(batch);
        }
        if done {
            return Ok(batches);
        }
    }
}

async fn play(acts: Vec<Act>, recent: usize) {
    let folder = tempfile::tempdir().unwrap();
    // The pace of flushes and reservations is varied by the size of the feed.
    let options = Options {
        recent,
        reserve: 7,
        ..Options::default()
    };
    let memory = Memory::new();
    let mut sqlite = Arc::new(Sqlite::open(folder.path(), options).unwrap());
    let mut revisions: Vec<Revision> = Vec::new();
    for act in acts {
        match act {
            Act::Commit { writes, lazy } => {
                let writes: Vec<_> = writes
                    .into_iter()
                    .map(|(pick, value, chosen)| match value {
                        Some(value) => Write::put(key(pick), vec![value; 3], guard(chosen, &revisions)),
                        None => Write::delete(key(pick), guard(chosen, &revisions)),
                    })
                    .collect();
                let durability = if lazy {
                    Durability::Lazy
                } else {
                    Durability::Durable
                };
                let expected = memory.commit(writes.clone(), durability).await.unwrap();
                assert_eq!(sqlite.commit(writes, durability).await.unwrap(), expected);
                revisions.extend(expected.iter().flatten());
            }
            Act::Scan { prefix, from, limit } => {
                let prefix = PREFIXES[usize::from(prefix) % 4];
                let from = if from % 2 == 0 { String::new() } else { key(from) };
                let expected = memory.scan(prefix, &from, limit).await.unwrap();
                assert_eq!(sqlite.scan(prefix, &from, limit).await.unwrap(), expected);
                for entry in expected.0 {
                    assert_eq!(sqlite.get(&entry.key).await.unwrap(), Some(entry));
                }
            }
            Act::Watch { prefix, after } => {
                let prefix = PREFIXES[usize::from(prefix) % 4];
                // A durable write makes both tell of progress up to it.
                let last = Write::put("end", "", Guard::Any);
                let upto = memory
                    .commit(vec![last.clone()], Durability::Durable)
                    .await
                    .unwrap()
                    .remove(0)
                    .unwrap();
                sqlite.commit(vec![last], Durability::Durable).await.unwrap();
                let after = u64::from(after) % (upto + 2);
                let expected = told(&memory, prefix, after, upto).await;
                assert_eq!(told(&*sqlite, prefix, after, upto).await, expected);
            }
            Act::Compact { before } => {
                let head = memory.head().await.unwrap().revision;
                let before = u64::from(before) % (head + 2);
                memory.compact(before).await.unwrap();
                sqlite.compact(before).await.unwrap();
            }
            Act::Reopen => {
                let epoch = sqlite.epoch().to_owned();
                sqlite.close().await.unwrap();
                sqlite = Arc::new(Sqlite::open(folder.path(), options).unwrap());
                assert_eq!(sqlite.epoch(), epoch);
            }
        }
        assert_eq!(
            sqlite.head().await.unwrap().revision,
            memory.head().await.unwrap().revision
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn disk_and_memory_tell_the_same_story(
        acts in proptest::collection::vec(act(), 1..60),
        recent in prop_oneof![Just(0), Just(2_000), Just(1 << 20)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(acts, recent));
    }
}
