//! What cmd and batch files make of scripts, arguments and codes, under the real cmd or that of Wine.

use crate::rig::{Finished, steps};
use serde_json::{Value as Json, json};

async fn run(step: Json) -> Finished {
    steps(json!([step]), json!({})).run().await
}

async fn script(text: &str) -> Finished {
    run(json!({"name": "main", "shell": "cmd", "script": text})).await
}

/// AP-10: with line ends of Unix, labels at some distances would not be found.
#[tokio::test]
async fn labels_are_found_at_any_distance() {
    let distances = [1, 90, 500, 511, 512, 513, 1023, 1100];
    let list = distances.iter().map(|n| {
        let rem = format!("rem {}\n", "x".repeat(40)).repeat(n / 45);
        let text = format!(
            "goto done\n{rem}rem {}\nexit 1\n:done\necho here\n",
            "x".repeat(n % 45)
        );
        json!({"name": format!("at-{n}"), "shell": "cmd", "script": text})
    });
    let done = steps(list.collect(), json!({})).run().await;
    assert_eq!(done.end(), ("Succeeded".into(), ""), "{:?}", done.steps());
    for n in distances {
        assert_eq!(done.log(&format!("at-{n}")).trim(), "here");
    }
}

/// EC-02 for cmd, which has no fail-fast: the code at the end decides.
#[tokio::test]
async fn the_code_at_the_end_decides_and_lines_are_not_echoed() {
    let done = script("cmd /d /c exit 9\necho tail\nexit 42\n").await;
    assert_eq!(done.step("main").exit_code, Some(42));
    assert_eq!(done.log("main").trim(), "tail");
}

/// A value is read after the line was taken apart, so what is in it cannot run.
#[tokio::test]
async fn a_value_reaches_a_script_as_a_variable_and_cannot_run() {
    let value = "x & echo HIT | more > hit";
    let text = "echo [!VALUE!]\nif exist hit exit 5\n";
    let env = json!([{"name": "VALUE", "value": value}]);
    let done = run(json!({"name": "main", "shell": "cmd", "script": text, "env": env})).await;
    assert_eq!(done.log("main").trim(), format!("[{value}]"));
    assert_eq!(done.step("main").exit_code, Some(0));
}

/// The page of consoles is 437 under Wine; text in it arrives, other text is refused before the start.
#[tokio::test]
async fn text_is_in_the_consoles_page_or_refused() {
    let done = script("echo pr\u{fc}fung\necho value=gr\u{fc}n>> \"!PROW_OUTPUT!\"\n").await;
    let said = done.log("main");
    assert!(said.starts_with("prüfung\r\n"), "{said}");
    assert!(said.contains("read in the console's code page 437"), "{said}");
    assert_eq!(done.step("main").outputs["value"], "grün");
    let done = script("echo a\necho \u{2603}\n").await;
    assert_eq!(done.end(), ("Failed".into(), "StartFailed"));
    let message = &done.status.message;
    assert!(message.contains("line 2") && message.contains('☃'), "{message}");
}

/// AP-01.
#[tokio::test]
async fn arguments_of_a_batch_file_arrive_exactly_or_are_refused() {
    let write = "mkdir \"my tools\"\n\
        echo @echo one %%~1 two %%~2> \"my tools\\report.cmd\"\n";
    let call = |name: &str, args: &[&str]| json!({"name": name, "command": ["my tools\\report.cmd"], "args": args, "onError": "Continue"});
    let list = json!([
        {"name": "write", "shell": "cmd", "script": write},
        call("fine", &["a b", "(c)"]),
        call("command", &["x\" & echo hit>hit & rem \""]),
        call("variable", &["%PATH%"]),
        call("lines", &["two\nlines"]),
        {"name": "dots", "command": ["my tools\\report.cmd. ."], "args": ["& echo hit>hit"], "onError": "Continue"},
        {"name": "look", "shell": "cmd", "script": "if exist hit exit 5\n"},
    ]);
    let done = steps(list, json!({})).run().await;
    assert_eq!(
        done.steps(),
        [
            "write Succeeded",
            "fine Succeeded",
            "command Failed/StartFailed",
            "variable Failed/StartFailed",
            "lines Failed/StartFailed",
            "dots Failed/StartFailed",
            "look Succeeded"
        ]
    );
    assert_eq!(done.log("fine").trim(), "one a b two (c)");
}

/// AP-03: named before anything is tried, not by an error of the system that speaks of file names.
#[tokio::test]
async fn what_is_too_long_is_refused_with_its_length() {
    let long = "x".repeat(32_760);
    let done = run(json!({"name": "main", "command": ["hostname.exe"], "args": [long]})).await;
    assert_eq!(done.end(), ("Failed".into(), "StartFailed"));
    assert!(
        done.status.message.contains("Windows takes 32766"),
        "{}",
        done.status.message
    );
    let script_of_any_length = format!("rem {}\necho here\n", "x".repeat(7000)).repeat(3);
    let said = script(&script_of_any_length).await.log("main");
    assert_eq!(said.lines().collect::<Vec<_>>(), ["here"; 3]);
}

/// AP-07: the fixed set cannot be taken away.
#[tokio::test]
async fn what_windows_needs_cannot_be_taken_away() {
    let env = json!([{"name": "systemroot", "value": ""}]);
    let done = run(json!({"name": "main", "command": ["hostname.exe"], "env": env})).await;
    assert_eq!(done.end(), ("Failed".into(), "StartFailed"));
    assert!(
        done.status.message.contains("SystemRoot"),
        "{}",
        done.status.message
    );
}
