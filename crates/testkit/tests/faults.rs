//! The kinds of fault that comparable systems are known for, and that what tries each here says so by its id.
//!
//! Listed are the kinds that can be tried without Windows; those of Windows alone name their tests in `crates/win32`,
//! `crates/agent` and `tests/windows`.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::{fs, path::Path};

const TESTED: [(&str, &str); 32] = [
    ("IO-01", "a grandchild keeps the pipe open"),
    ("IO-04", "one huge line ends all logging"),
    ("IO-06", "bytes that are not text break the stream"),
    ("IO-07", "code pages of agent and child differ: the decoder"),
    ("IO-08", "script text without a byte order mark: the file"),
    ("IO-10", "PowerShell errors and progress as XML: the decoder"),
    ("IO-11", "followers go silent at a border of the log"),
    ("EC-01", "PowerShell turns every code into 1"),
    ("EC-02", "only the last line of a script decides"),
    ("EC-05", "big, negative and 32-bit codes"),
    ("EC-06", "3010 and 1641 are successes"),
    ("AP-05", "cleanup walks through a link"),
    ("AP-08", "a network folder as working directory: admission"),
    ("AP-10", "batch text with LF only: the file"),
    ("CT-04", "steps that always run cannot be cancelled"),
    ("CT-05", "no timeout when the agent is gone"),
    ("CT-06", "one stuck script blocks the host"),
    ("CT-08", "a retry starts beside the attempt that timed out"),
    ("AL-03", "the agent dies in the middle of a step"),
    ("AL-07", "that a host has restarted is judged wrongly"),
    ("AL-08", "restarts without end"),
    ("AL-09", "disk full"),
    ("CP-06", "two leaders"),
    ("CP-07", "a watch from a version that is too old"),
    ("CP-09", "misspelt or misplaced fields vanish"),
    ("CP-11", "long work is handed out again"),
    ("CP-12", "network cut: run twice"),
    ("CP-13", "work that was driven off a node is booked as done"),
    ("SE-01", "secrets of many lines"),
    ("SE-04", "output that acts as a command"),
    ("SE-05", "debug output shows the credential"),
    ("SE-06", "secrets on the command line"),
];

/// What these need is not there yet; a test that names one of them belongs into the list above.
const WITHOUT_SUBJECT: [(&str, &str); 4] = [
    ("CT-09", "a container that will not stop: no containers"),
    ("CO-01", "image and host do not match: no containers"),
    ("CP-01", "daylight saving time: no schedules"),
    ("CP-04", "runs that cannot start pile up: no schedules"),
];

/// Whether `text` names `id` in the comment or docstring of a test.
fn names(text: &str, id: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    (0..lines.len()).filter(|i| lines[*i].contains(id)).any(|i| {
        let rust = lines[i].starts_with("///")
            && lines[i..]
                .iter()
                .find(|line| !line.starts_with("///"))
                .is_some_and(|line| line.starts_with("#["));
        let python = lines[..=i]
            .iter()
            .rev()
            .take(3)
            .any(|line| line.starts_with("def test_"));
        rust || python
    })
}

fn files(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let source = path.extension().is_some_and(|e| e == "rs" || e == "py");
        if entry.file_type().unwrap().is_dir() {
            files(&path, found);
        } else if source && path.file_name() != Some("faults.rs".as_ref()) {
            found.push(fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_kind_of_fault_has_a_test_that_names_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    files(&root.join("crates"), &mut texts);
    files(&root.join("tests"), &mut texts);
    let named = |id: &str| texts.iter().any(|text| names(text, id));
    let missing: Vec<_> = TESTED.iter().filter(|(id, _)| !named(id)).collect();
    assert!(missing.is_empty(), "no test names {missing:?}");
    let early: Vec<_> = WITHOUT_SUBJECT.iter().filter(|(id, _)| named(id)).collect();
    assert!(early.is_empty(), "tested by now: {early:?}");
}

#[test]
fn a_name_counts_only_on_a_test() {
    assert!(names("/// CP-99.\n#[tokio::test]\nasync fn a() {}", "CP-99"));
    assert!(names("def test_a(prow):\n    \"\"\"CP-99.\"\"\"", "CP-99"));
    assert!(!names("//! CP-99.\nfn a() {}", "CP-99"));
    assert!(!names("/// CP-99.\nfn a() {}", "CP-99"));
}
