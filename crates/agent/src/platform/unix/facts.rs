//! What the host is and has.

use super::host::host_name;
use crate::{platform::RebootMark, runner::Identity};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
};

/// The host's full name; its short one where it has no domain.
pub fn fqdn() -> String {
    let name = host_name();
    let short = name.split('.').next().unwrap_or_default();
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let full = hosts
        .lines()
        .filter_map(|line| line.split('#').next())
        .flat_map(str::split_whitespace)
        .find(|name| name.strip_prefix(short).is_some_and(|rest| rest.starts_with('.')));
    full.map_or_else(|| name.clone(), str::to_owned)
}

/// The domain the host is in, by its name; its part there is not known.
pub fn domain() -> (String, &'static str) {
    let fqdn = fqdn();
    let domain = fqdn.split_once('.').map(|(_, domain)| domain.to_owned());
    (domain.unwrap_or_default(), "")
}

/// Release of the kernel.
pub fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Name and version of the system. Source: os-release(5).
pub fn os_image() -> String {
    let text = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())
        .unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or_else(|| "Linux".to_owned(), |name| name.trim_matches('"').to_owned())
}

/// Memory of the host in bytes. Source: proc(5), meminfo.
pub fn memory() -> u64 {
    meminfo("MemTotal:").unwrap_or_default()
}

/// The share of memory that can still be had, in percent.
pub fn memory_left() -> Option<u64> {
    meminfo("MemAvailable:")?
        .saturating_mul(100)
        .checked_div(memory())
}

fn meminfo(name: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Size of the file system a folder is on, and what is free of it for us, in bytes.
pub fn disk(path: &Path) -> std::io::Result<(u64, u64)> {
    let stat = rustix::fs::statvfs(path)?;
    Ok((stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize))
}

/// Shells found on PATH with their versions, by the names steps use.
pub fn shells() -> BTreeMap<String, String> {
    let ask = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).output().ok()?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        let version = text
            .split(|c: char| c.is_whitespace() || c == '(')
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))?;
        output.status.success().then(|| version.to_owned())
    };
    let mut found = BTreeMap::new();
    for (name, program, args) in [
        ("bash", "bash", ["--version"]),
        ("python", "python3", ["--version"]),
        ("pwsh", "pwsh", ["--version"]),
    ] {
        if let Some(version) = ask(program, &args) {
            found.insert(name.to_owned(), version);
        }
    }
    if Path::new("/bin/sh").exists() {
        found.insert("sh".to_owned(), "POSIX".to_owned());
    }
    found
}

/// What else has a version.
pub fn versions() -> BTreeMap<String, String> {
    BTreeMap::new()
}

/// What forces an execution policy on a PowerShell: nothing on Unix.
pub fn script_policy(_shell: &str) -> Option<String> {
    None
}

/// The marks of the system that a restart is due. Source: update-notifier of Debian and Ubuntu.
pub fn pending_reboot() -> Vec<RebootMark> {
    let source = "/run/reboot-required";
    let set = Path::new(source).exists();
    set.then_some(RebootMark { source, counts: true })
        .into_iter()
        .collect()
}

/// The container engine's endpoint, where one listens.
pub fn container_engine() -> Option<PathBuf> {
    ["/run/docker.sock", "/run/podman/podman.sock"]
        .map(PathBuf::from)
        .into_iter()
        .find(|socket| socket.exists())
}

/// Whether the host is going down, as far as systemd knows.
pub fn is_shutting_down() -> bool {
    Path::new("/run/systemd/system").exists()
        && Command::new("systemctl")
            .arg("is-system-running")
            .output()
            .is_ok_and(|output| output.stdout.starts_with(b"stopping"))
}

/// Ends this very process at once; one that is gone is fine.
pub fn end_process(process: &Identity) {
    if process.is_alive()
        && let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw)
    {
        let _ = kill_process(pid, Signal::KILL); // gone in between
    }
}

/// What to do where runners do not outlive the agent.
pub const RUNNERS_DIE: &str =
    "the service that runs the agent ends runners with it; set KillMode=process in its unit";

/// Whether runners go on when the service that runs the agent is stopped: not if systemd ends the whole group (KillMode=control-group).
pub fn runners_survive() -> bool {
    let group = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let unit = group
        .lines()
        .filter_map(|line| line.rsplit('/').find(|part| part.ends_with(".service")))
        .next_back()
        .filter(|_| std::env::var_os("INVOCATION_ID").is_some());
    let Some(unit) = unit else { return true };
    let asked = Command::new("systemctl")
        .args(["show", "--property=KillMode", "--value", unit])
        .output();
    asked.map_or(true, |output| !output.stdout.starts_with(b"control-group"))
}
