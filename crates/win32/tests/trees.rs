//! Processes in nested jobs: what ends, what stays, what they inherit. `cmd` stands for any program.

#![cfg(windows)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{
    ffi::OsStr,
    fs::File,
    io::PipeWriter,
    os::windows::{
        fs::OpenOptionsExt,
        io::{AsHandle, AsRawHandle},
    },
    path::{Path, PathBuf},
};
use tokio::io::AsyncReadExt;
use win32::{
    job::{Job, Rules},
    pipe,
    process::Process,
    security::Descriptor,
    spawn::{Console, Spawn},
    system,
};
use windows_sys::Win32::Foundation::{HANDLE_FLAG_INHERIT, SetHandleInformation};

fn cmd() -> PathBuf {
    system::system_folder().unwrap().join("cmd.exe")
}

/// Starts `cmd /d /c <line>` in jobs, its output into `out`.
fn start(line: &str, jobs: &[&Job], out: impl AsHandle) -> Process {
    start_with(line, jobs, File::open("NUL").unwrap(), out)
}

/// Starts a tree of `cmd` that waits for a line until the returned pipe is closed.
fn start_tree(jobs: &[&Job]) -> (Process, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let nul = File::options().write(true).open("NUL").unwrap();
    (
        start_with("cmd.exe /d /c pause & exit 1", jobs, reader, nul),
        writer,
    )
}

fn start_with(line: &str, jobs: &[&Job], input: impl AsHandle, out: impl AsHandle) -> Process {
    let program = cmd();
    let command_line = format!("cmd.exe /d /c {line}");
    Spawn {
        program: &program,
        command_line: OsStr::new(&command_line),
        environment: None,
        folder: Path::new(r"C:\"),
        streams: [input.as_handle(), out.as_handle(), out.as_handle()],
        jobs,
        console: Console::Own,
        desktop: None,
        leave_jobs: false,
    }
    .start()
    .unwrap()
}

fn job(break_away: bool) -> Job {
    let rules = Rules {
        break_away,
        ..Rules::default()
    };
    Job::create(None, rules).unwrap()
}

#[tokio::test]
async fn output_comes_whole_and_ends_when_its_writers_do() {
    let (mut reader, writer) = pipe::output().unwrap();
    let process = start("for /l %i in (1,1,500) do @echo line %i", &[], &writer);
    drop(writer);
    let mut all = String::new();
    reader.read_to_string(&mut all).await.unwrap();
    assert_eq!(process.wait().unwrap(), 0);
    let expected: String = (1..=500).map(|n| format!("line {n}\r\n")).collect();
    assert_eq!(all, expected);
}

#[test]
fn an_exit_code_is_the_programs_own() {
    let nul = File::options().write(true).open("NUL").unwrap();
    for code in [0_u32, 42, 259, 3010, 0xC000_0005] {
        let process = start(&format!("exit {}", code.cast_signed()), &[], &nul);
        assert_eq!(process.wait().unwrap(), code);
    }
}

#[test]
fn a_process_is_in_all_its_jobs_from_birth_and_ends_with_the_innermost() {
    let (task, step, limits) = (job(false), job(false), job(true));
    let (process, _input) = start_tree(&[&task, &step, &limits]);
    for job in [&task, &step, &limits] {
        assert!(job.pids().unwrap().contains(&process.pid()));
    }
    limits.terminate(77).unwrap();
    assert_eq!(process.wait().unwrap(), 77);
}

/// PT-02.
#[test]
fn processes_end_with_the_last_handle_of_their_job() {
    let task = job(false);
    let (process, _input) = start_tree(&[&task]);
    drop(task);
    process.wait().unwrap();
}

#[test]
fn a_named_job_is_found_and_ended_from_elsewhere() {
    let name = format!(r"Global\prow-test-{}", std::process::id());
    let descriptor = Descriptor::private().unwrap();
    let task = Job::create(Some((&name, &descriptor)), Rules::default()).unwrap();
    let (process, _input) = start_tree(&[&task]);
    let found = Job::open(&name).unwrap().unwrap();
    assert!(found.pids().unwrap().contains(&process.pid()));
    found.terminate(5).unwrap();
    assert_eq!(process.wait().unwrap(), 5);
    assert!(found.usage().is_ok());
    assert!(Job::open(&format!("{name}-other")).unwrap().is_none());
}

/// IO-03: the list of handles holds even against one that is inheritable.
#[test]
fn a_process_gets_its_streams_and_no_other_handle() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("held");
    let file = File::options()
        .write(true)
        .create_new(true)
        .share_mode(0)
        .open(&path)
        .unwrap();
    // SAFETY: the handle is open.
    let set = unsafe { SetHandleInformation(file.as_raw_handle(), HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT) };
    assert_ne!(set, 0);
    let step = job(false);
    let (process, _input) = start_tree(&[&step]);
    assert!(File::open(&path).is_err(), "we hold it alone");
    drop(file);
    File::open(&path).expect("nobody holds it any more");
    assert!(!process.has_ended());
}
