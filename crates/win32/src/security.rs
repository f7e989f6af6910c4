//! Who owns a file, who may use it, who we are.
//!
//! What is private belongs to the system, the administrators and, where it is none of these, our own account; its access list is
//! protected: nothing of the folder above is inherited, so loose rights on `C:\ProgramData` do not reach it.

use crate::{
    Error, Result,
    handle::owned,
    wide::{text_at, wide},
};
use std::{
    ffi::c_void,
    os::windows::io::{AsHandle, AsRawHandle, OwnedHandle},
    ptr,
};
use windows_sys::Win32::{
    Foundation::LocalFree,
    Security::{
        ACL,
        Authorization::{
            ConvertSecurityDescriptorToStringSecurityDescriptorW, ConvertSidToStringSidW,
            ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1,
            SE_FILE_OBJECT, SetSecurityInfo,
        },
        CheckTokenMembership, CreateWellKnownSid, DACL_SECURITY_INFORMATION, GetSecurityDescriptorDacl,
        GetTokenInformation, OWNER_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION,
        PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES, SECURITY_MAX_SID_SIZE, TOKEN_QUERY, TOKEN_USER,
        TokenUser, WinBuiltinAdministratorsSid,
    },
    System::Threading::{GetCurrentProcess, OpenProcessToken},
};

/// Owners that the system itself trusts with everything: SYSTEM, the administrators, TrustedInstaller.
/// Source: Well-known SIDs of the Win32 documentation.
const TRUSTED: [&str; 3] = [
    "S-1-5-18",
    "S-1-5-32-544",
    "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464",
];

/// A security descriptor.
#[derive(Debug)]
pub struct Descriptor(PSECURITY_DESCRIPTOR);

// SAFETY: it is plain memory that nobody changes.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the call that made it says that LocalFree ends it.
        unsafe { LocalFree(self.0) };
    }
}

impl Descriptor {
    /// From a text in the Security Descriptor Definition Language.
    pub fn parse(sddl: &str) -> Result<Self> {
        let mut descriptor = ptr::null_mut();
        let sddl = wide(sddl);
        // SAFETY: the text ends with a zero, `descriptor` takes the result.
        let made = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                sddl.as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                ptr::null_mut(),
            )
        };
        if made == 0 {
            return Err(Error::last(
                "ConvertStringSecurityDescriptorToSecurityDescriptorW",
            ));
        }
        Ok(Self(descriptor))
    }

    /// Of a folder that is private, with all that will be in it.
    pub fn private_folder() -> Result<Self> {
        Self::parse(&private("OICI")?)
    }

    /// Of a private folder that another account, by its SID, may use like us.
    pub fn private_folder_for(sid: &str) -> Result<Self> {
        Self::parse(&format!("{}(A;OICI;FA;;;{sid})", private("OICI")?))
    }

    /// Of a private thing that holds nothing: a file, a pipe.
    pub fn private() -> Result<Self> {
        Self::parse(&private("")?)
    }

    /// Of a folder that everybody may enter and list; what is made in it is private.
    pub fn open_folder() -> Result<Self> {
        Self::parse(&format!("{}(A;;FRFX;;;BU)", private("OICI")?))
    }

    /// To be handed to a call that makes something. Holds only as long as the descriptor.
    pub(crate) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).unwrap_or_default(),
            lpSecurityDescriptor: self.0,
            bInheritHandle: 0,
        }
    }

    pub(crate) fn as_ptr(&self) -> PSECURITY_DESCRIPTOR {
        self.0
    }

    /// Gives an open file or folder this access list; needs WRITE_DAC. What lies in a folder inherits it.
    pub fn stamp(&self, file: impl AsHandle) -> Result<()> {
        let file = file.as_handle();
        let wanted = self.access_list()?;
        if access_list_of(file.as_raw_handle()).is_ok_and(|list| list == wanted) {
            return Ok(()); // setting it again would walk through everything below
        }
        let (mut present, mut defaulted) = (0, 0);
        let mut list: *mut ACL = ptr::null_mut();
        // SAFETY: the descriptor is valid, the list stays inside of it.
        if unsafe { GetSecurityDescriptorDacl(self.0, &mut present, &mut list, &mut defaulted) } == 0 {
            return Err(Error::last("GetSecurityDescriptorDacl"));
        }
        // SAFETY: the handle is open, the list lives as long as `self`.
        let code = unsafe {
            SetSecurityInfo(
                file.as_raw_handle(),
                SE_FILE_OBJECT,
                DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION,
                ptr::null_mut(),
                ptr::null_mut(),
                list,
                ptr::null(),
            )
        };
        match code {
            0 => Ok(()),
            code => Err(Error::of("SetSecurityInfo", code)),
        }
    }

    /// The access list as text.
    fn access_list(&self) -> Result<String> {
        let mut text = ptr::null_mut();
        // SAFETY: the descriptor is valid, `text` takes the result.
        let made = unsafe {
            ConvertSecurityDescriptorToStringSecurityDescriptorW(
                self.0,
                SDDL_REVISION_1,
                DACL_SECURITY_INFORMATION,
                &mut text,
                ptr::null_mut(),
            )
        };
        if made == 0 {
            return Err(Error::last(
                "ConvertSecurityDescriptorToStringSecurityDescriptorW",
            ));
        }
        // SAFETY: the text ends with a zero and is ours to free.
        let copy = unsafe { freed_text(text) };
        Ok(copy.replacen("D:PAI", "D:P", 1)) // "auto inherited" says how it came to be, not what it allows
    }
}

/// The access list of an open file as text.
fn access_list_of(file: *mut c_void) -> Result<String> {
    let mut descriptor = ptr::null_mut();
    // SAFETY: the handle is open; only the descriptor is asked for.
    let code = unsafe {
        GetSecurityInfo(
            file,
            SE_FILE_OBJECT,
            DACL_SECURITY_INFORMATION,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            &mut descriptor,
        )
    };
    if code != 0 {
        return Err(Error::of("GetSecurityInfo", code));
    }
    Descriptor(descriptor).access_list()
}

fn private(inheritance: &str) -> Result<String> {
    let mut sddl = format!("D:P(A;{inheritance};FA;;;SY)(A;{inheritance};FA;;;BA)");
    if !is_administrator()? {
        sddl += &format!("(A;{inheritance};FA;;;{})", own_sid()?);
    }
    Ok(sddl)
}

/// Whether an administrator has already narrowed down who may use an open file, such as to us and the account of our service: it inherits
/// nothing and names no group that more than a few are in.
pub fn is_narrow(file: impl AsHandle) -> Result<bool> {
    Ok(is_narrow_list(&access_list_of(file.as_handle().as_raw_handle())?))
}

/// Everyone, anonymous, authenticated users, users, guests, interactive, network, all application packages; by their letters in the
/// Security Descriptor Definition Language. Source: SID Strings of the Win32 documentation.
const MANY: [&str; 8] = ["WD", "AN", "AU", "BU", "BG", "IU", "NU", "AC"];

fn is_narrow_list(list: &str) -> bool {
    list.starts_with("D:P(") && !MANY.iter().any(|many| list.contains(&format!(";;;{many})")))
}

/// Whether whoever owns an open file may have made it for us: ourselves, or those who can do everything anyway.
pub fn is_trusted_owner(file: impl AsHandle) -> Result<bool> {
    let owner = owner(file)?;
    Ok(TRUSTED.contains(&owner.as_str()) || owner == own_sid()?)
}

/// The owner of an open file, as text; needs READ_CONTROL.
pub fn owner(file: impl AsHandle) -> Result<String> {
    let (mut owner, mut descriptor): (PSID, PSECURITY_DESCRIPTOR) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the handle is open; the owner lies inside the descriptor.
    let code = unsafe {
        GetSecurityInfo(
            file.as_handle().as_raw_handle(),
            SE_FILE_OBJECT,
            OWNER_SECURITY_INFORMATION,
            &mut owner,
            ptr::null_mut(),
            ptr::null_mut(),
            ptr::null_mut(),
            &mut descriptor,
        )
    };
    if code != 0 {
        return Err(Error::of("GetSecurityInfo", code));
    }
    let _alive = Descriptor(descriptor);
    sid_text(owner)
}

/// The account of this process, as text.
pub fn own_sid() -> Result<String> {
    let token = own_token()?;
    let mut buffer = [0_u64; 32]; // aligned, and room for TOKEN_USER with the longest SID
    let (mut used, len) = (0, u32::try_from(size_of_val(&buffer)).unwrap_or_default());
    // SAFETY: `len` says how large the buffer is.
    let told = unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            TokenUser,
            buffer.as_mut_ptr().cast(),
            len,
            &mut used,
        )
    };
    if told == 0 {
        return Err(Error::last("GetTokenInformation"));
    }
    // SAFETY: the call has filled a TOKEN_USER, whose SID lies in the same buffer.
    let user = unsafe { &*buffer.as_ptr().cast::<TOKEN_USER>() };
    sid_text(user.User.Sid)
}

/// Whether this process has the rights of an administrator; one whose rights are held back by User Account Control has not.
pub fn is_administrator() -> Result<bool> {
    let mut sid = [0_u8; SECURITY_MAX_SID_SIZE as usize];
    let mut len = SECURITY_MAX_SID_SIZE;
    // SAFETY: `len` says how large the buffer is.
    let made = unsafe {
        CreateWellKnownSid(
            WinBuiltinAdministratorsSid,
            ptr::null_mut(),
            sid.as_mut_ptr().cast(),
            &mut len,
        )
    };
    if made == 0 {
        return Err(Error::last("CreateWellKnownSid"));
    }
    let mut member = 0;
    // SAFETY: the SID was just made; no token means this thread's or process's own.
    if unsafe { CheckTokenMembership(ptr::null_mut(), sid.as_mut_ptr().cast(), &mut member) } == 0 {
        return Err(Error::last("CheckTokenMembership"));
    }
    Ok(member != 0)
}

/// The token of this process, to be asked.
pub(crate) fn own_token() -> Result<OwnedHandle> {
    let mut token = ptr::null_mut();
    // SAFETY: `token` takes the handle.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &mut token) } == 0 {
        return Err(Error::last("OpenProcessToken"));
    }
    // SAFETY: just opened, and ours.
    unsafe { owned("OpenProcessToken", token) }
}

pub(crate) fn sid_text(sid: PSID) -> Result<String> {
    let mut text = ptr::null_mut();
    // SAFETY: the SID is valid, `text` takes the result.
    if unsafe { ConvertSidToStringSidW(sid, &mut text) } == 0 {
        return Err(Error::last("ConvertSidToStringSidW"));
    }
    // SAFETY: the text ends with a zero and is ours to free.
    Ok(unsafe { freed_text(text) })
}

/// Copies a text that the caller must free, and frees it.
///
/// # Safety
/// It ends with a zero and comes from LocalAlloc.
unsafe fn freed_text(text: *mut u16) -> String {
    // SAFETY: as promised.
    let copy = unsafe { text_at(text) }.to_string_lossy().into_owned();
    // SAFETY: as promised; not used again.
    unsafe { LocalFree(text.cast()) };
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_private_names_system_and_administrators_and_inherits_nothing() {
        let list = Descriptor::private_folder().unwrap().access_list().unwrap();
        assert!(list.starts_with("D:P("), "{list}");
        assert!(
            list.contains("(A;OICI;FA;;;SY)") && list.contains("(A;OICI;FA;;;BA)"),
            "{list}"
        );
        assert_eq!(
            list.contains(&own_sid().unwrap()),
            !is_administrator().unwrap(),
            "{list}"
        );
        let open = Descriptor::open_folder().unwrap().access_list().unwrap();
        assert!(
            open.contains(";;;BU)") && !open.contains("OICI;FA;;;BU"),
            "{open}"
        );
    }

    #[test]
    fn a_list_is_narrow_if_it_inherits_nothing_and_names_no_large_group() {
        let private = Descriptor::private_folder().unwrap().access_list().unwrap();
        assert!(is_narrow_list(&private), "{private}");
        let service = Descriptor::private_folder_for("S-1-5-20").unwrap();
        assert!(is_narrow_list(&service.access_list().unwrap()));
        let open = Descriptor::open_folder().unwrap().access_list().unwrap();
        assert!(!is_narrow_list(&open), "{open}");
        assert!(!is_narrow_list("D:AI(A;OICI;FA;;;SY)") && !is_narrow_list("D:P(A;OICI;FR;;;WD)"));
        assert!(!is_narrow_list(""));
    }

    #[test]
    fn a_malformed_descriptor_is_an_error() {
        assert!(Descriptor::parse("D:P(A;;FA;;;").is_err());
    }

    #[test]
    fn what_we_make_is_ours() {
        let file = tempfile::tempfile().unwrap();
        assert!(is_trusted_owner(&file).unwrap());
        assert!(own_sid().unwrap().starts_with("S-1-5-"));
    }
}
