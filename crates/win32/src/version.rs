//! Which Windows this is, asked where no compatibility setting can lie.

use crate::{
    Error, Result,
    registry::{Hive, Key},
    wide::{text, wide},
};
use std::{path::Path, ptr};
use windows_sys::{
    Wdk::System::SystemServices::RtlGetVersion,
    Win32::{
        Storage::FileSystem::{GetFileVersionInfoSizeW, GetFileVersionInfoW, VerQueryValueW},
        System::SystemInformation::{OSVERSIONINFOEXW, OSVERSIONINFOW},
    },
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

/// The product version that a program's file states, without running it; `None` if it states none.
pub fn of_file(program: &Path) -> Result<Option<String>> {
    let path = wide(program);
    // SAFETY: the path ends with a zero; the second argument is not used.
    let len = unsafe { GetFileVersionInfoSizeW(path.as_ptr(), ptr::null_mut()) };
    if len == 0 {
        return Ok(None); // no such resource, or no such file
    }
    let mut block = vec![0_u8; len as usize];
    // SAFETY: `len` says how large the block is.
    if unsafe { GetFileVersionInfoW(path.as_ptr(), 0, len, block.as_mut_ptr().cast()) } == 0 {
        return Err(Error::last("GetFileVersionInfoW"));
    }
    // texts are kept by language and code page, of which the file lists what it has
    let Some(&[low, high, page_low, page_high, ..]) = value(&block, r"\VarFileInfo\Translation", 1) else {
        return Ok(None);
    };
    let (language, page) = (
        u16::from_le_bytes([low, high]),
        u16::from_le_bytes([page_low, page_high]),
    );
    let name = format!(r"\StringFileInfo\{language:04x}{page:04x}\ProductVersion");
    let version = value(&block, &name, 2).map(|bytes| {
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        text(&units).to_string_lossy().trim().to_owned()
    });
    Ok(version.filter(|version| !version.is_empty()))
}

/// A value of a version resource, whose length is counted in units of so many bytes.
fn value<'a>(block: &'a [u8], name: &str, unit: usize) -> Option<&'a [u8]> {
    let (mut start, mut len) = (ptr::null_mut(), 0);
    let name = wide(name);
    // SAFETY: the block was filled by GetFileVersionInfoW; what is found lies inside of it.
    unsafe {
        if VerQueryValueW(block.as_ptr().cast(), name.as_ptr(), &mut start, &mut len) == 0 {
            return None;
        }
        Some(std::slice::from_raw_parts(
            start.cast::<u8>(),
            len as usize * unit,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_its_version_without_being_run() {
        let folder = crate::system::system_folder().unwrap();
        let version = of_file(&folder.join("kernel32.dll")).unwrap().unwrap();
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
        assert_eq!(of_file(&folder.join("none.exe")).unwrap(), None);
    }

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
