//! A program for tests to run as a step: it does one odd thing, as told.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::zombie_processes)] // a tool of tests; leaving processes behind is its job

use clap::Parser;
use std::{
    fs::OpenOptions,
    io::{Write, stdout},
    path::PathBuf,
    process::{Command, exit},
    time::Duration,
};

#[derive(Parser)]
enum Probe {
    /// Ends with a code.
    Exit { code: i32 },
    /// Waits, then ends with a code.
    Sleep {
        seconds: u64,
        #[arg(default_value_t = 0)]
        code: i32,
    },
    /// Writes bytes of one line, then a line.
    Emit { bytes: usize, then: String },
    /// Writes bytes given in hex.
    EmitHex { bytes: Vec<String> },
    /// Writes a text in pieces, one flush each.
    Pieces { texts: Vec<String> },
    /// Starts a copy of itself, that another, and so on; each adds its pid to a file, prints it and waits.
    Tree { depth: u32, pids: PathBuf },
    /// Writes numbers from 1, one a line, with a pause after each.
    Count { to: u32, millis: u64 },
    /// Leaves a line in `runs`, says "before", makes `begun`, waits for `go`, says "after".
    Slow { folder: PathBuf },
    /// Each generation starts the next and ends at once.
    Relay {
        generations: u32,
        pids: PathBuf,
        /// The first stays.
        #[arg(long)]
        stay: bool,
    },
    /// Leaves a process behind that holds the output, then ends with a code.
    Leave {
        pids: PathBuf,
        code: i32,
        #[arg(long)]
        apart: bool,
    },
    /// Leaves the session, adds its pid to a file, waits.
    Apart { pids: PathBuf },
    /// Ignores being asked to end.
    Ignore { pids: PathBuf },
    /// When asked to end, takes its time, writes a file and ends.
    OnEnd { millis: u64, file: PathBuf },
    /// Waits until a file is there.
    Await { file: PathBuf },
    /// Adds a line to a file.
    Append { file: PathBuf, line: String },
    /// Prints its arguments, one a line.
    Argv {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Prints the files it has open.
    #[cfg(unix)]
    Handles,
    /// Uses memory and time.
    Use { mebibytes: usize },
}

fn append(file: &PathBuf, line: &str) {
    let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap(); // one write: lines of several processes do not mix
}

fn add_pid(file: &PathBuf) {
    append(file, &std::process::id().to_string());
}

fn wait() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

fn me() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    match Probe::parse() {
        Probe::Exit { code } => exit(code),
        Probe::Sleep { seconds, code } => {
            std::thread::sleep(Duration::from_secs(seconds));
            exit(code);
        }
        Probe::Emit { bytes, then } => {
            let chunk = vec![b'x'; 1 << 16];
            let mut left = bytes;
            while left > 0 {
                let n = left.min(chunk.len());
                stdout().write_all(&chunk[..n]).unwrap();
                left -= n;
            }
            println!("\n{then}");
        }
        Probe::EmitHex { bytes } => {
            let bytes: Vec<u8> = bytes.iter().map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
            stdout().write_all(&bytes).unwrap();
        }
        Probe::Pieces { texts } => {
            for text in texts {
                stdout().write_all(text.as_bytes()).unwrap();
                stdout().flush().unwrap();
                std::thread::sleep(Duration::from_millis(30));
            }
        }
        Probe::Count { to, millis } => {
            for number in 1..=to {
                println!("{number}");
                std::thread::sleep(Duration::from_millis(millis));
            }
        }
        Probe::Tree { depth, pids } => {
            add_pid(&pids);
            println!("{}", std::process::id());
            if depth > 1 {
                me().arg("tree")
                    .arg((depth - 1).to_string())
                    .arg(&pids)
                    .spawn()
                    .unwrap();
            }
            wait();
        }
        Probe::Slow { folder } => {
            append(&folder.join("runs"), "run");
            println!("before");
            std::fs::write(folder.join("begun"), "").unwrap();
            while !folder.join("go").exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            println!("after");
        }
        Probe::Relay {
            generations,
            pids,
            stay,
        } => {
            add_pid(&pids);
            std::thread::sleep(Duration::from_millis(5));
            if generations > 0 {
                me().arg("relay")
                    .arg((generations - 1).to_string())
                    .arg(&pids)
                    .spawn()
                    .unwrap();
            }
            if stay {
                wait();
            }
        }
        Probe::Leave { pids, code, apart } => {
            let what = if apart { "apart" } else { "ignore" };
            let mut left = me();
            left.arg(what).arg(&pids);
            #[cfg(windows)]
            if apart {
                const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;
                std::os::windows::process::CommandExt::creation_flags(&mut left, CREATE_BREAKAWAY_FROM_JOB);
            }
            left.spawn().unwrap();
            while std::fs::read_to_string(&pids).unwrap_or_default().is_empty() {
                std::thread::sleep(Duration::from_millis(1));
            }
            exit(code);
        }
        Probe::Apart { pids } => {
            #[cfg(unix)]
            agent::platform::detach_from_session().unwrap();
            add_pid(&pids);
            wait();
        }
        Probe::Ignore { pids } => {
            let _asked = agent::platform::end_requests().unwrap(); // heard, and not acted upon
            add_pid(&pids);
            println!("ignoring");
            std::future::pending::<()>().await;
        }
        Probe::OnEnd { millis, file } => {
            let mut asked = agent::platform::end_requests().unwrap();
            println!("ready");
            asked.recv().await;
            std::thread::sleep(Duration::from_millis(millis));
            append(&file, "cleaned");
        }
        Probe::Await { file } => {
            while !file.exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Probe::Append { file, line } => append(&file, &line),
        Probe::Argv { args } => args.iter().for_each(|a| println!("[{a}]")),
        #[cfg(unix)]
        Probe::Handles => {
            let folder = std::fs::read_dir("/proc/self/fd").unwrap();
            let targets = folder.flatten().filter_map(|e| std::fs::read_link(e.path()).ok());
            targets.for_each(|t| println!("{}", t.display()));
        }
        Probe::Use { mebibytes } => {
            let mut memory = vec![0_u8; mebibytes << 20];
            for round in 0..20_u8 {
                memory
                    .iter_mut()
                    .step_by(64)
                    .for_each(|b| *b = b.wrapping_add(round));
            }
            println!("{}", memory.iter().map(|b| u64::from(*b)).sum::<u64>());
        }
    }
}
