//! Privileges of this process's account: most are held but switched off until a program asks.

use crate::{Error, Result, handle::owned, wide::wide};
use std::{os::windows::io::AsRawHandle, ptr};
use windows_sys::Win32::{
    Foundation::{ERROR_NOT_ALL_ASSIGNED, GetLastError, LUID},
    Security::{
        AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_PRIVILEGE_ENABLED,
        TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_QUERY,
    },
    System::Threading::{GetCurrentProcess, OpenProcessToken},
};

/// A privilege by its name. Source: Privilege Constants of the Win32 documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Read any file, whatever its access list says.
    Backup,
    /// Write and delete any file; load and unload profiles.
    Restore,
    /// Restart this host.
    Shutdown,
}

impl Privilege {
    fn name(self) -> &'static str {
        match self {
            Self::Backup => "SeBackupPrivilege",
            Self::Restore => "SeRestorePrivilege",
            Self::Shutdown => "SeShutdownPrivilege",
        }
    }

    /// Switches it on for this process. An account that does not hold it gets the error `ERROR_NOT_ALL_ASSIGNED` (1300).
    pub fn enable(self) -> Result<()> {
        let mut token = ptr::null_mut();
        // SAFETY: `token` takes the handle.
        let opened = unsafe {
            OpenProcessToken(
                GetCurrentProcess(),
                TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY,
                &mut token,
            )
        };
        if opened == 0 {
            return Err(Error::last("OpenProcessToken"));
        }
        // SAFETY: just opened, and ours.
        let token = unsafe { owned("OpenProcessToken", token) }?;
        let mut id = LUID::default();
        let name = wide(self.name());
        // SAFETY: the name ends with a zero; no system means this one.
        if unsafe { LookupPrivilegeValueW(ptr::null(), name.as_ptr(), &mut id) } == 0 {
            return Err(Error::last("LookupPrivilegeValueW"));
        }
        let wanted = TOKEN_PRIVILEGES {
            PrivilegeCount: 1,
            Privileges: [LUID_AND_ATTRIBUTES {
                Luid: id,
                Attributes: SE_PRIVILEGE_ENABLED,
            }],
        };
        // SAFETY: the token is open, the one privilege is there; what was before is not asked for.
        let (set, code) = unsafe {
            let set = AdjustTokenPrivileges(
                token.as_raw_handle(),
                0,
                &wanted,
                0,
                ptr::null_mut(),
                ptr::null_mut(),
            );
            (set, GetLastError()) // it succeeds also where it changed nothing: only this tells
        };
        match (set, code) {
            (0, code) | (_, code @ ERROR_NOT_ALL_ASSIGNED) => Err(Error::of("AdjustTokenPrivileges", code)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::is_administrator;

    #[test]
    fn an_administrator_can_switch_them_on() {
        for privilege in [Privilege::Backup, Privilege::Restore, Privilege::Shutdown] {
            match privilege.enable() {
                Ok(()) => {}
                Err(error) => {
                    assert_eq!(error.code, ERROR_NOT_ALL_ASSIGNED, "{privilege:?}");
                    assert!(!is_administrator().unwrap(), "{privilege:?}");
                }
            }
        }
    }
}
