//! Accounts and their rights on this host.

use crate::{Error, Result, security::sid_text, wide::wide};
use std::ptr;
use windows_sys::Win32::{
    Foundation::{ERROR_INSUFFICIENT_BUFFER, NTSTATUS},
    Security::{
        Authentication::Identity::{
            LSA_HANDLE, LSA_OBJECT_ATTRIBUTES, LSA_UNICODE_STRING, LsaAddAccountRights, LsaClose,
            LsaNtStatusToWinError, LsaOpenPolicy, POLICY_CREATE_ACCOUNT, POLICY_LOOKUP_NAMES,
        },
        LookupAccountNameW, PSID, SidTypeUnknown,
    },
};

/// An account that this host knows, or its domain.
#[derive(Clone, Debug)]
pub struct Account {
    sid: Vec<u64>,
}

impl Account {
    /// Looks it up by its name, such as `CORP\svc$`.
    pub fn named(name: &str) -> Result<Self> {
        let name = wide(name);
        let (mut sid, mut domain) = (vec![0_u64; 9], vec![0_u16; 256]);
        loop {
            let (mut sid_len, mut domain_len) = (bytes(&sid), len(&domain));
            let mut kind = SidTypeUnknown;
            // SAFETY: the name ends with a zero; the lengths are those of the buffers.
            let found = unsafe {
                LookupAccountNameW(
                    ptr::null(),
                    name.as_ptr(),
                    sid.as_mut_ptr().cast(),
                    &mut sid_len,
                    domain.as_mut_ptr(),
                    &mut domain_len,
                    &mut kind,
                )
            };
            if found != 0 {
                return Ok(Self { sid });
            }
            let error = Error::last("LookupAccountNameW");
            let grows = sid_len > bytes(&sid) || domain_len > len(&domain);
            if error.code != ERROR_INSUFFICIENT_BUFFER || !grows {
                return Err(error);
            }
            sid.resize((sid_len as usize).div_ceil(size_of::<u64>()), 0);
            domain.resize(domain_len as usize, 0);
        }
    }

    /// Its SID as text.
    pub fn sid(&self) -> Result<String> {
        sid_text(self.as_ptr())
    }

    fn as_ptr(&self) -> PSID {
        self.sid.as_ptr().cast_mut().cast()
    }

    /// Gives it rights on this host, such as `SeServiceLogonRight`; takes an administrator. Source: Account Rights Constants and Privilege
    /// Constants of the Win32 documentation.
    pub fn grant(&self, rights: &[&str]) -> Result<()> {
        let policy = Policy::open()?;
        let texts: Vec<Vec<u16>> = rights.iter().map(wide).collect();
        let rights: Vec<LSA_UNICODE_STRING> = texts.iter().map(|text| unicode(text)).collect();
        let count = u32::try_from(rights.len()).unwrap_or(u32::MAX);
        // SAFETY: the policy is open, the SID valid; the texts live during the call, `count` says how many there are.
        let status = unsafe { LsaAddAccountRights(policy.0, self.as_ptr(), rights.as_ptr(), count) };
        check("LsaAddAccountRights", status)
    }
}

/// A text as LSA takes it: without its zero in the length.
fn unicode(text: &[u16]) -> LSA_UNICODE_STRING {
    let bytes = u16::try_from(size_of_val(text)).unwrap_or(u16::MAX);
    LSA_UNICODE_STRING {
        Length: bytes.saturating_sub(2),
        MaximumLength: bytes,
        Buffer: text.as_ptr().cast_mut(),
    }
}

/// The host's policy of rights.
struct Policy(LSA_HANDLE);

impl Policy {
    fn open() -> Result<Self> {
        let attributes = LSA_OBJECT_ATTRIBUTES::default();
        let mut policy = LSA_HANDLE::default();
        let access = u32::try_from(POLICY_CREATE_ACCOUNT | POLICY_LOOKUP_NAMES).unwrap_or_default();
        // SAFETY: no name means this host; `policy` takes the handle.
        let status = unsafe { LsaOpenPolicy(ptr::null(), &attributes, access, &mut policy) };
        check("LsaOpenPolicy", status).map(|()| Self(policy))
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        // SAFETY: the handle is open and ours.
        unsafe { LsaClose(self.0) };
    }
}

fn check(call: &'static str, status: NTSTATUS) -> Result<()> {
    match status {
        0.. => Ok(()),
        // SAFETY: takes no pointers.
        status => Err(Error::of(call, unsafe { LsaNtStatusToWinError(status) })),
    }
}

fn bytes<T>(buffer: &[T]) -> u32 {
    u32::try_from(size_of_val(buffer)).unwrap_or(u32::MAX)
}

fn len<T>(buffer: &[T]) -> u32 {
    u32::try_from(buffer.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_accounts_have_their_sids() {
        let sid = |name: &str| Account::named(name).unwrap().sid().unwrap();
        assert_eq!(sid("SYSTEM"), "S-1-5-18");
        assert_eq!(sid(r"NT AUTHORITY\NETWORK SERVICE"), "S-1-5-20");
    }

    #[test]
    fn an_account_of_nobody_is_an_error() {
        let error = Account::named(r"no-such-domain\nobody").unwrap_err();
        assert_eq!(error.call, "LookupAccountNameW");
    }
}
