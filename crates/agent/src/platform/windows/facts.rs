//! What the host is and has.

use super::programs::{find_program, find_shell, git, pwsh};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use win32::{
    registry::{Hive, Key},
    system::{self, Role},
    version, volume,
};

/// How long a shell may take to tell in which language mode it runs.
const PROBE: Duration = Duration::from_secs(60);

/// The host's full name; its short one where it has no domain.
pub fn fqdn() -> String {
    system::full_name()
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_else(|_| super::host::host_name())
}

/// The domain the host is in, and its part there: standalone, member or controller.
pub fn domain() -> (String, &'static str) {
    match system::domain() {
        Ok((name, Role::Member)) => (name.to_string_lossy().to_lowercase(), "member"),
        Ok((name, Role::Controller)) => (name.to_string_lossy().to_lowercase(), "controller"),
        Ok((_, Role::Standalone)) => (String::new(), "standalone"),
        Err(error) => {
            tracing::warn!(%error, "the host's domain is not known");
            (String::new(), "")
        }
    }
}

/// Build of the system with its last cumulative update, such as `10.0.20348.2031`.
pub fn kernel() -> String {
    version::current().map(|v| v.to_string()).unwrap_or_default()
}

/// Name and edition of the system.
pub fn os_image() -> String {
    version::current().map_or_else(|_| "Windows".to_owned(), |v| v.name)
}

/// Memory of the host in bytes.
pub fn memory() -> u64 {
    system::memory().map_or(0, |m| m.total)
}

/// The share of memory that can still be had, in percent: of what is there or of what may be promised, whichever is less, since
/// allocations fail at the end of the latter.
pub fn memory_left() -> Option<u64> {
    let memory = system::memory().ok()?;
    let share = |left: u64, of: u64| left.saturating_mul(100).checked_div(of);
    share(memory.available, memory.total)
        .into_iter()
        .chain(share(memory.commit_available, memory.commit_limit))
        .min()
}

/// Size of the volume a folder is on, and what is free of it for us, in bytes.
pub fn disk(path: &Path) -> std::io::Result<(u64, u64)> {
    Ok(volume::space(path)?)
}

/// Shells with their versions, by the names steps use.
pub fn shells() -> BTreeMap<String, String> {
    let path = super::host::base_environment()
        .into_iter()
        .find_map(|(name, value)| super::host::same_variable(&name, "PATH").then_some(value));
    let root = Path::new(r"C:\");
    let mut found = BTreeMap::new();
    for name in ["cmd", "powershell", "pwsh", "bash", "sh", "python"] {
        let program = match name {
            "python" => find_program("python3", path.as_deref(), root)
                .or_else(|_| find_program(name, path.as_deref(), root)),
            _ => find_shell(name, path.as_deref(), root),
        };
        let Ok(program) = program else { continue };
        let version = match name {
            "cmd" => Some(kernel()),
            "powershell" => engine(),
            "pwsh" => pwsh(Hive::Machine, "SOFTWARE").map(|(_, version)| version),
            "bash" | "sh" => git(Hive::Machine, "SOFTWARE").map(|(_, version)| version),
            _ => None,
        };
        let version = version.or_else(|| version::of_file(&program).ok().flatten());
        found.insert(name.to_owned(), version.unwrap_or_else(|| "unknown".to_owned()));
    }
    found
}

/// Version of Windows PowerShell.
fn engine() -> Option<String> {
    let key = Key::open(Hive::Machine, r"SOFTWARE\Microsoft\PowerShell\3\PowerShellEngine").ok()??;
    Some(
        key.text("PowerShellVersion")
            .ok()??
            .to_string_lossy()
            .into_owned(),
    )
}

/// What else has a version: .NET, and what policies make of the shells. Runs PowerShell, so it may take a while.
pub fn versions() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let text = |path: &str, name: &str| {
        let key = Key::open(Hive::Machine, path).ok()??;
        Some(key.text(name).ok()??.to_string_lossy().into_owned())
    };
    let framework = r"SOFTWARE\Microsoft\NET Framework Setup\NDP\v4\Full";
    let dotnet = r"SOFTWARE\dotnet\Setup\InstalledVersions\x64\sharedhost";
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            found.insert(name.to_owned(), value);
        }
    };
    add("netfx", text(framework, "Version"));
    add("dotnet", text(dotnet, "Version"));
    for shell in ["powershell", "pwsh"] {
        add(&format!("{shell}/executionPolicy"), script_policy(shell));
        add(
            &format!("{shell}/languageMode"),
            find_shell(shell, None, Path::new(r"C:\"))
                .ok()
                .and_then(|program| language_mode(&program)),
        );
    }
    found
}

/// The execution policy that group policy forces on a PowerShell, such as `AllSigned`; no `-ExecutionPolicy` wins against it.
pub fn script_policy(shell: &str) -> Option<String> {
    policy_at(&[(Hive::Machine, ""), (Hive::User, "")], shell)
}

/// Machine before user. Source: about_Group_Policy_Settings of PowerShell.
fn policy_at(roots: &[(Hive, &str)], shell: &str) -> Option<String> {
    let windows = r"SOFTWARE\Policies\Microsoft\Windows\PowerShell";
    let core = r"SOFTWARE\Policies\Microsoft\PowerShellCore";
    roots.iter().find_map(|(hive, root)| {
        let open = |path: &str| Key::open(*hive, &format!("{root}{path}")).ok()?;
        let key = if shell == "pwsh" {
            let key = open(core)?;
            match key.number("UseWindowsPowerShellPolicySetting").ok()? {
                Some(1) => open(windows)?,
                _ => key,
            }
        } else {
            open(windows)?
        };
        match key.number("EnableScripts").ok()?? {
            0 => Some("Restricted".to_owned()),
            _ => Some(key.text("ExecutionPolicy").ok()??.to_string_lossy().into_owned()),
        }
    })
}

/// `FullLanguage`, or what AppLocker and WDAC leave of it.
fn language_mode(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .args(["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"])
        .arg("$ExecutionContext.SessionState.LanguageMode")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdout = child.stdout.take()?;
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::Read::read_to_string(&mut stdout, &mut text);
        let _ = tell.send(read.map(|_| text)); // nobody waits any more
    });
    let answer = told.recv_timeout(PROBE);
    let _ = child.kill(); // ended already, as a rule
    let _ = child.wait();
    let text = answer.ok()?.ok()?;
    let mode = text.trim();
    mode.ends_with("Language").then(|| mode.to_owned())
}

/// The container engine's endpoint, where one listens.
pub fn container_engine() -> Option<PathBuf> {
    // looked up in the list: opening it would take one of its instances
    let pipes = std::fs::read_dir(r"\\.\pipe\").ok()?;
    let there = pipes.flatten().any(|pipe| pipe.file_name() == "docker_engine");
    there.then(|| r"\\.\pipe\docker_engine".into())
}

/// Whether the host is going down.
pub fn is_shutting_down() -> bool {
    system::is_shutting_down()
}

#[cfg(test)]
mod tests {
    use super::*;
    use win32::registry::{self, Life};

    #[test]
    fn the_host_is_described() {
        assert!(!fqdn().is_empty() && fqdn() == fqdn().to_lowercase());
        assert!(kernel().starts_with("10.0."), "{}", kernel());
        assert!(os_image().contains("Windows"), "{}", os_image());
        assert!(memory() > 1 << 20);
        assert!(memory_left().is_some_and(|share| share <= 100));
        let shells = shells();
        assert!(
            shells.contains_key("cmd") && shells.contains_key("powershell"),
            "{shells:?}"
        );
        let (name, role) = domain();
        assert_eq!(name.is_empty(), role == "standalone", "{name} {role}");
    }

    #[test]
    fn a_policy_of_the_machine_wins_and_pwsh_may_share_it() {
        let root = format!("Software\\Prow test policy {}\\", std::process::id());
        let key = |path: &str| {
            Key::create(Hive::User, &format!("{root}{path}"), Life::Boot)
                .unwrap()
                .0
        };
        let (machine, user) = (format!("{root}m\\"), format!("{root}u\\"));
        let policy = |shell: &str| policy_at(&[(Hive::User, &machine), (Hive::User, &user)], shell);
        assert_eq!(policy("powershell"), None);
        let of_user = key(r"u\SOFTWARE\Policies\Microsoft\Windows\PowerShell");
        of_user.set_number("EnableScripts", 0).unwrap();
        assert_eq!(policy("powershell").as_deref(), Some("Restricted"));
        let of_machine = key(r"m\SOFTWARE\Policies\Microsoft\Windows\PowerShell");
        of_machine.set_number("EnableScripts", 1).unwrap();
        of_machine.set_text("ExecutionPolicy", "AllSigned").unwrap();
        assert_eq!(policy("powershell").as_deref(), Some("AllSigned"));
        assert_eq!(policy("pwsh"), None, "pwsh has policies of its own");
        let core = key(r"m\SOFTWARE\Policies\Microsoft\PowerShellCore");
        core.set_number("UseWindowsPowerShellPolicySetting", 1).unwrap();
        assert_eq!(policy("pwsh").as_deref(), Some("AllSigned"));
        registry::delete(Hive::User, root.trim_end_matches('\\')).unwrap();
    }

    #[test]
    fn a_program_that_tells_no_language_mode_leaves_it_open() {
        let cmd = system::system_folder().unwrap().join("whoami.exe");
        assert_eq!(language_mode(&cmd), None);
    }
}
