//! The host: its names, its part in a domain, its memory, its folders.

use crate::{
    Error, Result,
    wide::{text, text_at, wide},
};
use std::{ffi::OsString, path::PathBuf, ptr};
use windows_sys::Win32::{
    Globalization::{GetACP, GetOEMCP},
    Networking::ActiveDirectory::{
        DSROLE_PRIMARY_DOMAIN_INFO_BASIC, DsRole_RoleBackupDomainController, DsRole_RoleMemberServer,
        DsRole_RoleMemberWorkstation, DsRole_RolePrimaryDomainController, DsRoleFreeMemory,
        DsRoleGetPrimaryDomainInformation, DsRolePrimaryDomainInfoBasic,
    },
    System::{
        LibraryLoader::{GetModuleHandleW, GetProcAddress},
        SystemInformation::{
            COMPUTER_NAME_FORMAT, ComputerNameDnsFullyQualified, ComputerNameDnsHostname, GetComputerNameExW,
            GetSystemDirectoryW, GetSystemWindowsDirectoryW, GlobalMemoryStatusEx, MEMORYSTATUSEX,
        },
    },
    UI::WindowsAndMessaging::{GetSystemMetrics, SM_SHUTTINGDOWN},
};

/// Memory of the host in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What there is.
    pub total: u64,
    /// What can be had without taking it from anybody.
    pub available: u64,
    /// The commit limit: memory and page files.
    pub commit_limit: u64,
    /// What is left of the commit limit. At its end allocations fail.
    pub commit_available: u64,
}

/// What a host is in its domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// In no domain.
    Standalone,
    /// A member.
    Member,
    /// A domain controller.
    Controller,
}

/// The host's own name, as DNS has it but without its domain.
pub fn host_name() -> Result<OsString> {
    name(ComputerNameDnsHostname)
}

/// The host's name with its domain.
pub fn full_name() -> Result<OsString> {
    name(ComputerNameDnsFullyQualified)
}

fn name(format: COMPUTER_NAME_FORMAT) -> Result<OsString> {
    let mut buffer = [0; 1024]; // a DNS name has at most 255 bytes
    let mut len = 1024;
    // SAFETY: `len` says how many units the buffer has.
    match unsafe { GetComputerNameExW(format, buffer.as_mut_ptr(), &mut len) } {
        0 => Err(Error::last("GetComputerNameExW")),
        _ => Ok(text(&buffer)),
    }
}

/// The domain's name in DNS (its short one where it has none), empty where the host is in no domain, and the host's part in it.
pub fn domain() -> Result<(OsString, Role)> {
    let mut info = ptr::null_mut();
    // SAFETY: no server means this host; `info` takes the result.
    let code =
        unsafe { DsRoleGetPrimaryDomainInformation(ptr::null(), DsRolePrimaryDomainInfoBasic, &mut info) };
    if code != 0 {
        return Err(Error::of("DsRoleGetPrimaryDomainInformation", code));
    }
    // SAFETY: the call gave this structure; its texts end with a zero or are null.
    let (name, role) = unsafe {
        let info = &*info.cast::<DSROLE_PRIMARY_DOMAIN_INFO_BASIC>();
        let named = [info.DomainNameDns, info.DomainNameFlat];
        let name = named.into_iter().find(|name| !name.is_null());
        (
            name.map(|name| text_at(name)).unwrap_or_default(),
            info.MachineRole,
        )
    };
    // SAFETY: ours to free, not used again.
    unsafe { DsRoleFreeMemory(info.cast()) };
    #[allow(non_upper_case_globals)] // the names of Windows
    let role = match role {
        DsRole_RoleMemberWorkstation | DsRole_RoleMemberServer => Role::Member,
        DsRole_RoleBackupDomainController | DsRole_RolePrimaryDomainController => Role::Controller,
        _ => return Ok((OsString::new(), Role::Standalone)), // the name is that of a workgroup
    };
    Ok((name, role))
}

/// The host's memory now.
pub fn memory() -> Result<Memory> {
    let mut status = MEMORYSTATUSEX {
        dwLength: u32::try_from(size_of::<MEMORYSTATUSEX>()).unwrap_or_default(),
        ..Default::default()
    };
    // SAFETY: the structure says its size.
    match unsafe { GlobalMemoryStatusEx(&mut status) } {
        0 => Err(Error::last("GlobalMemoryStatusEx")),
        _ => Ok(Memory {
            total: status.ullTotalPhys,
            available: status.ullAvailPhys,
            commit_limit: status.ullTotalPageFile,
            commit_available: status.ullAvailPageFile,
        }),
    }
}

/// The numbers of the code pages OEM (consoles) and ANSI (programs that know no Unicode).
pub fn code_pages() -> (u32, u32) {
    // SAFETY: both only look a number up.
    unsafe { (GetOEMCP(), GetACP()) }
}

/// `C:\Windows\System32`.
pub fn system_folder() -> Result<PathBuf> {
    let mut buffer = [0; 512];
    // SAFETY: the second argument says how many units the buffer has.
    match unsafe { GetSystemDirectoryW(buffer.as_mut_ptr(), 512) } {
        0 => Err(Error::last("GetSystemDirectoryW")),
        _ => Ok(text(&buffer).into()),
    }
}

/// `C:\Windows`, also where every session has its own.
pub fn windows_folder() -> Result<PathBuf> {
    let mut buffer = [0; 512];
    // SAFETY: the second argument says how many units the buffer has.
    match unsafe { GetSystemWindowsDirectoryW(buffer.as_mut_ptr(), 512) } {
        0 => Err(Error::last("GetSystemWindowsDirectoryW")),
        _ => Ok(text(&buffer).into()),
    }
}

/// Whether this session is being ended; in session 0 that is the whole host.
pub fn is_shutting_down() -> bool {
    // SAFETY: it only looks a number up.
    unsafe { GetSystemMetrics(SM_SHUTTINGDOWN) != 0 }
}

/// Whether this is Wine, which answers some calls without doing what they say: tests of such state that they were not run.
pub fn is_wine() -> bool {
    let library = wide("ntdll.dll");
    // SAFETY: both texts end with a zero; the library is loaded in every process.
    unsafe {
        GetProcAddress(
            GetModuleHandleW(library.as_ptr()),
            c"wine_get_version".as_ptr().cast(),
        )
        .is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_names_and_memory() {
        let (short, full) = (host_name().unwrap(), full_name().unwrap());
        assert!(!short.is_empty());
        let (short, full) = (short.to_string_lossy(), full.to_string_lossy());
        assert!(
            full.to_lowercase().starts_with(&*short.to_lowercase()),
            "{full} of {short}"
        );
        let memory = memory().unwrap();
        assert!(memory.available <= memory.total && memory.commit_available <= memory.commit_limit);
        assert!(memory.total > 0);
    }

    #[test]
    fn a_host_in_no_domain_has_none() {
        let (name, role) = domain().unwrap();
        assert_eq!(role == Role::Standalone, name.is_empty(), "{name:?} {role:?}");
    }

    #[test]
    fn the_folders_of_the_system_are_there() {
        assert!(system_folder().unwrap().join("cmd.exe").exists());
        assert!(windows_folder().unwrap().is_dir());
        assert!(!is_shutting_down());
    }
}
