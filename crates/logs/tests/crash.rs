//! What logs on disk remember when their process is killed while it writes.
//!
//! The process is this test binary again (see [`child`]). Every byte of a log follows from its offset, so a lost, repeated or
//! torn range shows wherever it is.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of tests are tests

use bytes::Bytes;
use logs::{Log, Logs, Options, Sqlite};
use std::{
    collections::BTreeMap,
    env, fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

const FOLDER: &str = "PROW_TEST_LOGS";
const STEPS: [&str; 4] = ["a", "b", "c", "d"];

fn log(step: &str) -> Log {
    Log::new("7d3f", step)
}

/// The byte at an offset of a step's log.
fn byte(step: &str, at: u64) -> u8 {
    let seed = at ^ u64::from(step.as_bytes()[0]) << 32;
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes(step: &str, start: u64, size: u64) -> Bytes {
    (start..start + size).map(|at| byte(step, at)).collect()
}

/// Rounds of the crash story; `ROUNDS` in the environment.
fn rounds() -> u64 {
    env::var("ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(5)
}

#[test]
fn a_kill_in_the_middle_of_writing_loses_no_acknowledged_byte() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for round in 0..rounds() {
        let mut writer = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture", "--quiet"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        let mut acknowledged = BTreeMap::new();
        let mut take = |line: &str| {
            // other words are the test harness's, and a line may be cut by the kill
            if let ["ack", step, end, "."] = line.split(' ').collect::<Vec<_>>()[..] {
                acknowledged.insert(step.to_owned(), end.parse::<u64>().unwrap());
                return true;
            }
            false
        };
        // a different number of answers each time, so the kill meets other instants
        let mut answers = 50 + round * 37 % 200;
        while answers > 0 {
            let line = lines
                .next()
                .expect("the writer writes until it is killed")
                .unwrap();
            answers -= u64::from(take(&line));
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            take(&line);
        }
        runtime.block_on(verify(folder.path(), &acknowledged));
    }
}

async fn verify(folder: &Path, acknowledged: &BTreeMap<String, u64>) {
    let logs = Sqlite::open(folder, Options::default()).unwrap();
    for step in STEPS {
        let size = logs.size(&log(step)).await.unwrap();
        let least = acknowledged.get(step).copied().unwrap_or(0);
        assert!(
            size >= least,
            "{step}: {least} bytes were acknowledged, {size} are there"
        );
        let mut at = 0;
        while at < size {
            let piece = logs.read(&log(step), at, 64 << 10).await.unwrap();
            assert!(!piece.is_empty(), "{step} ends at {at} of {size}");
            assert_eq!(piece, bytes(step, at, piece.len() as u64), "{step} from {at}");
            at += piece.len() as u64;
        }
        // the agent goes on from there
        assert_eq!(
            logs.append(&log(step), size, bytes(step, size, 5)).await.unwrap(),
            size + 5
        );
    }
    logs.close().await.unwrap();
}

/// The process that is killed; passes at once where nobody asked for it.
#[test]
fn child() {
    let Some(folder) = env::var_os(FOLDER) else { return };
    assert!(fs::exists(&folder).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let logs = Sqlite::open(folder.as_ref(), Options::default()).unwrap();
        let writers = STEPS.map(|step| write(&logs, step));
        futures::future::join_all(writers).await;
    });
}

async fn write(logs: &Sqlite, step: &str) {
    let mut at = logs.size(&log(step)).await.unwrap();
    for n in 0.. {
        let size = 1 + n * 977 % 40_000;
        at = logs.append(&log(step), at, bytes(step, at, size)).await.unwrap();
        let mut out = std::io::stdout().lock();
        if writeln!(out, "ack {step} {at} .")
            .and_then(|()| out.flush())
            .is_err()
        {
            return; // whoever asked has gone
        }
    }
}
