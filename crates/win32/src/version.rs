//! Which Windows this is, asked where no compatibility setting can lie.

use crate::{
    Result,
    registry::{Hive, Key},
};
use windows_sys::{
    Wdk::System::SystemServices::RtlGetVersion,
    Win32::System::SystemInformation::{OSVERSIONINFOEXW, OSVERSIONINFOW},
};

/// A version of Windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Such as 10.
    pub major: u32,
    /// Such as 0.
    pub minor: u32,
    /// Such as 20348.
    pub build: u32,
    /// The last cumulative update (UBR); 0 if unknown.
    pub revision: u32,
    /// Whether it is a server.
    pub is_server: bool,
    /// Its name with the edition, such as `Windows Server 2022 Datacenter`.
    pub name: String,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}.{}.{}.{}",
            self.major, self.minor, self.build, self.revision
        )
    }
}

/// First build of Windows 11; its registry goes on to call itself Windows 10.
const WINDOWS_11: u32 = 22_000;
const VER_NT_WORKSTATION: u8 = 1;

/// The version that runs.
pub fn current() -> Result<Version> {
    let mut info = OSVERSIONINFOEXW {
        dwOSVersionInfoSize: u32::try_from(size_of::<OSVERSIONINFOEXW>()).unwrap_or_default(),
        ..Default::default()
    };
    // SAFETY: the structure says its size, by which the call knows which of the two it is; it always succeeds.
    unsafe { RtlGetVersion((&raw mut info).cast::<OSVERSIONINFOW>()) };
    let key = Key::open(Hive::Machine, r"SOFTWARE\Microsoft\Windows NT\CurrentVersion")?;
    let (name, revision) = match &key {
        Some(key) => (key.text("ProductName")?, key.number("UBR")?),
        None => (None, None),
    };
    let is_server = info.wProductType != VER_NT_WORKSTATION;
    let name = name.unwrap_or_else(|| "Windows".into());
    Ok(Version {
        major: info.dwMajorVersion,
        minor: info.dwMinorVersion,
        build: info.dwBuildNumber,
        revision: revision.and_then(|r| u32::try_from(r).ok()).unwrap_or(0),
        is_server,
        name: real_name(&name.to_string_lossy(), info.dwBuildNumber, is_server),
    })
}

fn real_name(name: &str, build: u32, is_server: bool) -> String {
    match name.strip_prefix("Windows 10") {
        Some(edition) if build >= WINDOWS_11 && !is_server => format!("Windows 11{edition}"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_a_number_and_a_name() {
        let version = current().unwrap();
        assert!(version.major >= 10, "{version}");
        assert!(version.build > 0 && !version.name.is_empty());
        assert_eq!(version.to_string().split('.').count(), 4);
    }

    #[test]
    fn windows_11_is_called_so() {
        assert_eq!(
            real_name("Windows 10 Enterprise", 22_631, false),
            "Windows 11 Enterprise"
        );
        assert_eq!(real_name("Windows 10 Pro", 19_045, false), "Windows 10 Pro");
        let server = "Windows Server 2025 Standard";
        assert_eq!(real_name(server, 26_100, true), server);
    }
}
