//! An open folder. What lies in it is reached through the handle and never through a link, so that nothing that is put in the way,
//! before or meanwhile, leads elsewhere.
//!
//! A link is a name surrogate: a symbolic link, a junction, a mounted volume. Source: Reparse Point Tags of the Win32 documentation.

use crate::{
    Error, Result,
    handle::owned,
    path,
    security::Descriptor,
    wide::{text, wide},
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    mem::offset_of,
    os::windows::{
        ffi::OsStrExt,
        io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle},
    },
    path::Path,
    ptr,
};
use windows_sys::{
    Wdk::{
        Foundation::OBJECT_ATTRIBUTES,
        Storage::FileSystem::{
            FILE_CREATE, FILE_DIRECTORY_FILE, FILE_NON_DIRECTORY_FILE, FILE_OPEN,
            FILE_OPEN_FOR_BACKUP_INTENT, FILE_OPEN_IF, FILE_OPEN_REPARSE_POINT, FILE_SYNCHRONOUS_IO_NONALERT,
            NTCREATEFILE_CREATE_DISPOSITION, NTCREATEFILE_CREATE_OPTIONS, NtCreateFile,
        },
    },
    Win32::{
        Foundation::{
            ERROR_DIRECTORY, ERROR_FILE_NOT_FOUND, ERROR_INVALID_FUNCTION, ERROR_INVALID_NAME,
            ERROR_INVALID_PARAMETER, ERROR_NO_MORE_FILES, ERROR_NOT_SUPPORTED, ERROR_PATH_NOT_FOUND,
            ERROR_STOPPED_ON_SYMLINK, OBJ_CASE_INSENSITIVE, RtlNtStatusToDosError, UNICODE_STRING,
        },
        Storage::FileSystem::{
            CreateDirectoryW, CreateFileW, DELETE, FILE_ACCESS_RIGHTS, FILE_ATTRIBUTE_DIRECTORY,
            FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_REPARSE_POINT,
            FILE_ATTRIBUTE_TAG_INFO, FILE_BASIC_INFO, FILE_DISPOSITION_FLAG_DELETE,
            FILE_DISPOSITION_FLAG_IGNORE_READONLY_ATTRIBUTE, FILE_DISPOSITION_FLAG_POSIX_SEMANTICS,
            FILE_DISPOSITION_INFO, FILE_DISPOSITION_INFO_EX, FILE_FLAG_BACKUP_SEMANTICS,
            FILE_FLAG_OPEN_REPARSE_POINT, FILE_GENERIC_WRITE, FILE_ID_BOTH_DIR_INFO,
            FILE_INFO_BY_HANDLE_CLASS, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES, FILE_SHARE_DELETE,
            FILE_SHARE_READ, FILE_SHARE_WRITE, FILE_TRAVERSE, FILE_WRITE_ATTRIBUTES, FileAttributeTagInfo,
            FileBasicInfo, FileDispositionInfo, FileDispositionInfoEx, FileIdBothDirectoryInfo,
            GetFileInformationByHandleEx, OPEN_EXISTING, READ_CONTROL, SYNCHRONIZE,
            SetFileInformationByHandle, WRITE_DAC,
        },
        System::IO::IO_STATUS_BLOCK,
    },
};

const SHARE_ALL: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
const LOOK: u32 = FILE_LIST_DIRECTORY | FILE_TRAVERSE | FILE_READ_ATTRIBUTES | SYNCHRONIZE;
/// Says that a reparse point stands for something elsewhere.
const NAME_SURROGATE: u32 = 0x2000_0000;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file, or a link to one.
    File,
    /// A folder.
    Folder,
    /// A link to a folder.
    Link,
}

/// An open folder, which is no link.
#[derive(Debug)]
pub struct Folder(OwnedHandle);

impl AsHandle for Folder {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.0.as_handle()
    }
}

impl Folder {
    /// Opens a folder. A link is an error: `ERROR_STOPPED_ON_SYMLINK`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, LOOK | READ_CONTROL)
    }

    /// The same with the right to change who may use it.
    pub fn open_to_stamp(path: &Path) -> Result<Self> {
        Self::open_with(path, LOOK | READ_CONTROL | WRITE_DAC)
    }

    fn open_with(path: &Path, access: FILE_ACCESS_RIGHTS) -> Result<Self> {
        let path = wide(long(path)?);
        // SAFETY: the path ends with a zero; a null descriptor and template are allowed.
        let handle = unsafe {
            CreateFileW(
                path.as_ptr(),
                access,
                SHARE_ALL,
                ptr::null(),
                OPEN_EXISTING,
                FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT,
                ptr::null_mut(),
            )
        };
        // SAFETY: just opened, and ours.
        Self::checked("CreateFileW", unsafe { owned("CreateFileW", handle) }?)
    }

    fn checked(call: &'static str, handle: OwnedHandle) -> Result<Self> {
        match kind_of(&handle)? {
            Kind::Folder => Ok(Self(handle)),
            Kind::Link => Err(Error::of(call, ERROR_STOPPED_ON_SYMLINK)),
            Kind::File => Err(Error::of(call, ERROR_DIRECTORY)),
        }
    }

    /// Makes a folder that is not there yet; its parent must be.
    pub fn create(path: &Path, descriptor: &Descriptor) -> Result<()> {
        let path = wide(long(path)?);
        let attributes = descriptor.attributes();
        // SAFETY: path and attributes live during the call.
        match unsafe { CreateDirectoryW(path.as_ptr(), &attributes) } {
            0 => Err(Error::last("CreateDirectoryW")),
            _ => Ok(()),
        }
    }

    /// Opens a folder in this one. A link is an error: `ERROR_STOPPED_ON_SYMLINK`.
    pub fn folder(&self, name: &OsStr) -> Result<Self> {
        Self::checked(
            "NtCreateFile",
            self.at(name, LOOK, FILE_OPEN, FILE_DIRECTORY_FILE, None)?,
        )
    }

    /// The same, made if there is none.
    pub fn folder_or_new(&self, name: &OsStr) -> Result<Self> {
        Self::checked(
            "NtCreateFile",
            self.at(name, LOOK, FILE_OPEN_IF, FILE_DIRECTORY_FILE, None)?,
        )
    }

    /// Makes a file that is not there yet.
    pub fn create_file(&self, name: &OsStr, descriptor: &Descriptor) -> Result<File> {
        let access = FILE_GENERIC_WRITE | SYNCHRONIZE;
        let file = self.at(
            name,
            access,
            FILE_CREATE,
            FILE_NON_DIRECTORY_FILE,
            Some(descriptor),
        )?;
        Ok(file.into())
    }

    /// Removes a file, an empty folder or a link (not what it leads to), also one that is read-only. Nothing there is fine.
    pub fn remove(&self, name: &OsStr) -> Result<()> {
        let access = DELETE | FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES | SYNCHRONIZE;
        match self.at(name, access, FILE_OPEN, 0, None) {
            Ok(file) => delete(&file),
            Err(error) if matches!(error.code, ERROR_FILE_NOT_FOUND | ERROR_PATH_NOT_FOUND) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What lies in it.
    pub fn entries(&self) -> Result<Vec<(OsString, Kind)>> {
        let mut found = Vec::new();
        let mut buffer = vec![0_u64; 8 << 10]; // aligned for the records
        while self.fill(&mut buffer)? {
            // SAFETY: the call has put a chain of records into the buffer, each with its length and the distance to the next.
            unsafe {
                let mut record = buffer.as_ptr().cast::<u8>();
                loop {
                    let info = record.cast::<FILE_ID_BOTH_DIR_INFO>();
                    let name = record
                        .add(offset_of!(FILE_ID_BOTH_DIR_INFO, FileName))
                        .cast::<u16>();
                    let name = text(std::slice::from_raw_parts(
                        name,
                        (*info).FileNameLength as usize / 2,
                    ));
                    if name != "." && name != ".." {
                        // of a reparse point this field holds the tag
                        found.push((name, kind((*info).FileAttributes, (*info).EaSize)));
                    }
                    match (*info).NextEntryOffset {
                        0 => break,
                        distance => record = record.add(distance as usize),
                    }
                }
            }
        }
        Ok(found)
    }

    /// The next records of the listing, which begins anew with each open; tells whether there were any.
    fn fill(&self, buffer: &mut [u64]) -> Result<bool> {
        let len = u32::try_from(size_of_val(buffer)).unwrap_or_default();
        // SAFETY: the handle is open, `len` says how large the buffer is.
        let filled = unsafe {
            GetFileInformationByHandleEx(
                self.0.as_raw_handle(),
                FileIdBothDirectoryInfo,
                buffer.as_mut_ptr().cast(),
                len,
            )
        };
        if filled != 0 {
            return Ok(true);
        }
        match Error::last("GetFileInformationByHandleEx") {
            error if error.code == ERROR_NO_MORE_FILES => Ok(false),
            error => Err(error),
        }
    }

    /// Opens or makes a name of this very folder.
    fn at(
        &self,
        name: &OsStr,
        access: FILE_ACCESS_RIGHTS,
        disposition: NTCREATEFILE_CREATE_DISPOSITION,
        options: NTCREATEFILE_CREATE_OPTIONS,
        descriptor: Option<&Descriptor>,
    ) -> Result<OwnedHandle> {
        let mut name: Vec<u16> = name.encode_wide().collect();
        // a colon would name a stream of a file, a slash a path
        let odd = |unit: &u16| matches!(*unit, 0 | 0x2f | 0x3a | 0x5c);
        let bytes = u16::try_from(name.len() * 2).unwrap_or(u16::MAX);
        if name.is_empty() || name.len() > 255 || name.iter().any(odd) {
            return Err(Error::of("NtCreateFile", ERROR_INVALID_NAME));
        }
        let name = UNICODE_STRING {
            Length: bytes,
            MaximumLength: bytes,
            Buffer: name.as_mut_ptr(),
        };
        let attributes = OBJECT_ATTRIBUTES {
            Length: u32::try_from(size_of::<OBJECT_ATTRIBUTES>()).unwrap_or_default(),
            RootDirectory: self.0.as_raw_handle(),
            ObjectName: &name,
            Attributes: OBJ_CASE_INSENSITIVE,
            SecurityDescriptor: descriptor.map_or(ptr::null(), |d| d.as_ptr().cast_const().cast()),
            SecurityQualityOfService: ptr::null(),
        };
        let mut handle = ptr::null_mut();
        let mut status = IO_STATUS_BLOCK::default();
        let always = FILE_OPEN_REPARSE_POINT | FILE_OPEN_FOR_BACKUP_INTENT | FILE_SYNCHRONOUS_IO_NONALERT;
        // SAFETY: all that the attributes point to lives during the call; `handle` and `status` take the results.
        let code = unsafe {
            NtCreateFile(
                &mut handle,
                access,
                &attributes,
                &mut status,
                ptr::null(),
                FILE_ATTRIBUTE_NORMAL,
                SHARE_ALL,
                disposition,
                options | always,
                ptr::null(),
                0,
            )
        };
        if code < 0 {
            // SAFETY: it only looks the code up.
            return Err(Error::of("NtCreateFile", unsafe { RtlNtStatusToDosError(code) }));
        }
        // SAFETY: just opened, and ours.
        unsafe { owned("NtCreateFile", handle) }
    }
}

fn long(path: &Path) -> Result<std::path::PathBuf> {
    let code = |e: io::Error| e.raw_os_error().map_or(ERROR_INVALID_NAME, i32::cast_unsigned);
    path::long(path).map_err(|e| Error::of("GetFullPathNameW", code(e)))
}

fn kind_of(file: &OwnedHandle) -> Result<Kind> {
    let mut info = FILE_ATTRIBUTE_TAG_INFO::default();
    let len = u32::try_from(size_of_val(&info)).unwrap_or_default();
    // SAFETY: the handle is open, `len` is the size of `info`.
    let told = unsafe {
        GetFileInformationByHandleEx(
            file.as_raw_handle(),
            FileAttributeTagInfo,
            (&raw mut info).cast(),
            len,
        )
    };
    match told {
        0 => Err(Error::last("GetFileInformationByHandleEx")),
        _ => Ok(kind(info.FileAttributes, info.ReparseTag)),
    }
}

fn kind(attributes: u32, tag: u32) -> Kind {
    if attributes & FILE_ATTRIBUTE_DIRECTORY == 0 {
        Kind::File
    } else if attributes & FILE_ATTRIBUTE_REPARSE_POINT != 0 && tag & NAME_SURROGATE != 0 {
        Kind::Link
    } else {
        Kind::Folder // also a folder kept in a cloud, whose content is its own
    }
}

/// Deletes an open file by its handle: at once where the file system can, else when its last handle closes.
fn delete(file: &OwnedHandle) -> Result<()> {
    let at_once = FILE_DISPOSITION_INFO_EX {
        Flags: FILE_DISPOSITION_FLAG_DELETE
            | FILE_DISPOSITION_FLAG_POSIX_SEMANTICS
            | FILE_DISPOSITION_FLAG_IGNORE_READONLY_ATTRIBUTE,
    };
    match set(file, FileDispositionInfoEx, &at_once) {
        // FAT, network shares of other makers, Wine
        Err(e)
            if matches!(
                e.code,
                ERROR_INVALID_PARAMETER | ERROR_NOT_SUPPORTED | ERROR_INVALID_FUNCTION
            ) => {}
        other => return other,
    }
    let mut basic = FILE_BASIC_INFO::default();
    let len = u32::try_from(size_of_val(&basic)).unwrap_or_default();
    // SAFETY: the handle is open, `len` is the size of `basic`.
    let told = unsafe {
        GetFileInformationByHandleEx(file.as_raw_handle(), FileBasicInfo, (&raw mut basic).cast(), len)
    };
    if told != 0 && basic.FileAttributes & FILE_ATTRIBUTE_READONLY != 0 {
        basic.FileAttributes = (basic.FileAttributes & !FILE_ATTRIBUTE_READONLY) | FILE_ATTRIBUTE_NORMAL;
        set(file, FileBasicInfo, &basic)?;
    }
    set(
        file,
        FileDispositionInfo,
        &FILE_DISPOSITION_INFO { DeleteFile: true },
    )
}

fn set<T>(file: &OwnedHandle, class: FILE_INFO_BY_HANDLE_CLASS, info: &T) -> Result<()> {
    let len = u32::try_from(size_of::<T>()).unwrap_or_default();
    // SAFETY: the handle is open; `info` is the structure of this class.
    match unsafe { SetFileInformationByHandle(file.as_raw_handle(), class, ptr::from_ref(info).cast(), len) }
    {
        0 => Err(Error::last("SetFileInformationByHandle")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Folder) -> Vec<(String, Kind)> {
        let mut names: Vec<_> = folder
            .entries()
            .unwrap()
            .into_iter()
            .map(|(name, kind)| (name.into_string().unwrap(), kind))
            .collect();
        names.sort_by(|a, b| a.0.cmp(&b.0));
        names
    }

    #[test]
    fn what_is_made_is_listed_and_goes() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path()).unwrap();
        folder.folder_or_new("sub".as_ref()).unwrap();
        folder.folder_or_new("sub".as_ref()).unwrap();
        let private = Descriptor::private().unwrap();
        let mut file = folder.create_file("ä".as_ref(), &private).unwrap();
        file.write_all(b"x").unwrap();
        drop(file);
        assert!(
            folder.create_file("ä".as_ref(), &private).is_err(),
            "one that is there is not opened"
        );
        let listed = [("sub".to_owned(), Kind::Folder), ("ä".to_owned(), Kind::File)];
        assert_eq!(names(&Folder::open(root.path()).unwrap()), listed);
        folder.remove("ä".as_ref()).unwrap();
        folder.remove("sub".as_ref()).unwrap();
        folder.remove("never".as_ref()).unwrap();
        assert!(names(&Folder::open(root.path()).unwrap()).is_empty());
    }

    #[test]
    fn a_long_listing_is_whole() {
        let root = tempfile::tempdir().unwrap();
        for n in 0..1500 {
            std::fs::write(root.path().join(format!("{n:04}-{}", "x".repeat(40))), "").unwrap();
        }
        assert_eq!(Folder::open(root.path()).unwrap().entries().unwrap().len(), 1500);
    }

    #[test]
    fn a_name_is_no_path() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::open(root.path()).unwrap();
        for name in ["", r"a\b", "a/b", "a:b", r"..\x", &"x".repeat(300)] {
            let error = folder.folder_or_new(name.as_ref()).unwrap_err();
            assert_eq!(error.code, ERROR_INVALID_NAME, "{name}");
        }
    }

    #[test]
    fn a_file_is_no_folder() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "").unwrap();
        assert!(Folder::open(&root.path().join("file")).is_err());
        assert!(
            Folder::open(root.path())
                .unwrap()
                .folder("file".as_ref())
                .is_err()
        );
    }

    #[test]
    fn a_read_only_file_goes() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        std::fs::write(&path, "").unwrap();
        let mut permissions = path.metadata().unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&path, permissions).unwrap();
        Folder::open(root.path())
            .unwrap()
            .remove("file".as_ref())
            .unwrap();
        assert!(!path.exists());
    }

    /// AP-05: which reparse points are links is the logic; real junctions are not to be had under Wine.
    #[test]
    fn links_are_told_from_folders_by_their_tag() {
        let reparse = FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT;
        assert_eq!(kind(reparse, 0xA000_0003), Kind::Link, "junction, mounted volume");
        assert_eq!(kind(reparse, 0xA000_000C), Kind::Link, "symbolic link");
        assert_eq!(kind(reparse, 0x9000_001A), Kind::Folder, "cloud files");
        assert_eq!(kind(FILE_ATTRIBUTE_DIRECTORY, 0), Kind::Folder);
        assert_eq!(
            kind(FILE_ATTRIBUTE_REPARSE_POINT, 0xA000_000C),
            Kind::File,
            "removed as itself"
        );
    }
}
