//! Control groups, version 2, where they are ours to make (cgroups(7), the kernel's admin-guide/cgroup-v2).
//!
//! A task has a group below our own, each try of a step a group below that; a process is put there before its program starts and
//! cannot leave. `cgroup.kill` then ends all of them in one act, however fast they fork. Where the agent runs in a group named `agent`
//! (systemd: `Delegate=yes`, `DelegateSubgroup=agent`), the task's group is made beside it: a group with members of its own cannot
//! hand controllers to groups below.

use crate::platform::Limits;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where our own groups go, or `None` where there is no version 2 or it is not ours.
fn base() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        kind.starts_with("cgroup2 ").then(|| fields.split(' ').nth(4))?
    })?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own = Path::new(own);
    let own = if own.file_name().is_some_and(|n| n == "agent") {
        own.parent()?
    } else {
        own
    };
    Some(Path::new(mount).join(own))
}

/// Makes the group of a task; `None` where groups are not ours to make.
pub fn create(uid: &str) -> Option<String> {
    let path = base()?.join(format!("prow-{uid}"));
    match fs::create_dir(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => None,
        _ if path.join("cgroup.kill").exists() => path.to_str().map(str::to_owned),
        _ => {
            let _ = fs::remove_dir(&path); // a kernel without cgroup.kill (before 5.14)
            None
        }
    }
}

/// Makes the group of one try of a step, with its limits.
pub fn create_below(task: &str, number: u32, limits: Limits) -> io::Result<String> {
    let path = Path::new(task).join(number.to_string());
    match fs::create_dir(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e), // else of a runner that died: empty by now
        _ => {}
    }
    if limits != Limits::default() {
        for group in [Path::new(task).parent(), Some(Path::new(task))]
            .into_iter()
            .flatten()
        {
            let _ = fs::write(group.join("cgroup.subtree_control"), "+memory +cpu"); // refused: the limit below says so
        }
    }
    let set = |file: &str, value: String| {
        fs::write(path.join(file), value).map_err(|e| {
            let _ = fs::remove_dir(&path);
            io::Error::new(
                e.kind(),
                format!("the limit {file} cannot be set here: {e}; the agent's control group needs the memory and cpu controllers"),
            )
        })
    };
    if let Some(bytes) = limits.memory {
        set("memory.max", bytes.to_string())?;
    }
    if let Some(milli) = limits.cpu_milli {
        const PERIOD: u64 = 100_000; // microseconds
        set(
            "cpu.max",
            format!("{} {PERIOD}", (milli * PERIOD / 1000).max(1000)),
        )?;
    }
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::InvalidFilename.into())
}

/// Pids in a group and all groups below; empty where there is none.
pub fn members(group: &str) -> Vec<u32> {
    groups(Path::new(group))
        .iter()
        .filter_map(|g| fs::read_to_string(g.join("cgroup.procs")).ok())
        .flat_map(|text| text.lines().filter_map(|l| l.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// Ends all processes of a group and of all groups below.
pub fn kill(group: &str) {
    let _ = fs::write(Path::new(group).join("cgroup.kill"), "1"); // gone already, or seen to live on by the caller
}

/// Removes a group without members, and those below.
pub fn remove(group: &str) {
    for group in groups(Path::new(group)).iter().rev() {
        let _ = fs::remove_dir(group); // busy: a process is still ending; the group costs nothing
    }
}

/// A group and all groups below, parents first.
fn groups(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    let mut at = 0;
    while let Some(group) = found.get(at) {
        let below = fs::read_dir(group).into_iter().flatten().flatten();
        let below = below.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
        let below: Vec<_> = below.map(|e| e.path()).collect();
        found.extend(below);
        at += 1;
    }
    found
}
