//! A disk that fails under the store: an fsync that answers with an error, and no space left.
//!
//! The faults are made below the store, by a library preloaded into a child process (this test binary again, see
//! [`child`]) that answers the system calls with errors; a small tmpfs is the real thing where tests run as root.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests

use futures::StreamExt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use store::{Durability, Guard, Options, Revision, Sqlite, Store, StoreError, WatchEnd, Write};

async fn put(store: &dyn Store, key: &str, durability: Durability) -> Result<Revision, StoreError> {
    let put = Write::put(key, "x".repeat(20_000), Guard::Absent);
    Ok(store.commit(vec![put], durability).await?.remove(0).unwrap())
}

async fn durable(store: &dyn Store, key: &str) -> Result<Revision, StoreError> {
    put(store, key, Durability::Durable).await
}

fn open(folder: &Path) -> Sqlite {
    Sqlite::open(
        folder,
        Options {
            flush: Duration::from_millis(20),
            ..Options::default()
        },
    )
    .unwrap()
}

async fn keys(folder: &Path) -> Vec<String> {
    let store = open(folder);
    let (entries, _) = store.scan("", "", usize::MAX).await.unwrap();
    entries.iter().map(|entry| entry.key.to_string()).collect()
}

/// Plays `part` in a child process whose disk at `folder` can be made to fail; `false` if there is no C compiler.
fn play(part: &str, folder: &Path) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faulty_disk.c");
    let tools = tempfile::tempdir().unwrap();
    let library = tools.path().join("faulty_disk.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(&library)
        .arg(source)
        .arg("-ldl")
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("not run: no C compiler to make the faulty disk with");
        return false;
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env("STORE_TEST_PART", part)
        .env("FAULTY_FOLDER", folder)
        .env("LD_PRELOAD", &library)
        .status()
        .unwrap();
    assert!(status.success(), "the child failed: {status}");
    true
}

/// The other side of [`play`]: does nothing unless it was started by it.
#[test]
fn child() {
    let Ok(part) = std::env::var("STORE_TEST_PART") else {
        return;
    };
    let folder = PathBuf::from(std::env::var("FAULTY_FOLDER").unwrap());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        match part.as_str() {
            "fail-sync" => fail_sync(&folder).await,
            "full" => fill(&folder).await,
            other => panic!("no such part: {other}"),
        }
    });
    // Like a server that stops on a fatal store: no destructor gets to touch the files.
    std::process::exit(0);
}

#[tokio::test]
async fn a_failed_fsync_stops_all_writes_and_the_next_start_copies_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(folder.path()).unwrap();
    if !play("fail-sync", &path) {
        return;
    }
    fs::remove_file(path.join("fail-sync")).unwrap();
    let database = path.join("store.db");
    assert!(path.join("store.db.suspect").exists());
    let before = fs::metadata(&database).unwrap().ino();
    let found = keys(&path).await;
    assert!(
        ["a", "b"]
            .iter()
            .all(|key| found.iter().any(|found| found == key)),
        "{found:?}"
    );
    assert_ne!(
        fs::metadata(&database).unwrap().ino(),
        before,
        "the database is a new file"
    );
    assert!(!path.join("store.db.suspect").exists());
    // Once is enough: the next start finds nothing to repair.
    let repaired = fs::metadata(&database).unwrap().ino();
    assert_eq!(keys(&path).await, found);
    assert_eq!(fs::metadata(&database).unwrap().ino(), repaired);
}

async fn fail_sync(folder: &Path) {
    let store = open(folder);
    durable(&store, "a").await.unwrap();
    let seen = durable(&store, "b").await.unwrap();
    let watch = store.watch("", seen);
    File::create(folder.join("fail-sync")).unwrap();
    let failed = durable(&store, "c").await.unwrap_err();
    assert!(matches!(failed, StoreError::Failed(_)), "{failed}");
    let fatal = store.fatal().await;
    assert!(matches!(fatal, StoreError::Failed(_)), "{fatal}");
    // The disk seems well again, but what it holds is unknown: no write is tried in place.
    fs::rename(folder.join("fail-sync"), folder.join("was")).unwrap();
    for durability in [Durability::Durable, Durability::Lazy] {
        let refused = put(&store, "d", durability).await.unwrap_err();
        assert!(matches!(refused, StoreError::Failed(_)), "{refused}");
    }
    assert!(matches!(store.compact(1).await, Err(StoreError::Failed(_))));
    assert_eq!(store.get("c").await.unwrap(), None);
    assert_eq!(
        store.get("b").await.unwrap().unwrap().revision,
        seen,
        "reads go on"
    );
    let told: Vec<_> = watch.collect().await;
    assert!(
        matches!(told[..], [Err(WatchEnd::Lost(_))]),
        "nobody is told of a write that failed: {told:?}"
    );
    assert!(matches!(store.close().await, Err(StoreError::Failed(_))));
    fs::rename(folder.join("was"), folder.join("fail-sync")).unwrap();
}

#[tokio::test]
async fn a_full_disk_refuses_writes_keeps_reads_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(folder.path()).unwrap();
    if play("full", &path) {
        assert_eq!(keys(&path).await, ["a", "after", "lazy", "lazy-after"]);
    }
}

async fn fill(folder: &Path) {
    let store = open(folder);
    let first = durable(&store, "a").await.unwrap();
    let mut watch = store.watch("", first);
    let lazy = put(&store, "lazy", Durability::Lazy).await.unwrap();
    File::create(folder.join("full")).unwrap();
    for n in 0..3 {
        let refused = durable(&store, &format!("refused-{n}")).await.unwrap_err();
        assert!(matches!(refused, StoreError::Full(_)), "{refused}");
        let refused = put(&store, &format!("refused-lazy-{n}"), Durability::Lazy)
            .await
            .unwrap_err();
        assert!(
            matches!(refused, StoreError::Full(_)),
            "nothing more is promised from memory: {refused}"
        );
    }
    assert_eq!(store.get("a").await.unwrap().unwrap().revision, first);
    assert_eq!(
        store.get("lazy").await.unwrap().unwrap().revision,
        lazy,
        "what was answered stays"
    );
    assert_eq!(store.scan("", "", 10).await.unwrap().0.len(), 2);

    fs::remove_file(folder.join("full")).unwrap();
    let after = durable(&store, "after").await.unwrap();
    let last = put(&store, "lazy-after", Durability::Lazy).await.unwrap();
    for revision in [lazy, after, last] {
        assert_eq!(watch.next().await.unwrap().unwrap().revision, revision);
    }
    assert!(
        futures::poll!(Box::pin(store.fatal())).is_pending(),
        "a full disk is no reason to stop"
    );
    store.close().await.unwrap();
}

/// A tmpfs of a few megabytes; unmounted when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
            .arg(at)
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(&self.0).status());
    }
}

#[tokio::test]
async fn a_disk_that_is_really_full_loses_nothing_answered() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_disk) = SmallDisk::mount(folder.path()) else {
        return eprintln!("not run: a small disk can only be mounted by root");
    };
    let ballast = ["one", "two"].map(|name| folder.path().join(name));
    for ballast in &ballast {
        fs::write(ballast, vec![0; 2 << 20]).unwrap();
    }
    let store = open(folder.path());
    let mut answered = Vec::new();
    let refused = loop {
        let key = format!("k/{:04}", answered.len());
        match durable(&store, &key).await {
            Ok(_) => answered.push(key),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, StoreError::Full(_)), "{refused}");
    assert!(answered.len() > 10);
    for key in &answered {
        assert!(store.get(key).await.unwrap().is_some(), "{key}");
    }
    fs::remove_file(&ballast[0]).unwrap();
    durable(&store, "z").await.unwrap();
    answered.push("z".into());
    drop(store);
    // Closing moved the WAL into the database, which may have used up the space again; a start needs a little.
    fs::remove_file(&ballast[1]).unwrap();
    assert_eq!(keys(folder.path()).await, answered);
}
