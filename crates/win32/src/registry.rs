//! The registry, in its 64-bit view.

use crate::{
    Error, Result,
    wide::{text, wide},
};
use std::{ffi::OsString, ptr};
use windows_sys::Win32::{
    Foundation::{
        ERROR_FILE_NOT_FOUND, ERROR_MORE_DATA, ERROR_NO_MORE_ITEMS, ERROR_PATH_NOT_FOUND, ERROR_SUCCESS,
    },
    System::Registry::{
        HKEY, HKEY_CURRENT_USER, HKEY_LOCAL_MACHINE, KEY_READ, KEY_WOW64_64KEY, KEY_WRITE, REG_DWORD,
        REG_EXPAND_SZ, REG_MULTI_SZ, REG_OPTION_NON_VOLATILE, REG_OPTION_VOLATILE, REG_QWORD, REG_SAM_FLAGS,
        REG_SZ, REG_VALUE_TYPE, RegCloseKey, RegCreateKeyExW, RegDeleteTreeW, RegEnumKeyExW, RegOpenKeyExW,
        RegQueryValueExW, RegSetValueExW,
    },
};

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hive {
    /// HKEY_LOCAL_MACHINE.
    Machine,
    /// HKEY_CURRENT_USER: of this process's account.
    User,
}

/// What a value holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// REG_SZ, or REG_EXPAND_SZ as it is written.
    Text(OsString),
    /// REG_MULTI_SZ.
    Texts(Vec<OsString>),
    /// REG_DWORD and REG_QWORD.
    Number(u64),
    /// Anything else, raw.
    Other(Vec<u8>),
}

/// How long a key lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Until it is deleted.
    Lasting,
    /// Until the host restarts (REG_OPTION_VOLATILE).
    Boot,
}

/// An open key.
#[derive(Debug)]
pub struct Key(HKEY);

// SAFETY: a registry handle may be used from any thread.
unsafe impl Send for Key {}
// SAFETY: the calls made with it are safe to make at once.
unsafe impl Sync for Key {}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: the handle is open and ours.
        unsafe { RegCloseKey(self.0) };
    }
}

impl Key {
    /// Opens a key for reading; `None` if there is none.
    pub fn open(hive: Hive, path: &str) -> Result<Option<Self>> {
        Self::open_with(hive, path, KEY_READ)
    }

    /// Opens a key for reading and writing; `None` if there is none.
    pub fn open_writable(hive: Hive, path: &str) -> Result<Option<Self>> {
        Self::open_with(hive, path, KEY_READ | KEY_WRITE)
    }

    fn open_with(hive: Hive, path: &str, access: REG_SAM_FLAGS) -> Result<Option<Self>> {
        let mut key = ptr::null_mut();
        let path = wide(path);
        // SAFETY: the path ends with a zero, `key` takes the handle.
        let code = unsafe { RegOpenKeyExW(root(hive), path.as_ptr(), 0, access | KEY_WOW64_64KEY, &mut key) };
        Ok(found("RegOpenKeyExW", code)?.then_some(Self(key)))
    }

    /// Opens a key for reading and writing, making it if there is none; also tells whether it was made.
    pub fn create(hive: Hive, path: &str, life: Life) -> Result<(Self, bool)> {
        const CREATED: u32 = 1; // REG_CREATED_NEW_KEY
        let options = match life {
            Life::Lasting => REG_OPTION_NON_VOLATILE,
            Life::Boot => REG_OPTION_VOLATILE,
        };
        let (mut key, mut disposition) = (ptr::null_mut(), 0);
        let path = wide(path);
        let access = KEY_READ | KEY_WRITE | KEY_WOW64_64KEY;
        // SAFETY: the path ends with a zero, the pointers are to live variables or null where that is allowed.
        let code = unsafe {
            RegCreateKeyExW(
                root(hive),
                path.as_ptr(),
                0,
                ptr::null(),
                options,
                access,
                ptr::null(),
                &mut key,
                &mut disposition,
            )
        };
        check("RegCreateKeyExW", code)?;
        Ok((Self(key), disposition == CREATED))
    }

    /// A value; `None` if there is none.
    pub fn value(&self, name: &str) -> Result<Option<Value>> {
        let name = wide(name);
        let mut bytes = vec![0_u8; 256];
        loop {
            let mut kind: REG_VALUE_TYPE = 0;
            let mut len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            // SAFETY: `len` says how many bytes the buffer has.
            let code = unsafe {
                RegQueryValueExW(
                    self.0,
                    name.as_ptr(),
                    ptr::null(),
                    &mut kind,
                    bytes.as_mut_ptr(),
                    &mut len,
                )
            };
            if code == ERROR_MORE_DATA {
                bytes.resize(len as usize, 0); // it may grow again in between: asked until it fits
                continue;
            }
            if !found("RegQueryValueExW", code)? {
                return Ok(None);
            }
            bytes.truncate(len as usize);
            return Ok(Some(Value::of(kind, bytes)));
        }
    }

    /// A text; `None` if there is no such value or it holds no text.
    pub fn text(&self, name: &str) -> Result<Option<OsString>> {
        Ok(match self.value(name)? {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        })
    }

    /// A number; `None` if there is no such value or it holds no number.
    pub fn number(&self, name: &str) -> Result<Option<u64>> {
        Ok(match self.value(name)? {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        })
    }

    /// Sets a text.
    pub fn set_text(&self, name: &str, value: &str) -> Result<()> {
        self.set(name, REG_SZ, &bytes_of(value))
    }

    /// Sets a text in which names of variables stand for their values (REG_EXPAND_SZ).
    pub fn set_expandable(&self, name: &str, value: &str) -> Result<()> {
        self.set(name, REG_EXPAND_SZ, &bytes_of(value))
    }

    /// Sets a list of texts.
    pub fn set_texts(&self, name: &str, values: &[&str]) -> Result<()> {
        let units = values.iter().flat_map(wide).chain([0]);
        let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        self.set(name, REG_MULTI_SZ, &bytes)
    }

    /// Sets a number of 32 bits.
    pub fn set_number(&self, name: &str, value: u32) -> Result<()> {
        self.set(name, REG_DWORD, &value.to_le_bytes())
    }

    fn set(&self, name: &str, kind: REG_VALUE_TYPE, bytes: &[u8]) -> Result<()> {
        let name = wide(name);
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        // SAFETY: name and bytes live during the call, `len` says how many bytes there are.
        let code = unsafe { RegSetValueExW(self.0, name.as_ptr(), 0, kind, bytes.as_ptr(), len) };
        check("RegSetValueExW", code)
    }

    /// Names of the keys directly below.
    pub fn keys(&self) -> Result<Vec<OsString>> {
        let mut names = Vec::new();
        let mut buffer = [0_u16; 256]; // a key's name has at most 255 characters
        loop {
            let mut len = 256;
            let at = u32::try_from(names.len()).unwrap_or(u32::MAX);
            // SAFETY: `len` says how many units the buffer has; the rest is not asked for.
            let code = unsafe {
                RegEnumKeyExW(
                    self.0,
                    at,
                    buffer.as_mut_ptr(),
                    &mut len,
                    ptr::null(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                )
            };
            if code == ERROR_NO_MORE_ITEMS {
                return Ok(names);
            }
            check("RegEnumKeyExW", code)?;
            names.push(text(&buffer[..len as usize]));
        }
    }
}

/// Deletes a key with all below it; one that is not there is fine.
pub fn delete(hive: Hive, path: &str) -> Result<()> {
    let path = wide(path);
    // SAFETY: the path ends with a zero.
    let code = unsafe { RegDeleteTreeW(root(hive), path.as_ptr()) };
    found("RegDeleteTreeW", code).map(|_| ())
}

fn bytes_of(text: &str) -> Vec<u8> {
    wide(text).into_iter().flat_map(u16::to_le_bytes).collect()
}

impl Value {
    fn of(kind: REG_VALUE_TYPE, bytes: Vec<u8>) -> Self {
        let units = || -> Vec<u16> {
            let pairs = bytes.chunks_exact(2);
            pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
        };
        match kind {
            REG_SZ | REG_EXPAND_SZ => Self::Text(text(&units())),
            REG_MULTI_SZ => {
                let units = units();
                let texts = units.split(|unit| *unit == 0).filter(|text| !text.is_empty());
                Self::Texts(texts.map(text).collect())
            }
            REG_DWORD | REG_QWORD if bytes.len() <= 8 => {
                let mut number = [0; 8];
                number[..bytes.len()].copy_from_slice(&bytes);
                Self::Number(u64::from_le_bytes(number))
            }
            _ => Self::Other(bytes),
        }
    }
}

fn root(hive: Hive) -> HKEY {
    match hive {
        Hive::Machine => HKEY_LOCAL_MACHINE,
        Hive::User => HKEY_CURRENT_USER,
    }
}

fn found(call: &'static str, code: u32) -> Result<bool> {
    match code {
        ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND => Ok(false),
        code => check(call, code).map(|()| true),
    }
}

fn check(call: &'static str, code: u32) -> Result<()> {
    match code {
        ERROR_SUCCESS => Ok(()),
        code => Err(Error::of(call, code)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A key of its own that goes with the test.
    struct Scratch(String);

    impl Scratch {
        fn new(name: &str) -> Self {
            Self(format!("Software\\Prow test {name} {}", std::process::id()))
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            delete(Hive::User, &self.0).unwrap();
        }
    }

    #[test]
    fn values_come_back_as_they_were_set() {
        let scratch = Scratch::new("values");
        let (key, made) = Key::create(Hive::User, &scratch.0, Life::Boot).unwrap();
        assert!(made);
        key.set_text("text", "grün ☃").unwrap();
        key.set_texts("texts", &["a", "two words"]).unwrap();
        key.set_number("number", u32::MAX).unwrap();
        let long = "x".repeat(3000);
        key.set_text("long", &long).unwrap();
        let key = Key::open(Hive::User, &scratch.0).unwrap().unwrap();
        assert_eq!(key.text("text").unwrap().unwrap(), "grün ☃");
        assert_eq!(key.text("long").unwrap().unwrap(), long.as_str());
        let texts = ["a", "two words"].map(OsString::from).to_vec();
        assert_eq!(key.value("texts").unwrap(), Some(Value::Texts(texts)));
        assert_eq!(key.number("number").unwrap(), Some(u64::from(u32::MAX)));
        assert_eq!(key.number("text").unwrap(), None);
        assert_eq!(key.value("none").unwrap(), None);
    }

    #[test]
    fn keys_below_are_listed_and_go_with_their_parent() {
        let scratch = Scratch::new("keys");
        for name in ["b", "a"] {
            let path = format!("{}\\{name}", scratch.0);
            assert!(Key::create(Hive::User, &path, Life::Lasting).unwrap().1);
            assert!(!Key::create(Hive::User, &path, Life::Lasting).unwrap().1);
        }
        let key = Key::open(Hive::User, &scratch.0).unwrap().unwrap();
        let mut names = key.keys().unwrap();
        names.sort();
        assert_eq!(names, ["a", "b"]);
        delete(Hive::User, &scratch.0).unwrap();
        assert!(Key::open(Hive::User, &scratch.0).unwrap().is_none());
    }
}
