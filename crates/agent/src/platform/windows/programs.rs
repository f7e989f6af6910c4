//! Finding programs: by the step's PATH, never in the current folder and never as CreateProcess would, which looks beside the runner
//! first. What is found is handed on by its full path.

use std::{
    ffi::{OsStr, OsString},
    path::{Component, Path, PathBuf},
};
use win32::{
    registry::{Hive, Key},
    system, volume,
};

/// What Windows starts by itself. Other endings that PATHEXT may name are documents to it, which only the desktop's shell opens.
const STARTABLE: [&str; 4] = ["com", "exe", "bat", "cmd"];

/// Finds a program by the step's PATH, never by the current folder; a name with a slash is a path, relative to the step's folder.
/// Errors are sentences for users.
pub fn find_program(name: &str, path: Option<&OsStr>, dir: &Path) -> Result<PathBuf, String> {
    if name.is_empty() || name.contains(|c: char| c.is_control() || "\"<>|*?".contains(c)) {
        return Err(format!("{name:?} can be no program's name on Windows"));
    }
    if name.ends_with(['.', ' ']) {
        return Err(format!(
            "{name:?} ends with a dot or a space, which Windows drops: write the name without"
        ));
    }
    if name.contains(['/', '\\', ':']) {
        return at_path(name, dir);
    }
    let mut refused = None;
    for folder in std::env::split_paths(path.unwrap_or_default()) {
        if !folder.has_root()
            || folder
                .components()
                .next()
                .is_none_or(|c| !matches!(c, Component::Prefix(_)))
        {
            continue; // relative to wherever the step happens to be
        }
        for program in spellings(&folder.join(name)).into_iter().filter(|p| p.is_file()) {
            match refusal(&program) {
                None => return Ok(program),
                Some(why) => refused = Some(why),
            }
        }
    }
    Err(refused.unwrap_or_else(|| {
        format!(
            "there is no program \"{name}\" in PATH ({})",
            path.unwrap_or_default().display()
        )
    }))
}

fn at_path(name: &str, dir: &Path) -> Result<PathBuf, String> {
    let path = Path::new(name);
    let mut parts = path.components();
    let prefixed = matches!(parts.next(), Some(Component::Prefix(_)));
    if prefixed && !path.has_root() {
        return Err(format!(
            "\"{name}\" depends on a drive's current folder: write the full path"
        ));
    }
    let streams =
        |part: Component<'_>| matches!(part, Component::Normal(n) if n.to_string_lossy().contains(':'));
    if path.components().any(streams) {
        return Err(format!(
            "\"{name}\" names a stream of a file, which is no program"
        ));
    }
    let program = dir.join(path);
    if program.is_dir() {
        return Err(format!("{} is a folder", program.display()));
    }
    let found = std::iter::once(program.clone())
        .chain(spellings(&program))
        .find(|p| p.is_file())
        .ok_or_else(|| format!("there is no program {}", program.display()))?;
    match refusal(&found) {
        None => Ok(found),
        Some(why) => Err(why),
    }
}

/// The path as it is, where it already ends as a program does, then with each ending.
fn spellings(path: &Path) -> Vec<PathBuf> {
    let with = |ending: &&str| {
        let mut name = OsString::from(path);
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    };
    let ends = path
        .extension()
        .is_some_and(|e| STARTABLE.iter().any(|s| e.eq_ignore_ascii_case(s)));
    let whole = ends.then(|| path.to_owned());
    whole.into_iter().chain(STARTABLE.iter().map(with)).collect()
}

/// Why a program that is there must not be taken for what it seems to be.
fn refusal(program: &Path) -> Option<String> {
    let shown = program.display();
    let mut parts = program.components().rev();
    let name = parts.next()?.as_os_str();
    let folder = parts.next()?.as_os_str();
    let is = |text: &OsStr, other: &str| text.eq_ignore_ascii_case(other);
    if is(folder, "WindowsApps") && parts.next().is_some_and(|p| is(p.as_os_str(), "Microsoft")) {
        return Some(format!(
            "{shown} is an alias of an app, which opens the Store or runs for one user only: install the program for all users"
        ));
    }
    let system = ["System32", "SysWOW64", "Sysnative"]
        .iter()
        .any(|s| is(folder, s));
    (system && is(name, "bash.exe")).then(|| {
        format!("{shown} starts WSL, which has another file system and loses exit codes: install Git for Windows, or name wsl.exe itself")
    })
}

/// Whether a program can be started in a folder. `cmd` in a folder of the network prints a note and goes on in the Windows folder, where
/// relative commands then act.
pub fn check_folder(program: &Path, dir: &Path) -> Result<(), String> {
    let is = |text: Option<&OsStr>, other: &str| text.is_some_and(|t| t.eq_ignore_ascii_case(other));
    let batch = is(program.extension(), "bat") || is(program.extension(), "cmd");
    if (batch || is(program.file_name(), "cmd.exe")) && volume::is_network(dir) {
        return Err(format!(
            "workingDir: cmd cannot work in a folder of the network ({}): copy what it needs, or use another shell",
            dir.display()
        ));
    }
    Ok(())
}

/// Finds the program of a shell by the name steps use: those of Windows and those that say in the registry where they are by that,
/// all else by PATH. Errors are sentences for users.
pub fn find_shell(name: &str, path: Option<&OsStr>, dir: &Path) -> Result<PathBuf, String> {
    let system = || system::system_folder().map_err(|e| e.to_string());
    let known = match name {
        "cmd" => Some(system()?.join("cmd.exe")),
        "powershell" => Some(system()?.join(r"WindowsPowerShell\v1.0\powershell.exe")),
        "pwsh" => pwsh(Hive::Machine, "SOFTWARE").map(|(program, _)| program),
        "bash" | "sh" => {
            git(Hive::Machine, "SOFTWARE").map(|(root, _)| root.join(format!(r"bin\{name}.exe")))
        }
        _ => None,
    };
    match known.filter(|program| program.is_file()) {
        Some(program) => Ok(program),
        None => find_program(name, path, dir),
    }
}

/// The newest PowerShell above 5.1 that was installed for all users, and its version.
pub(super) fn pwsh(hive: Hive, root: &str) -> Option<(PathBuf, String)> {
    let path = format!(r"{root}\Microsoft\PowerShellCore\InstalledVersions");
    let ids = Key::open(hive, &path).ok()??.keys().ok()?;
    let found = ids.iter().filter_map(|id| {
        let key = Key::open(hive, &format!(r"{path}\{}", id.to_str()?)).ok()??;
        let version = key.text("SemanticVersion").ok()??.into_string().ok()?;
        let program = PathBuf::from(key.text("InstallLocation").ok()??).join("pwsh.exe");
        Some((program, version))
    });
    found.max_by_key(|(_, version)| numbers(version))
}

/// The folder of Git for Windows, and its version.
pub(super) fn git(hive: Hive, root: &str) -> Option<(PathBuf, String)> {
    let key = Key::open(hive, &format!(r"{root}\GitForWindows")).ok()??;
    let version = key.text("CurrentVersion").ok()?.unwrap_or_default();
    Some((
        key.text("InstallPath").ok()??.into(),
        version.to_string_lossy().into_owned(),
    ))
}

/// A version to compare by: `7.4.10-preview.1` is older than `7.4.10`.
fn numbers(version: &str) -> (Vec<u32>, bool) {
    let (release, preview) = version.split_once('-').map_or((version, ""), |parts| parts);
    let numbers = release.split('.').map(|n| n.parse().unwrap_or(0)).collect();
    (numbers, preview.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use win32::registry::{self, Life};

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn the_current_folder_is_never_searched() {
        let here = folder(&["evil.exe", r"sub\evil.exe"]);
        for path in ["", ".", ";", r"sub", r".\sub;\sub", r"C:sub"] {
            let found = find_program("evil", Some(OsStr::new(path)), here.path());
            assert!(found.is_err(), "{path:?} found {found:?}");
        }
        assert!(find_program("evil", None, here.path()).is_err());
        let found = find_program(r".\evil", None, here.path()).unwrap();
        assert_eq!(found, here.path().join(r".\evil.exe"));
        assert!(
            find_program("./sub/evil.exe", None, here.path())
                .unwrap()
                .is_file()
        );
    }

    #[test]
    fn endings_are_tried_in_order_and_folders_before_endings() {
        let (a, b) = (
            folder(&["tool.cmd", "other.txt", "v1.2.exe"]),
            folder(&["tool.exe", "tool.bat"]),
        );
        let path = std::env::join_paths([a.path(), b.path()]).unwrap();
        let find = |name: &str| find_program(name, Some(&path), Path::new(r"C:\"));
        assert_eq!(find("tool").unwrap(), a.path().join("tool.cmd"));
        assert_eq!(find("TOOL.EXE").unwrap(), b.path().join("TOOL.EXE"));
        assert_eq!(find("tool.bat").unwrap(), b.path().join("tool.bat"));
        assert_eq!(
            find("v1.2").unwrap(),
            a.path().join("v1.2.exe"),
            "a dot makes no ending"
        );
        assert!(find("other").is_err() && find("other.txt").is_err());
        assert!(find("none").unwrap_err().contains("\"none\""));
    }

    /// AP-01: what Windows would take for another name than it looks is refused before anything looks at the ending.
    #[test]
    fn names_that_windows_changes_are_refused() {
        let here = folder(&[r"tools\report.cmd"]);
        for name in [
            r"tools\report.cmd.",
            r"tools\report.cmd. .",
            r"tools\report.cmd ",
            r"tools\report.cmd::$DATA",
            "report.cmd:x",
            "C:report.cmd",
            "a\"b",
            "a*",
            "",
            "a\0b",
        ] {
            assert!(find_program(name, None, here.path()).is_err(), "{name:?}");
        }
        assert!(find_program("tools", Some(OsStr::new(r"C:\windows")), here.path()).is_err());
        assert!(
            find_program(r".\tools", None, here.path())
                .unwrap_err()
                .contains("folder")
        );
    }

    #[test]
    fn stubs_are_passed_over_and_named_when_nothing_else_is_there() {
        let stubs = folder(&[r"Microsoft\WindowsApps\python.exe", r"system32\bash.exe"]);
        let real = folder(&["python.exe"]);
        let apps = stubs.path().join(r"Microsoft\WindowsApps");
        let system = stubs.path().join("system32");
        let both = std::env::join_paths([&apps, &real.path().to_owned()]).unwrap();
        let dir = Path::new(r"C:\");
        assert_eq!(
            find_program("python", Some(&both), dir).unwrap(),
            real.path().join("python.exe")
        );
        let alone = find_program("python", Some(apps.as_os_str()), dir).unwrap_err();
        assert!(alone.contains("Store"), "{alone}");
        let bash = find_program("bash", Some(system.as_os_str()), dir).unwrap_err();
        assert!(bash.contains("WSL"), "{bash}");
        let full = system.join("bash.exe");
        assert!(
            find_program(full.to_str().unwrap(), None, dir)
                .unwrap_err()
                .contains("WSL")
        );
    }

    /// AP-08.
    #[test]
    fn cmd_is_never_started_in_a_folder_of_the_network() {
        let share = Path::new(r"\\files\share\job");
        for program in [r"C:\windows\system32\CMD.EXE", r"C:\x.cmd", r"C:\x.Bat"] {
            assert!(check_folder(Path::new(program), share).is_err(), "{program}");
            assert_eq!(check_folder(Path::new(program), Path::new(r"C:\job")), Ok(()));
        }
        assert_eq!(check_folder(Path::new(r"C:\x.exe"), share), Ok(()));
    }

    #[test]
    fn shells_of_windows_are_found_without_path() {
        let dir = Path::new(r"C:\");
        for shell in ["cmd", "powershell"] {
            let program = find_shell(shell, None, dir).unwrap();
            assert!(program.is_absolute() && program.starts_with(system::system_folder().unwrap()));
        }
    }

    #[test]
    fn the_newest_powershell_of_the_registry_is_taken() {
        let root = format!("Software\\Prow test programs {}", std::process::id());
        let base = format!(r"{root}\Microsoft\PowerShellCore\InstalledVersions");
        for (id, version) in [
            ("a", "7.4.9"),
            ("b", "7.4.10"),
            ("c", "7.4.10-preview.3"),
            ("d", "7.2.30"),
        ] {
            let (key, _) = Key::create(Hive::User, &format!(r"{base}\{{{id}}}"), Life::Boot).unwrap();
            key.set_text("SemanticVersion", version).unwrap();
            key.set_text("InstallLocation", &format!(r"C:\ps\{id}\")).unwrap();
        }
        let found = pwsh(Hive::User, &root);
        assert!(git(Hive::User, &root).is_none());
        registry::delete(Hive::User, &root).unwrap();
        assert_eq!(found.unwrap(), (r"C:\ps\b\pwsh.exe".into(), "7.4.10".into()));
        assert!(pwsh(Hive::User, &root).is_none());
    }
}
