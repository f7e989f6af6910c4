//! The contract of [`Store`], kept by every backend: each story runs on all of them.
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests

use bytes::Bytes;
use futures::StreamExt;
use store::{
    Batch, Conflict, Durability, Entry, Guard, Memory, Options, Revision, Sqlite, Store, StoreError,
    WatchEnd, WatchStream, Write,
};

/// Runs every story on every backend.
macro_rules! stories {
    ($($story:ident)*) => {
        mod memory {
            $(#[tokio::test] async fn $story() { super::$story(&super::Memory::new()).await; })*
        }
        mod sqlite {
            $(#[tokio::test] async fn $story() {
                let folder = tempfile::tempdir().unwrap();
                let store = super::Sqlite::open(folder.path(), super::Options::default()).unwrap();
                super::$story(&store).await;
            })*
            /// Nothing fits into the feed, so every watcher lives off the log table.
            mod without_recent {
                $(#[tokio::test] async fn $story() {
                    let folder = tempfile::tempdir().unwrap();
                    let options = crate::Options { recent: 0, ..crate::Options::default() };
                    let store = crate::Sqlite::open(folder.path(), options).unwrap();
                    crate::$story(&store).await;
                })*
            }
        }
    };
}

stories! {
    an_empty_store_has_nothing_at_revision_one
    a_put_is_read_back_with_its_revision
    a_guard_admits_only_the_state_it_names
    a_conflict_shows_what_is_there
    deleting_nothing_is_a_conflict_whatever_the_guard
    a_guard_sees_earlier_writes_of_its_own_batch
    a_conflict_in_a_batch_stops_none_of_the_others
    one_of_many_racing_writers_wins_each_round
    a_scan_is_in_the_order_of_bytes_and_stays_in_its_prefix
    pages_join_without_gap_or_repeat
    a_watch_tells_every_change_in_order_with_what_was_before
    a_watch_resumed_at_any_batch_misses_and_repeats_nothing
    a_watch_sees_only_its_prefix_and_is_told_of_progress
    a_watch_of_the_future_ends
    a_watch_from_before_compaction_ends_and_later_ones_go_on
    compaction_keeps_every_living_entry
    compaction_beyond_the_head_is_clamped
    lazy_writes_are_read_listed_guarded_and_watched_like_others
    a_lazy_delete_hides_what_is_on_disk
    a_lazy_write_and_a_durable_one_keep_their_order
    values_of_any_bytes_and_size_survive
    closing_ends_watches_and_refuses_what_follows
}

async fn put(store: &dyn Store, key: &str, value: &str) -> Revision {
    write(store, Write::put(key, value.to_owned(), Guard::Any))
        .await
        .unwrap()
}

async fn write(store: &dyn Store, write: Write) -> Result<Revision, Conflict> {
    store
        .commit(vec![write], Durability::Durable)
        .await
        .unwrap()
        .remove(0)
}

async fn lazily(store: &dyn Store, write: Write) -> Result<Revision, Conflict> {
    store
        .commit(vec![write], Durability::Lazy)
        .await
        .unwrap()
        .remove(0)
}

async fn keys(store: &dyn Store, prefix: &str) -> Vec<String> {
    let (entries, _) = store.scan(prefix, "", usize::MAX).await.unwrap();
    entries.iter().map(|entry| entry.key.to_string()).collect()
}

/// The next batch with events in it.
async fn event(watch: &mut WatchStream) -> Batch {
    loop {
        let batch = watch.next().await.unwrap().unwrap();
        if !batch.events.is_empty() {
            return batch;
        }
    }
}

/// All batches with events, until the watcher was told of everything up to `upto`.
async fn drain(watch: &mut WatchStream, upto: Revision) -> Vec<Batch> {
    let mut batches = Vec::new();
    loop {
        let batch = watch.next().await.unwrap().unwrap();
        let done = batch.revision >= upto;
        if !batch.events.is_empty() {
            batches.push(batch);
        }
        if done {
            return batches;
        }
    }
}

async fn end(mut watch: WatchStream) -> WatchEnd {
    loop {
        if let Err(end) = watch.next().await.expect("a watch says why it ends") {
            assert!(watch.next().await.is_none(), "the reason is the last item");
            return end;
        }
    }
}

async fn an_empty_store_has_nothing_at_revision_one(store: &dyn Store) {
    assert_eq!(store.get("a").await.unwrap(), None);
    assert_eq!(store.scan("", "", 10).await.unwrap(), (vec![], 1));
    let head = store.head().await.unwrap();
    assert_eq!((head.revision, head.durable), (1, 1));
    assert!(put(store, "a", "1").await > 1);
}

async fn a_put_is_read_back_with_its_revision(store: &dyn Store) {
    let first = put(store, "a", "1").await;
    let second = put(store, "a", "2").await;
    assert!(second > first);
    let entry = Entry {
        key: "a".into(),
        value: "2".into(),
        revision: second,
    };
    assert_eq!(store.get("a").await.unwrap(), Some(entry.clone()));
    assert_eq!(store.scan("", "", 10).await.unwrap(), (vec![entry], second));
}

async fn a_guard_admits_only_the_state_it_names(store: &dyn Store) {
    assert!(
        write(store, Write::put("a", "0", Guard::Revision(1)))
            .await
            .is_err()
    );
    let first = write(store, Write::put("a", "1", Guard::Absent)).await.unwrap();
    assert!(write(store, Write::put("a", "x", Guard::Absent)).await.is_err());
    let second = write(store, Write::put("a", "2", Guard::Revision(first)))
        .await
        .unwrap();
    assert!(
        write(store, Write::put("a", "x", Guard::Revision(first)))
            .await
            .is_err()
    );
    assert!(
        write(store, Write::delete("a", Guard::Revision(first)))
            .await
            .is_err()
    );
    assert!(write(store, Write::delete("a", Guard::Absent)).await.is_err());
    assert_eq!(store.get("a").await.unwrap().unwrap().value, "2");
    write(store, Write::delete("a", Guard::Revision(second)))
        .await
        .unwrap();
    assert_eq!(store.get("a").await.unwrap(), None);
    write(store, Write::put("a", "3", Guard::Absent)).await.unwrap();
}

async fn a_conflict_shows_what_is_there(store: &dyn Store) {
    let missing = write(store, Write::put("a", "1", Guard::Revision(7)))
        .await
        .unwrap_err();
    assert_eq!(missing.current, None);
    let revision = put(store, "a", "1").await;
    let conflict = write(store, Write::put("a", "2", Guard::Absent))
        .await
        .unwrap_err();
    assert_eq!(
        conflict.current,
        Some(Entry {
            key: "a".into(),
            value: "1".into(),
            revision
        })
    );
}

async fn deleting_nothing_is_a_conflict_whatever_the_guard(store: &dyn Store) {
    for guard in [Guard::Any, Guard::Absent, Guard::Revision(1)] {
        assert_eq!(
            write(store, Write::delete("a", guard)).await,
            Err(Conflict { current: None })
        );
        assert_eq!(
            lazily(store, Write::delete("a", guard)).await,
            Err(Conflict { current: None })
        );
    }
    assert_eq!(store.head().await.unwrap().revision, 1, "a conflict is no change");
}

async fn a_guard_sees_earlier_writes_of_its_own_batch(store: &dyn Store) {
    for durability in [Durability::Durable, Durability::Lazy] {
        let key = format!("{durability:?}");
        let batch = vec![
            Write::put(&*key, "1", Guard::Absent),
            Write::put(&*key, "2", Guard::Absent),
            Write::delete(&*key, Guard::Any),
            Write::put(&*key, "3", Guard::Absent),
        ];
        let answers = store.commit(batch, durability).await.unwrap();
        let first = *answers[0].as_ref().unwrap();
        let shown = answers[1].as_ref().unwrap_err().current.clone();
        assert_eq!(
            shown,
            Some(Entry {
                key: (&*key).into(),
                value: "1".into(),
                revision: first
            })
        );
        assert!(first < *answers[2].as_ref().unwrap());
        let last = *answers[3].as_ref().unwrap();
        assert_eq!(store.get(&key).await.unwrap().unwrap().revision, last);
    }
}

async fn a_conflict_in_a_batch_stops_none_of_the_others(store: &dyn Store) {
    put(store, "b", "taken").await;
    let batch = ["a", "b", "c"]
        .map(|key| Write::put(key, "new", Guard::Absent))
        .to_vec();
    let answers = store.commit(batch, Durability::Durable).await.unwrap();
    assert_eq!(
        answers.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, false, true]
    );
    assert_eq!(keys(store, "").await, ["a", "b", "c"]);
    assert!(
        store
            .commit(vec![], Durability::Durable)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn one_of_many_racing_writers_wins_each_round(store: &dyn Store) {
    let mut revision = put(store, "a", "0").await;
    for round in 0..20 {
        let race = (0..8).map(|n| {
            write(
                store,
                Write::put("a", format!("{round}/{n}"), Guard::Revision(revision)),
            )
        });
        let outcomes = futures::future::join_all(race).await;
        let won: Vec<_> = outcomes
            .iter()
            .filter_map(|outcome| outcome.as_ref().ok())
            .collect();
        assert_eq!(won.len(), 1);
        revision = *won[0];
        for lost in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
            assert_eq!(lost.current.as_ref().unwrap().revision, revision);
        }
    }
}

async fn a_scan_is_in_the_order_of_bytes_and_stays_in_its_prefix(store: &dyn Store) {
    for key in ["b/z", "a/x", "b/é", "b0", "b/a", "b", "b/\u{10ffff}", "c"] {
        put(store, key, "").await;
    }
    assert_eq!(keys(store, "b/").await, ["b/a", "b/z", "b/é", "b/\u{10ffff}"]);
    assert_eq!(
        keys(store, "").await,
        ["a/x", "b", "b/a", "b/z", "b/é", "b/\u{10ffff}", "b0", "c"]
    );
    assert!(keys(store, "d").await.is_empty());
    let (from, _) = store.scan("b/", "b/b", 2).await.unwrap();
    assert_eq!(from.iter().map(|e| &*e.key).collect::<Vec<_>>(), ["b/z", "b/é"]);
    let (before, _) = store.scan("b/", "a", 1).await.unwrap();
    assert_eq!(
        &*before[0].key, "b/a",
        "`from` before the prefix starts at the prefix"
    );
    let (past, revision) = store.scan("b/", "c", 1).await.unwrap();
    assert!(past.is_empty());
    assert_eq!(revision, store.head().await.unwrap().revision);
}

async fn pages_join_without_gap_or_repeat(store: &dyn Store) {
    let all: Vec<_> = (0..25).map(|n| format!("k/{n:02}")).collect();
    for (n, key) in all.iter().enumerate() {
        let durability = if n % 3 == 0 {
            Durability::Lazy
        } else {
            Durability::Durable
        };
        store
            .commit(vec![Write::put(&**key, "", Guard::Absent)], durability)
            .await
            .unwrap();
    }
    let (mut found, mut from) = (Vec::new(), String::new());
    loop {
        let (page, _) = store.scan("k/", &from, 4).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 4);
        from = format!("{}\0", last.key);
        found.extend(page.iter().map(|entry| entry.key.to_string()));
    }
    assert_eq!(found, all);
}

async fn a_watch_tells_every_change_in_order_with_what_was_before(store: &dyn Store) {
    let mut watch = store.watch("", 1);
    let first = put(store, "a", "1").await;
    let second = put(store, "a", "2").await;
    let third = write(store, Write::delete("a", Guard::Any)).await.unwrap();
    let batch = event(&mut watch).await;
    assert_eq!(batch.revision, first);
    assert_eq!(batch.events[0].value.as_deref(), Some(&b"1"[..]));
    assert_eq!(batch.events[0].previous, None);
    let batch = event(&mut watch).await;
    assert_eq!(batch.revision, second);
    let before = |value: &'static str, revision| {
        Some(Entry {
            key: "a".into(),
            value: value.into(),
            revision,
        })
    };
    assert_eq!(batch.events[0].previous, before("1", first));
    let batch = event(&mut watch).await;
    assert_eq!(
        (batch.revision, &*batch.events[0].key, &batch.events[0].value),
        (third, "a", &None)
    );
    assert_eq!(batch.events[0].previous, before("2", second));
}

async fn a_watch_resumed_at_any_batch_misses_and_repeats_nothing(store: &dyn Store) {
    let mut last = 1;
    for n in 0..30 {
        let key = format!("k/{}", n % 7);
        last = if n % 5 == 4 {
            write(store, Write::delete(&*key, Guard::Any))
                .await
                .unwrap_or(last)
        } else {
            put(store, &key, &n.to_string()).await
        };
    }
    let all = drain(&mut store.watch("k/", 1), last).await;
    assert!(all.is_sorted_by_key(|batch| batch.revision));
    for (seen, batch) in all.iter().enumerate().take(all.len() - 1) {
        assert_eq!(
            drain(&mut store.watch("k/", batch.revision), last).await,
            all[seen + 1..]
        );
    }
}

async fn a_watch_sees_only_its_prefix_and_is_told_of_progress(store: &dyn Store) {
    let mut watch = store.watch("a/", 1);
    let mine = put(store, "a/1", "").await;
    assert_eq!(event(&mut watch).await.revision, mine);
    let other = put(store, "b/1", "").await;
    let mark = watch.next().await.unwrap().unwrap();
    assert_eq!(
        mark,
        Batch {
            revision: other,
            events: vec![]
        }
    );
    let next = put(store, "a/2", "").await;
    assert_eq!(event(&mut watch).await.revision, next);
}

async fn a_watch_of_the_future_ends(store: &dyn Store) {
    let head = put(store, "a", "").await;
    assert_eq!(end(store.watch("", head + 1)).await, WatchEnd::Future { head });
    let mut now = store.watch("", head);
    let next = put(store, "a", "").await;
    assert_eq!(event(&mut now).await.revision, next);
}

async fn a_watch_from_before_compaction_ends_and_later_ones_go_on(store: &dyn Store) {
    let first = put(store, "a", "1").await;
    let second = put(store, "a", "2").await;
    let third = put(store, "a", "3").await;
    store.compact(second).await.unwrap();
    assert_eq!(
        end(store.watch("", first)).await,
        WatchEnd::Compacted { oldest: second }
    );
    let later = drain(&mut store.watch("", second), third).await;
    assert_eq!(later.len(), 1);
    assert_eq!(
        later[0].events[0].previous.as_ref().unwrap().value,
        "2",
        "what the rest supersedes is kept"
    );
    store.compact(first).await.unwrap();
    assert_eq!(
        end(store.watch("", first)).await,
        WatchEnd::Compacted { oldest: second },
        "it never goes back"
    );
}

async fn compaction_keeps_every_living_entry(store: &dyn Store) {
    for n in 0..600 {
        put(store, &format!("k/{}", n % 10), &n.to_string()).await;
    }
    write(store, Write::delete("k/3", Guard::Any)).await.unwrap();
    let before = store.scan("", "", usize::MAX).await.unwrap();
    store.compact(before.1).await.unwrap();
    let last = put(store, "z", "").await;
    let (entries, _) = store.scan("k/", "", usize::MAX).await.unwrap();
    assert_eq!(entries, before.0);
    assert_eq!(drain(&mut store.watch("", before.1), last).await.len(), 1);
}

async fn compaction_beyond_the_head_is_clamped(store: &dyn Store) {
    let head = put(store, "a", "").await;
    store.compact(head + 1000).await.unwrap();
    let mut watch = store.watch("", head);
    let next = put(store, "a", "").await;
    assert_eq!(next, head + 1);
    assert_eq!(event(&mut watch).await.revision, next);
}

async fn lazy_writes_are_read_listed_guarded_and_watched_like_others(store: &dyn Store) {
    let mut watch = store.watch("", 1);
    put(store, "b", "old").await;
    let first = lazily(store, Write::put("a", "1", Guard::Absent)).await.unwrap();
    assert!(lazily(store, Write::put("a", "x", Guard::Absent)).await.is_err());
    let second = lazily(store, Write::put("a", "2", Guard::Revision(first)))
        .await
        .unwrap();
    let third = lazily(store, Write::put("b", "new", Guard::Any)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap().unwrap().value, "2");
    let (entries, revision) = store.scan("", "", 10).await.unwrap();
    assert_eq!(
        entries
            .iter()
            .map(|e| (&*e.key, &e.value[..]))
            .collect::<Vec<_>>(),
        [("a", &b"2"[..]), ("b", b"new")]
    );
    assert_eq!(revision, third);
    for revision in [first - 1, first, second, third] {
        assert_eq!(event(&mut watch).await.revision, revision);
    }
    let mut resumed = store.watch("a", first);
    assert_eq!(event(&mut resumed).await.revision, second);
}

async fn a_lazy_delete_hides_what_is_on_disk(store: &dyn Store) {
    for key in ["a", "b", "c"] {
        put(store, key, "").await;
    }
    lazily(store, Write::delete("a", Guard::Any)).await.unwrap();
    assert_eq!(store.get("a").await.unwrap(), None);
    let (page, _) = store.scan("", "", 2).await.unwrap();
    assert_eq!(
        page.iter().map(|e| &*e.key).collect::<Vec<_>>(),
        ["b", "c"],
        "a full page in spite of it"
    );
    lazily(store, Write::put("a", "again", Guard::Absent))
        .await
        .unwrap();
    assert_eq!(store.get("a").await.unwrap().unwrap().value, "again");
}

async fn a_lazy_write_and_a_durable_one_keep_their_order(store: &dyn Store) {
    let mut watch = store.watch("", 1);
    let mut expected = Vec::new();
    let mut revision = 1;
    for n in 0..40 {
        let guard = if revision == 1 {
            Guard::Absent
        } else {
            Guard::Revision(revision)
        };
        let write = Write::put("a", n.to_string(), guard);
        let durability = if n % 3 == 0 {
            Durability::Durable
        } else {
            Durability::Lazy
        };
        revision = store
            .commit(vec![write], durability)
            .await
            .unwrap()
            .remove(0)
            .unwrap();
        expected.push(revision);
    }
    assert!(expected.is_sorted());
    for revision in expected {
        assert_eq!(event(&mut watch).await.revision, revision);
    }
}

async fn values_of_any_bytes_and_size_survive(store: &dyn Store) {
    let values = [
        vec![],
        vec![0],
        vec![0xff; 3],
        (0..=255).collect::<Vec<u8>>(),
        vec![7; 3 << 20],
    ];
    for (n, value) in values.iter().enumerate() {
        let key = format!("k{n}");
        write(
            store,
            Write::put(&*key, Bytes::from(value.clone()), Guard::Absent),
        )
        .await
        .unwrap();
        assert_eq!(store.get(&key).await.unwrap().unwrap().value, *value);
    }
    let head = store.head().await.unwrap().revision;
    let batches = drain(&mut store.watch("", 1), head).await;
    let told: Vec<_> = batches
        .iter()
        .map(|b| b.events[0].value.clone().unwrap().to_vec())
        .collect();
    assert_eq!(told, values, "an empty value is a value, not a deletion");
}

async fn closing_ends_watches_and_refuses_what_follows(store: &dyn Store) {
    put(store, "a", "").await;
    let watch = store.watch("", 1);
    store.close().await.unwrap();
    assert!(matches!(end(watch).await, WatchEnd::Lost(_)));
    assert!(matches!(store.get("a").await, Err(StoreError::Closed)));
    assert!(matches!(store.scan("", "", 1).await, Err(StoreError::Closed)));
    assert!(matches!(
        store.commit(vec![], Durability::Durable).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(store.compact(1).await, Err(StoreError::Closed)));
}
