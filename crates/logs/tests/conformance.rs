//! The contract of [`Logs`], told in stories every backend must pass, and what a restart keeps.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests

use bytes::Bytes;
use logs::{Log, LogError, Logs, OpenError, Options, Sqlite};
use std::sync::Arc;

/// Runs every story on every backend.
macro_rules! stories {
    ($($story:ident)*) => {
        mod sqlite {
            $(#[tokio::test] async fn $story() {
                let folder = tempfile::tempdir().unwrap();
                let logs = super::Sqlite::open(folder.path(), super::Options::default()).unwrap();
                super::$story(std::sync::Arc::new(logs)).await;
            })*
        }
    };
}

stories! {
    a_log_nobody_wrote_to_is_empty
    ranges_join_into_the_bytes_written
    a_range_that_does_not_start_at_the_end_stores_nothing_and_is_told_the_end
    a_repeated_range_is_harmless
    writers_racing_for_the_same_offset_store_one_range
    any_offset_and_limit_reads_the_same_bytes
    logs_of_other_steps_and_tasks_stay_apart
    a_follower_is_woken_by_growth_and_misses_none
    a_follower_of_a_removed_log_is_told
    removing_a_task_removes_all_its_logs_and_no_other
    closing_wakes_followers_and_refuses_what_follows
}

fn log(step: &str) -> Log {
    Log::new("7d3f", step)
}

async fn append(logs: &dyn Logs, log: &Log, start: u64, bytes: &str) -> u64 {
    logs.append(log, start, bytes.to_owned().into()).await.unwrap()
}

/// The whole log from `start`, read `limit` bytes at a time.
async fn read(logs: &dyn Logs, log: &Log, mut start: u64, limit: usize) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let bytes = logs.read(log, start, limit).await.unwrap();
        assert!(bytes.len() <= limit);
        if bytes.is_empty() {
            return all;
        }
        start += bytes.len() as u64;
        all.extend_from_slice(&bytes);
    }
}

async fn a_log_nobody_wrote_to_is_empty(logs: Arc<dyn Logs>) {
    assert_eq!(logs.size(&log("a")).await.unwrap(), 0);
    assert!(logs.read(&log("a"), 0, 10).await.unwrap().is_empty());
    assert_eq!(append(&*logs, &log("a"), 5, "late").await, 0);
    assert!(logs.tasks().await.unwrap().is_empty());
}

async fn ranges_join_into_the_bytes_written(logs: Arc<dyn Logs>) {
    let log = log("a");
    assert_eq!(append(&*logs, &log, 0, "one\n").await, 4);
    assert_eq!(append(&*logs, &log, 4, "two\n").await, 8);
    assert_eq!(
        append(&*logs, &log, 8, "").await,
        8,
        "an empty range asks where the log ends"
    );
    assert_eq!(logs.size(&log).await.unwrap(), 8);
    assert_eq!(read(&*logs, &log, 0, 100).await, b"one\ntwo\n");
}

async fn a_range_that_does_not_start_at_the_end_stores_nothing_and_is_told_the_end(logs: Arc<dyn Logs>) {
    let log = log("a");
    append(&*logs, &log, 0, "12345678").await;
    for (start, bytes) in [
        (4, "5678more"),
        (9, "gap"),
        (0, "other"),
        (7, "8"),
        (u64::MAX, "far"),
    ] {
        assert_eq!(append(&*logs, &log, start, bytes).await, 8, "{start} {bytes}");
    }
    assert_eq!(read(&*logs, &log, 0, 100).await, b"12345678");
}

async fn a_repeated_range_is_harmless(logs: Arc<dyn Logs>) {
    let log = log("a");
    for _ in 0..3 {
        assert_eq!(append(&*logs, &log, 0, "once").await, 4);
    }
    assert_eq!(read(&*logs, &log, 0, 100).await, b"once");
}

async fn writers_racing_for_the_same_offset_store_one_range(logs: Arc<dyn Logs>) {
    let log = log("a");
    let offers = ["a", "bb", "ccc", "dddd"].map(|bytes| append(&*logs, &log, 0, bytes));
    let answers = futures::future::join_all(offers).await;
    let stored = read(&*logs, &log, 0, 100).await;
    assert!(
        answers.iter().all(|end| *end == stored.len() as u64),
        "{answers:?} {stored:?}"
    );
    assert!(stored.iter().all(|byte| *byte == stored[0]));
}

async fn any_offset_and_limit_reads_the_same_bytes(logs: Arc<dyn Logs>) {
    let log = log("a");
    let all: Vec<u8> = (0..5000u32).flat_map(|n| (n * 7919).to_le_bytes()).collect();
    let mut start = 0;
    for size in [1, 2, 3, 700, 4096, 9000, usize::MAX] {
        let end = all.len().min(start + size.min(all.len()));
        let bytes = Bytes::copy_from_slice(&all[start..end]);
        logs.append(&log, start as u64, bytes).await.unwrap();
        start = end;
    }
    assert_eq!(start, all.len());
    for offset in [
        0, 1, 2, 3, 5, 6, 705, 706, 707, 4801, 13_801, 13_802, 13_803, 19_999, 20_000, 30_000,
    ] {
        for limit in [1000, 5000, 1 << 20] {
            let rest = all.get(offset..).unwrap_or_default();
            assert_eq!(
                read(&*logs, &log, offset as u64, limit).await,
                rest,
                "from {offset}, {limit} at a time"
            );
        }
    }
    assert!(logs.read(&log, u64::MAX, 1).await.unwrap().is_empty());
}

async fn logs_of_other_steps_and_tasks_stay_apart(logs: Arc<dyn Logs>) {
    append(&*logs, &log("a"), 0, "a").await;
    append(&*logs, &log("b"), 0, "bb").await;
    append(&*logs, &Log::new("other", "a"), 0, "ccc").await;
    assert_eq!(read(&*logs, &log("a"), 0, 9).await, b"a");
    assert_eq!(read(&*logs, &log("b"), 0, 9).await, b"bb");
    assert_eq!(read(&*logs, &Log::new("other", "a"), 0, 9).await, b"ccc");
    let mut tasks = logs.tasks().await.unwrap();
    tasks.sort();
    assert_eq!(
        tasks.iter().map(|task| &**task).collect::<Vec<_>>(),
        ["7d3f", "other"]
    );
}

async fn a_follower_is_woken_by_growth_and_misses_none(logs: Arc<dyn Logs>) {
    let follower = {
        let logs = logs.clone();
        tokio::spawn(async move {
            let (log, mut seen) = (log("a"), Vec::new());
            while seen.len() < 100 {
                logs.grown(&log, seen.len() as u64).await.unwrap();
                seen.extend_from_slice(&logs.read(&log, seen.len() as u64, 1000).await.unwrap());
            }
            seen
        })
    };
    let mut end = 0;
    while end < 100 {
        end = append(&*logs, &log("a"), end, "0123456789").await;
        append(&*logs, &log("b"), 0, "other").await;
    }
    assert_eq!(follower.await.unwrap(), b"0123456789".repeat(10));
}

async fn a_follower_of_a_removed_log_is_told(logs: Arc<dyn Logs>) {
    let log = log("a");
    append(&*logs, &log, 0, "a").await;
    let mut wait = Box::pin(logs.grown(&log, 1));
    // Until the wait has begun, a removal would only leave an empty log to wait for.
    for _ in 0..100 {
        assert!(futures::poll!(&mut wait).is_pending());
        logs.size(&log).await.unwrap();
    }
    logs.remove("7d3f").await.unwrap();
    assert!(matches!(wait.await, Err(LogError::Removed)));
}

async fn removing_a_task_removes_all_its_logs_and_no_other(logs: Arc<dyn Logs>) {
    for log in [log("a"), log("b"), Log::new("7d3f0", "a")] {
        append(&*logs, &log, 0, "text").await;
    }
    logs.remove("7d3f").await.unwrap();
    logs.remove("nobody").await.unwrap();
    assert_eq!(logs.size(&log("a")).await.unwrap(), 0);
    assert_eq!(logs.size(&log("b")).await.unwrap(), 0);
    assert_eq!(logs.size(&Log::new("7d3f0", "a")).await.unwrap(), 4);
}

async fn closing_wakes_followers_and_refuses_what_follows(logs: Arc<dyn Logs>) {
    let log = log("a");
    let wait = logs.grown(&log, 0);
    let (woken, closed) = futures::join!(wait, logs.close());
    assert!(matches!(woken, Err(LogError::Closed)), "{woken:?}");
    closed.unwrap();
    assert!(matches!(
        logs.append(&log, 0, "x".into()).await,
        Err(LogError::Closed)
    ));
    assert!(matches!(logs.read(&log, 0, 1).await, Err(LogError::Closed)));
    assert!(matches!(logs.grown(&log, 0).await, Err(LogError::Closed)));
}

#[tokio::test]
async fn a_restart_keeps_every_answered_range_and_goes_on_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let log = log("a");
    let first = Sqlite::open(folder.path(), Options::default()).unwrap();
    append(&first, &log, 0, "before ").await;
    drop(first);
    let second = Sqlite::open(folder.path(), Options::default()).unwrap();
    assert_eq!(
        append(&second, &log, 0, "again").await,
        7,
        "the writer asks with what it has and is told where to go on"
    );
    append(&second, &log, 7, "after").await;
    second.close().await.unwrap();
    let third = Sqlite::open(folder.path(), Options::default()).unwrap();
    assert_eq!(read(&third, &log, 0, 100).await, b"before after");
}

#[tokio::test]
async fn a_second_process_on_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Sqlite::open(folder.path(), Options::default()).unwrap();
    assert!(matches!(
        Sqlite::open(folder.path(), Options::default()),
        Err(OpenError::Lock(_))
    ));
}

#[tokio::test]
async fn ranges_gathered_together_are_written_together() {
    let folder = tempfile::tempdir().unwrap();
    let logs = Sqlite::open(folder.path(), Options::default()).unwrap();
    let names: Vec<_> = (0..500).map(|n| Log::new(format!("task-{n}"), "step")).collect();
    let ends = futures::future::join_all(names.iter().map(|log| append(&logs, log, 0, "line\n"))).await;
    assert!(ends.iter().all(|end| *end == 5));
    assert_eq!(logs.tasks().await.unwrap().len(), 500);
}
