//! What becomes of a step's output.

use crate::rig::{PROBE, probe, script, steps};
use serde_json::json;

/// IO-04.
#[tokio::test]
async fn a_huge_line_is_split_and_memory_stays_bounded() {
    let size = 50 << 20;
    let mut rig = probe(&["emit", &size.to_string(), "AFTER"]);
    rig.options.max_log_bytes = 200 << 20;
    let mut running = rig.start();
    running.connect().await;
    let pid = running.spawned.identity.pid;
    running
        .until("the line has come", |r| {
            r.rig
                .dir
                .step_logs()
                .unwrap()
                .iter()
                .any(|(_, p)| p.metadata().is_ok_and(|m| m.len() > 40 << 20))
        })
        .await;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|l| {
        l.strip_prefix("VmHWM:")?
            .trim()
            .strip_suffix(" kB")?
            .parse::<u64>()
            .ok()
    });
    assert!(
        peak.is_none_or(|kib| kib < 64 << 10),
        "the runner used {peak:?} KiB"
    );
    let done = running.finished().await;
    let log = done.log("main");
    assert_eq!(
        log.lines().map(str::len).collect::<Vec<_>>(),
        [size, "AFTER".len()]
    );
    assert!(
        done.raw_log("main")
            .split(|b| *b == b'\n')
            .all(|l| l.len() < 17 << 10)
    );
}

/// IO-06.
#[tokio::test]
async fn bytes_that_are_no_text_are_kept_as_they_are() {
    let hex = [
        "emit-hex", "ff", "00", "c3", "28", "0a", "1b", "5b", "33", "31", "6d", "0d", "41", "0a",
    ];
    let done = probe(&hex).run().await;
    let raw = done.raw_log("main");
    let has = |bytes: &[u8]| raw.windows(bytes.len()).any(|w| w == bytes);
    assert!(
        has(b" stdout F \xff\x00\xc3\x28\n") && has(b" stdout F \x1b[31m\rA\n"),
        "{raw:?}"
    );
    assert_eq!(done.end(), ("Succeeded".into(), ""));
}

#[tokio::test]
async fn utf16_output_becomes_readable() {
    let hex = ["emit-hex", "ff", "fe", "67", "00", "f6", "00", "0a", "00"];
    assert_eq!(probe(&hex).run().await.log("main"), "gö\n");
}

#[tokio::test]
async fn a_prompt_is_seen_before_its_line_ends() {
    let mut running =
        script("printf 'name? '; while [ ! -e go ]; do sleep 0.01 || :; done; echo bob").start();
    running.connect().await;
    running
        .until("the prompt is shown", |r| r.log("main") == "name? ")
        .await;
    std::fs::write(running.rig.dir.workspace().join("go"), "").unwrap();
    assert_eq!(running.finished().await.log("main"), "name? bob\n");
}

#[tokio::test]
async fn the_last_words_of_a_quick_program_are_not_lost() {
    for _ in 0..20 {
        let done = script("i=0; while [ $i -lt 200 ]; do echo $i; i=$((i+1)); done; echo last >&2")
            .run()
            .await;
        let log = done.log("main");
        assert!(log.contains("199\n") && log.contains("last\n"), "{log}");
        assert_eq!(log.lines().count(), 201);
    }
}

/// SE-04.
#[tokio::test]
async fn nothing_a_step_prints_is_a_command() {
    let lines = "::prow output token=evil\n##vso[task.setvariable]x\n::set-output name=a::b\nPROW_OUTPUT a=b";
    let rig = steps(
        json!([
            {"name": "main", "script": format!("printf '%s\\n' '{lines}'; printf '\\r\\033[2K::prow mask\\n' >&2")},
            {"name": "next", "script": "env | grep -c evil || true"},
        ]),
        json!({}),
    );
    let done = rig.run().await;
    assert!(done.step("main").outputs.is_empty());
    assert!(done.log("main").contains(lines));
    assert_eq!(done.log("next"), "0\n");
}

#[tokio::test]
async fn a_log_over_its_limit_keeps_head_and_tail() {
    let mut rig = script("i=0; while [ $i -lt 20000 ]; do echo number $i; i=$((i+1)); done");
    rig.options.max_log_bytes = 200 << 10;
    let done = rig.run().await;
    let log = done.log("main");
    assert!(log.starts_with("number 0\n") && log.ends_with("number 19999\n"));
    assert!(log.contains("bytes were cut here"));
    assert!(done.raw_log("main").len() < 220 << 10);
    assert_eq!(
        done.step("main").log_bytes,
        Some(done.raw_log("main").len() as i64)
    );
}

#[tokio::test]
async fn arguments_arrive_exactly() {
    let args = [
        "",
        "a b",
        "say \"hi\"",
        "*",
        "$HOME",
        "back\\slash\\",
        "ü\n2",
        "-x",
    ];
    let command: Vec<&str> = [PROBE, "argv"].iter().chain(&args).copied().collect();
    let done = steps(json!([{"name": "main", "command": command}]), json!({}))
        .run()
        .await;
    let expected: String = args.iter().map(|a| format!("[{a}]\n")).collect();
    assert_eq!(done.log("main"), expected);
}

/// IO-03.
#[tokio::test]
async fn a_step_has_its_three_streams_and_nothing_else() {
    let done = probe(&["handles"]).run().await;
    let log = done.log("main");
    let others: Vec<&str> = log
        .lines()
        .filter(|l| {
            *l != "/dev/null"
                && !l.starts_with("pipe:")
                && !l.starts_with("/proc/")
                && !l.starts_with("anon_inode:")
                && !l.starts_with("socket:")
        })
        .collect();
    assert!(others.is_empty(), "{others:?}");
}
