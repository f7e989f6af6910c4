//! The host as steps see it: the environment they start from, its name, where programs are.

use crate::codepage::Pages;
use rustix::fs::{Access, access};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

/// Variables of the agent's own environment that steps get; the rest stays here, since it may hold what is meant for the agent alone.
const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a script that names no shell.
pub const DEFAULT_SHELL: &str = "sh";

/// Variables that name a folder of the task's own for temporary files: none, since the system's serves.
pub const TEMP_VARIABLES: [&str; 0] = [];

/// What every step starts from, read afresh: some of the agent's own variables, over them /etc/environment (pam_env(7)).
pub fn base_environment() -> BTreeMap<String, OsString> {
    let own = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let mut env: BTreeMap<String, OsString> = own
        .filter(|(name, _)| INHERITED.contains(&name.as_str()) || name.starts_with("LC_"))
        .collect();
    env.extend(machine_environment(
        &std::fs::read_to_string("/etc/environment").unwrap_or_default(),
    ));
    env.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    env
}

fn machine_environment(text: &str) -> impl Iterator<Item = (String, OsString)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        let value = ['"', '\'']
            .into_iter()
            .find_map(|q| value.strip_prefix(q)?.strip_suffix(q))
            .unwrap_or(value);
        Some((name.to_owned(), value.into()))
    })
}

/// The code pages of the host: UTF-8.
pub fn code_pages() -> Pages {
    Pages::default()
}

/// Whether two names are one variable.
pub fn same_variable(a: &str, b: &str) -> bool {
    a == b
}

/// Whether a step can be started with these variables: on Unix with any.
pub fn check_environment(_variables: &BTreeMap<String, OsString>) -> Result<(), String> {
    Ok(())
}

/// Whether a step can be started with these arguments: on Unix the system says so.
pub fn check_arguments(_program: &Path, _args: &[OsString]) -> Result<(), String> {
    Ok(())
}

/// Whether a program can be started in a folder: on Unix anywhere.
pub fn check_folder(_program: &Path, _dir: &Path) -> Result<(), String> {
    Ok(())
}

/// A value as a variable holds it; `None` where it holds a byte that no variable can.
pub fn variable(value: &[u8]) -> Option<OsString> {
    (!value.contains(&0)).then(|| OsString::from_vec(value.to_vec()))
}

/// The host's full name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Finds a program by the step's PATH, never by the current folder; a name with a slash is a path, relative to the step's folder.
pub fn find_program(name: &str, path: Option<&OsStr>, dir: &Path) -> Result<PathBuf, String> {
    if name.contains('/') {
        let program = dir.join(name);
        return match program.metadata() {
            Err(e) => Err(format!("{}: {e}", program.display())),
            Ok(meta) if meta.is_dir() => Err(format!("{} is a folder", program.display())),
            Ok(_) if !runs(&program) => Err(format!(
                "{} is not executable; chmod +x it, or run it through its interpreter",
                program.display()
            )),
            Ok(_) => Ok(program),
        };
    }
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|program| program.is_file() && runs(program))
        .ok_or_else(|| format!("there is no program \"{name}\" in PATH ({})", path.display()))
}

/// Finds the program of a shell: as any other.
pub fn find_shell(name: &str, path: Option<&OsStr>, dir: &Path) -> Result<PathBuf, String> {
    find_program(name, path, dir)
}

fn runs(program: &Path) -> bool {
    access(program.as_os_str().as_bytes(), Access::EXEC_OK).is_ok()
}

/// What helps when the system refused to start a program that is there.
pub fn start_hint(error: &std::io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOEXEC) => {
            "; it is no program of this machine: a script needs a first line such as #!/bin/sh"
        }
        Some(libc::ENOENT) => "; the interpreter in its first line, or its loader, does not exist",
        Some(libc::E2BIG) => "; arguments and environment are too long together, put long values into files",
        Some(libc::EACCES) => "; the file or its file system does not allow to run it",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_environment_is_read_as_written() {
        let text = "# PATH=/no\nA=1\nexport B=\"two words\"\n  C='x'\nnonsense\n";
        let env: Vec<_> = machine_environment(text).collect();
        let pairs = [("A", "1"), ("B", "two words"), ("C", "x")];
        assert_eq!(env, pairs.map(|(n, v)| (n.to_owned(), OsString::from(v))));
    }

    #[test]
    fn the_current_folder_is_never_searched() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("evil");
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for path in ["", ".", ":", "/usr/bin::."] {
            let found = find_program("evil", Some(OsStr::new(path)), folder.path());
            assert!(found.is_err(), "{path:?} found {found:?}");
        }
        assert_eq!(
            find_program("./evil", None, folder.path()),
            Ok(folder.path().join("./evil"))
        );
        assert!(find_program("sh", None, folder.path()).unwrap().is_absolute());
    }

    #[test]
    fn what_cannot_run_says_why() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("plain"), "x").unwrap();
        let why = find_program("./plain", None, folder.path()).unwrap_err();
        assert!(why.contains("chmod +x"), "{why}");
    }
}
