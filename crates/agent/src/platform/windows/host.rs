//! The host as steps see it: the environment they start from, its name.

use crate::codepage::{CodePage, Pages};
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
};
use win32::{environment, system};

/// Runs a script that names no shell.
pub const DEFAULT_SHELL: &str = "powershell";

/// Variables that name a folder of the task's own for temporary files: that of the account may be written as a short name (8.3), which
/// compares unequal to its long one, and a service's account may have none that it can use.
pub const TEMP_VARIABLES: [&str; 2] = ["TEMP", "TMP"];

/// Without these sockets, cryptography and shells do not work, with errors that point elsewhere. They cannot be removed.
const ALWAYS: [&str; 7] = [
    "SystemRoot",
    "SystemDrive",
    "windir",
    "ComSpec",
    "PATHEXT",
    "ProgramData",
    "TEMP",
];
/// Characters of `NAME=value` and its end. Source: Environment Variables of the Win32 documentation.
const LONGEST: usize = 32_767;

/// What every step starts from, read afresh: the variables of the machine and of the account, none of the agent's own. What Windows
/// itself adds at a logon, and a service's account may lack, is filled in.
pub fn base_environment() -> BTreeMap<String, OsString> {
    let read = environment::of_account(None).unwrap_or_else(|error| {
        tracing::warn!(%error, "the account's environment cannot be read");
        Vec::new()
    });
    let mut variables: BTreeMap<String, OsString> = read
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .collect();
    for name in ALWAYS {
        if !variables
            .iter()
            .any(|(n, v)| same_variable(n, name) && !v.is_empty())
            && let Some(value) = std::env::var_os(name)
        {
            variables.insert(name.to_owned(), value);
        }
    }
    variables
}

/// The code pages of consoles and of programs that know no Unicode.
pub fn code_pages() -> Pages {
    let (oem, ansi) = system::code_pages();
    Pages {
        oem: CodePage::of(oem),
        ansi: CodePage::of(ansi),
    }
}

/// Whether two names are one variable.
pub fn same_variable(a: &str, b: &str) -> bool {
    environment::compare(a, b).is_eq()
}

/// Whether a step can be started with these variables. Errors are sentences for users.
pub fn check_environment(variables: &BTreeMap<String, OsString>) -> Result<(), String> {
    for (name, value) in variables {
        let len = name.encode_utf16().count() + units(value) + 2;
        if len > LONGEST {
            return Err(format!(
                "env {name}: {len} characters with its name, Windows takes {LONGEST}; put the value into a file"
            ));
        }
    }
    for always in ALWAYS {
        if !variables
            .iter()
            .any(|(name, value)| same_variable(name, always) && !value.is_empty())
        {
            return Err(format!(
                "env {always}: it cannot be removed, Windows programs do not work without it"
            ));
        }
    }
    Ok(())
}

fn units(text: &OsStr) -> usize {
    std::os::windows::ffi::OsStrExt::encode_wide(text).count()
}

/// A value as a variable holds it; `None` where it holds what no variable can: zero bytes, and what is not UTF-8.
pub fn variable(value: &[u8]) -> Option<OsString> {
    let text = std::str::from_utf8(value).ok()?;
    (!value.contains(&0)).then(|| text.into())
}

/// The host's name.
pub fn host_name() -> String {
    let name = system::host_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|_| std::env::var("COMPUTERNAME").unwrap_or_default())
}

/// What helps when the system refused to start a program that is there.
pub fn start_hint(error: &std::io::Error) -> &'static str {
    let inner = error.get_ref().and_then(|e| e.downcast_ref::<win32::Error>());
    let code = inner
        .map(|e| e.code)
        .or_else(|| error.raw_os_error().map(i32::cast_unsigned));
    match code {
        Some(2) => "; the program, or what it is started through, does not exist",
        Some(3) => "; a folder of its path, or the working folder, does not exist",
        Some(5) => {
            "; the account may not run it: check the rights on the file, and whether a virus scanner holds it back"
        }
        Some(8 | 14 | 1455) => "; the host has too little memory left",
        Some(50) => "; the program is on a file system that programs cannot be started from",
        Some(87) => "; Windows refused an argument: the command line may be too long",
        Some(193) => {
            "; it is no program for this machine: a script runs through its interpreter, a .msi through msiexec"
        }
        Some(206) => "; command line or path are too long: put long values into files",
        Some(216) => "; it was made for another kind of processor",
        Some(225 | 226) => "; the virus scanner holds it for malware",
        Some(267) => "; the working folder is no folder",
        Some(577 | 1260 | 4551) => {
            "; a policy of this host (AppLocker, WDAC, software restriction) blocks it: allow it there by publisher, hash or path"
        }
        Some(740) => "; it asks for the rights of an administrator, which the account does not have",
        Some(1314) => "; the agent's account lacks a privilege for it",
        Some(1385) => "; the account needs the right to log on as a batch job",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> BTreeMap<String, OsString> {
        let base = base_environment();
        assert_eq!(check_environment(&base), Ok(()));
        base
    }

    /// AP-12: PSModulePath as well is that of the registry.
    #[test]
    fn the_agents_own_variables_stay_with_it() {
        let base = base();
        // every test program under cargo has this one
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert!(!base.contains_key("CARGO_MANIFEST_DIR"));
    }

    /// AP-07.
    #[test]
    fn what_windows_needs_cannot_be_taken_away() {
        for name in ALWAYS {
            let mut variables = base();
            variables.retain(|n, _| !same_variable(n, name));
            assert!(check_environment(&variables).unwrap_err().contains(name));
            variables.insert(name.to_lowercase(), OsString::new());
            assert!(check_environment(&variables).unwrap_err().contains(name));
            variables.insert(name.to_lowercase(), "x".into());
            assert_eq!(check_environment(&variables), Ok(()));
        }
    }

    /// AP-03.
    #[test]
    fn a_variable_that_is_too_long_is_named() {
        let mut variables = base();
        variables.insert("LONG".into(), "x".repeat(LONGEST - 6).into());
        assert_eq!(check_environment(&variables), Ok(()));
        variables.insert("LONG".into(), "x".repeat(LONGEST - 5).into());
        let error = check_environment(&variables).unwrap_err();
        assert!(error.contains("LONG") && error.contains("32768"), "{error}");
    }

    #[test]
    fn bytes_that_are_no_text_are_no_variable() {
        assert_eq!(variable("grün".as_bytes()), Some("grün".into()));
        assert_eq!(variable(b"a\0b"), None);
        assert_eq!(variable(b"\xff"), None);
    }

    #[test]
    fn the_usual_refusals_have_a_hint() {
        for code in [2, 3, 5, 193, 206, 216, 740, 1260] {
            let plain = std::io::Error::from_raw_os_error(code);
            assert!(start_hint(&plain).starts_with("; "), "{code}");
            let ours = win32::Error::of("CreateProcessW", code.cast_unsigned());
            assert_eq!(start_hint(&ours.into()), start_hint(&plain));
        }
        assert_eq!(start_hint(&std::io::Error::other("x")), "");
    }
}
