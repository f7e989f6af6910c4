//! What the store on disk remembers: clean restarts, crashes of its process, and what a second process is told.
//!
//! A crash is a child process (this test binary again, see [`child`]) that is killed while it writes.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests

use futures::StreamExt;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use store::{Durability, Guard, LockError, OpenError, Options, Revision, Sqlite, Store, WatchEnd, Write};

fn open(folder: &Path) -> Sqlite {
    Sqlite::open(folder, Options::default()).unwrap()
}

async fn write(store: &dyn Store, write: Write, durability: Durability) -> Revision {
    store
        .commit(vec![write], durability)
        .await
        .unwrap()
        .remove(0)
        .unwrap()
}

async fn put(store: &dyn Store, key: &str, value: &str) -> Revision {
    write(
        store,
        Write::put(key, value.to_owned(), Guard::Any),
        Durability::Durable,
    )
    .await
}

#[tokio::test]
async fn a_clean_restart_keeps_entries_history_epoch_and_revision() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    put(&store, "a", "1").await;
    put(&store, "a", "2").await;
    let head = write(&store, Write::put("lazy", "3", Guard::Any), Durability::Lazy).await;
    let (entries, epoch) = (store.scan("", "", 10).await.unwrap(), store.epoch().to_owned());
    store.close().await.unwrap();

    let store = open(folder.path());
    assert_eq!(store.epoch(), epoch);
    assert_eq!(
        store.scan("", "", 10).await.unwrap(),
        entries,
        "lazy writes were put on disk by closing"
    );
    assert_eq!(put(&store, "b", "").await, head + 1, "no revision is skipped");
    let history: Vec<_> = store
        .watch("a", 1)
        .take(2)
        .map(|batch| batch.unwrap().revision)
        .collect()
        .await;
    assert_eq!(history, [2, 3]);
}

#[tokio::test]
async fn dropping_a_store_closes_it_even_while_a_watch_is_held() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let head = write(&store, Write::put("lazy", "1", Guard::Any), Durability::Lazy).await;
    let mut watch = store.watch("other", head);
    assert!(futures::poll!(watch.next()).is_pending());
    drop(store);
    assert!(matches!(watch.next().await, Some(Err(WatchEnd::Lost(_)))));
    assert_eq!(
        open(folder.path()).get("lazy").await.unwrap().unwrap().revision,
        head
    );
}

#[tokio::test]
async fn compaction_survives_a_restart_and_leaves_only_living_rows() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    for n in 0..1000 {
        put(&store, &format!("k/{}", n % 10), "x").await;
    }
    write(&store, Write::delete("k/3", Guard::Any), Durability::Durable).await;
    let head = store.head().await.unwrap().revision;
    store.compact(head).await.unwrap();
    store.close().await.unwrap();

    let store = open(folder.path());
    let end = store.watch("", head - 1).next().await.unwrap();
    assert_eq!(end, Err(WatchEnd::Compacted { oldest: head }));
    assert_eq!(store.scan("", "", 100).await.unwrap().0.len(), 9);
    // The sweep goes on after the restart, one piece with each transaction.
    for _ in 0..10 {
        put(&store, "z", "").await;
    }
    store.compact(store.head().await.unwrap().revision).await.unwrap();
    for _ in 0..2 {
        put(&store, "z", "").await;
    }
    store.close().await.unwrap();
    let rows: i64 = rusqlite_rows(&folder.path().join("store.db"));
    assert_eq!(
        rows,
        9 + 3,
        "nine living keys, and z with what superseded it since"
    );
}

fn rusqlite_rows(path: &Path) -> i64 {
    let db = rusqlite::Connection::open(path).unwrap();
    db.query_row("SELECT count(*) FROM log", [], |row| row.get(0))
        .unwrap()
}

#[tokio::test]
async fn a_second_store_on_the_folder_is_refused_and_told_who_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path());
    let refused = Sqlite::open(folder.path(), Options::default()).unwrap_err();
    assert!(
        matches!(&refused, OpenError::Lock(LockError::InUse { .. })),
        "{refused}"
    );
    assert!(
        refused
            .to_string()
            .contains(&format!("process {}", std::process::id())),
        "{refused}"
    );
    first.close().await.unwrap();
    open(folder.path());
}

#[test]
fn a_second_process_on_the_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut holder = Story::start("hold", folder.path());
    assert_eq!(holder.line().as_deref(), Some("held"));
    let refused = Sqlite::open(folder.path(), Options::default())
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains(&format!("process {}", holder.child.id())),
        "{refused}"
    );
    holder.kill();
    open(folder.path());
}

/// Rounds of the crash stories; `ROUNDS` in the environment.
fn rounds() -> u32 {
    std::env::var("ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(5)
}

#[test]
fn a_kill_in_the_middle_of_writing_loses_nothing_answered_and_reuses_no_revision() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut answered: BTreeMap<String, Revision> = BTreeMap::new();
    let mut highest = 1;
    for round in 0..rounds() {
        let mut writer = Story::start("write", folder.path());
        // A different number of answers each time, so the kill meets other instants.
        let mut lazy = Vec::new();
        let mut read = |line: String, answered: &mut BTreeMap<String, Revision>| {
            let mut words = line.split(' ');
            let (kind, key, revision) = (
                words.next().unwrap(),
                words.next().unwrap(),
                words.next().unwrap(),
            );
            let revision: Revision = revision.parse().unwrap();
            assert!(
                revision > highest,
                "revision {revision} of {key} was given out before the crash (up to {highest})"
            );
            match kind {
                "durable" => drop(answered.insert(key.to_owned(), revision)),
                _ => lazy.push(revision),
            }
        };
        for _ in 0..(100 + round * 137 % 400) {
            let line = writer.line().expect("the writer writes until it is killed");
            read(line, &mut answered);
        }
        writer.kill();
        while let Some(line) = writer.line() {
            // The last line may be cut by the kill.
            if line.ends_with(" .") {
                read(line, &mut answered);
            }
        }
        let last_lazy = lazy.iter().copied().max().unwrap_or(0);
        highest = highest
            .max(last_lazy)
            .max(answered.values().copied().max().unwrap_or(0));
        let next = runtime.block_on(after_the_crash(folder.path(), &answered, highest, last_lazy));
        highest = next;
    }
}

/// Checks what was answered; the head it leaves behind.
async fn after_the_crash(
    folder: &Path,
    answered: &BTreeMap<String, Revision>,
    highest: Revision,
    last_lazy: Revision,
) -> Revision {
    let store = open(folder);
    let (entries, _) = store.scan("durable", "", usize::MAX).await.unwrap();
    let found: BTreeMap<_, _> = entries
        .iter()
        .map(|entry| (entry.key.to_string(), entry.revision))
        .collect();
    for (key, revision) in answered {
        assert_eq!(found.get(key), Some(revision), "{key} was answered");
    }
    // The log tells the same, in order, up to the crash.
    let head = put(&store, "after", "").await;
    assert!(head > highest);
    let mut watch = store.watch("durable", 1);
    let (mut told, mut last) = (0, 1);
    while last < head {
        let batch = watch.next().await.unwrap().unwrap();
        assert!(batch.revision > last);
        last = batch.revision;
        told += batch.events.len();
    }
    assert_eq!(told, found.len(), "every durable key was put once");
    // Somebody who saw a lazy write that is lost is sent back to scan, not left with it for ever.
    let (lazy, _) = store.scan("lazy", "", usize::MAX).await.unwrap();
    if lazy.iter().all(|entry| entry.revision < last_lazy) {
        let end = store.watch("lazy", last_lazy).next().await.unwrap();
        assert!(
            matches!(end, Err(WatchEnd::Compacted { oldest }) if oldest > highest),
            "{end:?}"
        );
    }
    store.close().await.unwrap();
    head
}

#[tokio::test]
async fn a_lazy_write_is_on_disk_within_its_time_without_any_other_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(
        folder.path(),
        Options {
            flush: Duration::from_millis(1),
            ..Options::default()
        },
    )
    .unwrap();
    let mut progress = store.watch("nothing", 1);
    let lazy = write(&store, Write::put("lazy", "1", Guard::Any), Durability::Lazy).await;
    // A progress mark never runs ahead of what is durable, so this one says that it is.
    assert_eq!(progress.next().await.unwrap().unwrap().revision, lazy);
    let head = store.head().await.unwrap();
    assert_eq!((head.revision, head.durable), (lazy, lazy));
}

#[tokio::test]
async fn progress_does_not_run_ahead_of_what_a_crash_could_take_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(
        folder.path(),
        Options {
            flush: Duration::from_secs(3600),
            ..Options::default()
        },
    )
    .unwrap();
    let mut watch = store.watch("mine", 1);
    let durable = put(&store, "other", "").await;
    assert_eq!(watch.next().await.unwrap().unwrap().revision, durable);
    let lazy = write(&store, Write::put("other", "", Guard::Any), Durability::Lazy).await;
    assert!(futures::poll!(watch.next()).is_pending());
    let head = store.head().await.unwrap();
    assert_eq!((head.revision, head.durable), (lazy, durable));
    let next = put(&store, "other", "").await;
    assert_eq!(watch.next().await.unwrap().unwrap().revision, next);
}

/// A child process that plays a part in a story.
struct Story {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Story {
    fn start(part: &str, folder: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--quiet"])
            .env("STORE_TEST_PART", part)
            .env("STORE_TEST_FOLDER", folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line it says, without those of the test harness.
    fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(said) = line.trim_end().strip_prefix("> ") {
                return Some(said.to_owned());
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Story {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("> {line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// The other side of [`Story`]: does nothing unless it was started by one.
#[test]
fn child() {
    let Ok(part) = std::env::var("STORE_TEST_PART") else {
        return;
    };
    let folder = std::env::var("STORE_TEST_FOLDER").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Arc::new(open(Path::new(&folder)));
        match part.as_str() {
            "hold" => {
                say("held");
                std::future::pending::<()>().await;
            }
            "write" => write_until_killed(store).await,
            other => panic!("no such part: {other}"),
        }
    });
}

/// Eight writers of durable keys, each key once, and one of lazy writes; every answer is said.
async fn write_until_killed(store: Arc<Sqlite>) {
    let start = store.head().await.unwrap().revision;
    let writers = (0..8).map(|writer| {
        let store = store.clone();
        tokio::spawn(async move {
            for n in 0.. {
                let key = format!("durable/{start}/{writer}/{n}");
                let revision = put(&*store, &key, &"x".repeat(500)).await;
                say(&format!("durable {key} {revision} ."));
                if writer == 0 {
                    let lazy = Write::put("lazy/beat", n.to_string(), Guard::Any);
                    let revision = write(&*store, lazy, Durability::Lazy).await;
                    say(&format!("lazy lazy/beat {revision} ."));
                }
            }
        })
    });
    futures::future::join_all(writers).await;
}
