//! The variables that an account's processes start with, and how Windows compares and keeps variables.

use crate::{
    Error, Result,
    security::own_token,
    wide::{text_at, wide},
};
use std::{
    cmp::Ordering,
    ffi::{OsStr, OsString, c_void},
    os::windows::{
        ffi::OsStrExt,
        io::{AsRawHandle, BorrowedHandle},
    },
    ptr,
};
use windows_sys::Win32::{
    Globalization::{CSTR_EQUAL, CSTR_LESS_THAN, CompareStringOrdinal},
    System::Environment::{CreateEnvironmentBlock, DestroyEnvironmentBlock},
};

/// The variables of a token's account (this process's own without one): those of the machine and of the account as the registry has
/// them now, nothing of this process. Their order is that of the system.
pub fn of_account(token: Option<BorrowedHandle<'_>>) -> Result<Vec<(OsString, OsString)>> {
    let own = own_token()?;
    let token = token.map_or(own.as_raw_handle(), |token| token.as_raw_handle());
    let mut block: *mut c_void = ptr::null_mut();
    // SAFETY: the token is open, `block` takes the result.
    if unsafe { CreateEnvironmentBlock(&mut block, token, 0) } == 0 {
        return Err(Error::last("CreateEnvironmentBlock"));
    }
    let mut variables = Vec::new();
    let mut at = block.cast_const().cast::<u16>();
    loop {
        // SAFETY: the block is a row of texts that each end with a zero; an empty one ends it.
        let entry = unsafe { text_at(at) };
        let len = entry.encode_wide().count();
        if len == 0 {
            break;
        }
        variables.extend(split(&entry));
        // SAFETY: behind a text and its zero the next begins.
        at = unsafe { at.add(len + 1) };
    }
    // SAFETY: made above, not used again.
    unsafe { DestroyEnvironmentBlock(block) };
    Ok(variables)
}

/// Name and value of `NAME=value`; nothing for `=C:=C:\folder`, which is a drive's current folder.
fn split(entry: &OsStr) -> Option<(OsString, OsString)> {
    use std::os::windows::ffi::OsStringExt;
    let units: Vec<u16> = entry.encode_wide().collect();
    let at = units
        .iter()
        .position(|unit| *unit == u16::from(b'='))
        .filter(|at| *at > 0)?;
    Some((
        OsString::from_wide(&units[..at]),
        OsString::from_wide(&units[at + 1..]),
    ))
}

/// Compares names as Windows does: by units, without regard to case, by the tables of the system and no language's rules.
pub fn compare(a: impl AsRef<OsStr>, b: impl AsRef<OsStr>) -> Ordering {
    let (a, b) = (wide(a), wide(b));
    // SAFETY: both texts end with a zero, which −1 stands for.
    match unsafe { CompareStringOrdinal(a.as_ptr(), -1, b.as_ptr(), -1, 1) } {
        CSTR_LESS_THAN => Ordering::Less,
        CSTR_EQUAL => Ordering::Equal,
        _ => Ordering::Greater,
    }
}

/// The block that CreateProcess takes (with CREATE_UNICODE_ENVIRONMENT): sorted, of names that differ only in case the last.
pub fn block<'a>(variables: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>) -> Vec<u16> {
    let mut sorted: Vec<(&OsStr, &OsStr)> = variables.into_iter().collect();
    sorted.reverse();
    sorted.sort_by(|a, b| compare(a.0, b.0)); // stable: of equal names the last comes first
    sorted.dedup_by(|later, first| compare(later.0, first.0).is_eq());
    let mut units = Vec::new();
    for (name, value) in sorted {
        units.extend(name.encode_wide());
        units.push(u16::from(b'='));
        units.extend(value.encode_wide());
        units.push(0);
    }
    if units.is_empty() {
        units.push(0); // an empty block still has two zeros
    }
    units.push(0);
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AP-12, and RA-01 for the part without another account.
    #[test]
    fn nothing_of_this_process_is_in_an_accounts_environment() {
        // SAFETY: no other thread of this test program reads this variable.
        unsafe { std::env::set_var("PROW_TEST_OF_THIS_PROCESS", "1") };
        let variables = of_account(None).unwrap();
        let has = |name: &str| variables.iter().any(|(n, _)| compare(n, name).is_eq());
        assert!(!has("PROW_TEST_OF_THIS_PROCESS"));
        assert!(has("systemroot") && has("PATH"), "{variables:?}");
    }

    #[test]
    fn names_are_compared_as_windows_does() {
        assert!(compare("Path", "PATH").is_eq());
        assert!(compare("ärger", "ÄRGER").is_eq());
        assert!(compare("straße", "STRASSE").is_ne(), "no language's rules");
        assert!(compare("A", "b").is_lt());
        assert!(compare("A_", "AB").is_gt(), "upper case decides");
    }

    #[test]
    fn the_block_is_sorted_and_has_each_name_once() {
        let of = |pairs: &[(&str, &str)]| {
            let units = block(pairs.iter().map(|(n, v)| (OsStr::new(*n), OsStr::new(*v))));
            String::from_utf16(&units).unwrap()
        };
        assert_eq!(
            of(&[("b", "1"), ("Path", "old"), ("A", ""), ("PATH", "new")]),
            "A=\0b=1\0PATH=new\0\0"
        );
        assert_eq!(of(&[]), "\0\0");
    }
}
