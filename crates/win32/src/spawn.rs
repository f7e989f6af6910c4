//! Starting a process: in its jobs from birth, with exactly the handles it is meant to have.

use crate::{Error, Result, desktop::Desktop, handle::owned, job::Job, process::Process, wide::wide};
use std::{
    ffi::OsStr,
    mem::MaybeUninit,
    os::windows::io::{AsRawHandle, BorrowedHandle, OwnedHandle},
    path::Path,
    ptr,
};
use windows_sys::Win32::{
    Foundation::{DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE},
    System::Threading::{
        CREATE_BREAKAWAY_FROM_JOB, CREATE_NO_WINDOW, CREATE_UNICODE_ENVIRONMENT, CreateProcessW,
        DETACHED_PROCESS, DeleteProcThreadAttributeList, EXTENDED_STARTUPINFO_PRESENT, GetCurrentProcess,
        InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
        PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_INFORMATION, STARTF_USECOUNTCHARS, STARTF_USESTDHANDLES,
        STARTUPINFOEXW, UpdateProcThreadAttribute,
    },
};

/// Columns and rows of a process's own console: what Windows PowerShell wraps tables at.
const CONSOLE: (u32, u32) = (512, 300);

/// The console of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Console {
    /// One of its own that nobody sees.
    Own,
    /// None at all.
    None,
}

/// What to start.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// Absolute path of the program.
    pub program: &'a Path,
    /// Its whole command line, the program's name included, as the program's own parser takes it.
    pub command_line: &'a OsStr,
    /// Its environment as [`crate::environment::block`] makes it; without one it gets that of this process.
    pub environment: Option<&'a [u16]>,
    /// Its current folder.
    pub folder: &'a Path,
    /// Standard input, output and error.
    pub streams: [BorrowedHandle<'a>; 3],
    /// The jobs it is in, outermost first.
    pub jobs: &'a [&'a Job],
    /// Its console.
    pub console: Console,
    /// The desktop of its windows; without one that of this process.
    pub desktop: Option<&'a Desktop>,
    /// Whether it leaves the jobs that this process is in. Refused (5, access denied) where these do not allow it.
    pub leave_jobs: bool,
}

impl Spawn<'_> {
    /// Starts it.
    pub fn start(&self) -> Result<Process> {
        // Inheritable copies live only for the call, so no other call that inherits everything can take them along.
        let mut copies = Vec::new();
        for stream in self.streams {
            copies.push(inheritable(stream)?);
        }
        let handles: Vec<HANDLE> = copies.iter().map(AsRawHandle::as_raw_handle).collect();
        let jobs: Vec<HANDLE> = self.jobs.iter().map(|job| job.raw()).collect();
        let mut attributes = Attributes::new(if jobs.is_empty() { 1 } else { 2 })?;
        // SAFETY: handles and jobs live until the list is gone, and so do what they name.
        unsafe {
            attributes.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST as usize, &handles)?;
            if !jobs.is_empty() {
                attributes.set(PROC_THREAD_ATTRIBUTE_JOB_LIST as usize, &jobs)?;
            }
        }
        let mut startup = STARTUPINFOEXW::default();
        startup.StartupInfo.cb = u32::try_from(size_of::<STARTUPINFOEXW>()).unwrap_or_default();
        startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES | STARTF_USECOUNTCHARS;
        (
            startup.StartupInfo.dwXCountChars,
            startup.StartupInfo.dwYCountChars,
        ) = CONSOLE;
        startup.StartupInfo.hStdInput = handles[0];
        startup.StartupInfo.hStdOutput = handles[1];
        startup.StartupInfo.hStdError = handles[2];
        startup.lpAttributeList = attributes.list();
        let mut desktop = self.desktop.map(|desktop| wide(desktop.name()));
        if let Some(desktop) = &mut desktop {
            startup.StartupInfo.lpDesktop = desktop.as_mut_ptr();
        }

        let mut flags = EXTENDED_STARTUPINFO_PRESENT | CREATE_UNICODE_ENVIRONMENT;
        flags |= match self.console {
            Console::Own => CREATE_NO_WINDOW,
            Console::None => DETACHED_PROCESS,
        };
        if self.leave_jobs {
            flags |= CREATE_BREAKAWAY_FROM_JOB;
        }
        let program = wide(self.program);
        let mut command_line = wide(self.command_line);
        let folder = wide(self.folder);
        let environment = self
            .environment
            .map_or(ptr::null(), |block| block.as_ptr().cast());
        let mut made = PROCESS_INFORMATION::default();
        // SAFETY: all texts end with zeros, the block with two; everything lives during the call. The command line may be written to.
        let started = unsafe {
            CreateProcessW(
                program.as_ptr(),
                command_line.as_mut_ptr(),
                ptr::null(),
                ptr::null(),
                1,
                flags,
                environment,
                folder.as_ptr(),
                &raw const startup.StartupInfo,
                &mut made,
            )
        };
        if started == 0 {
            return Err(Error::last("CreateProcessW"));
        }
        // SAFETY: both were just made, and are ours; the thread's is not needed.
        let (process, _thread) = unsafe {
            (
                owned("CreateProcessW", made.hProcess)?,
                owned("CreateProcessW", made.hThread)?,
            )
        };
        Ok(Process::of(process, made.dwProcessId))
    }
}

/// A copy of a handle that a child can inherit.
fn inheritable(handle: BorrowedHandle<'_>) -> Result<OwnedHandle> {
    let mut copy = ptr::null_mut();
    // SAFETY: the handle is open; the pseudo handle of this process is always valid.
    let made = unsafe {
        let me = GetCurrentProcess();
        DuplicateHandle(
            me,
            handle.as_raw_handle(),
            me,
            &mut copy,
            0,
            1,
            DUPLICATE_SAME_ACCESS,
        )
    };
    if made == 0 {
        return Err(Error::last("DuplicateHandle"));
    }
    // SAFETY: just made, and ours.
    unsafe { owned("DuplicateHandle", copy) }
}

/// A list of attributes for a process to be made.
struct Attributes(Vec<MaybeUninit<usize>>);

impl Attributes {
    fn new(count: u32) -> Result<Self> {
        let mut len = 0;
        // SAFETY: without a list it only tells how long one is; that it "fails" is how it does.
        unsafe { InitializeProcThreadAttributeList(ptr::null_mut(), count, 0, &mut len) };
        let mut list = Self(vec![MaybeUninit::uninit(); len.div_ceil(size_of::<usize>())]);
        // SAFETY: the memory is as long as was asked for, and aligned.
        match unsafe { InitializeProcThreadAttributeList(list.list(), count, 0, &mut len) } {
            0 => {
                let error = Error::last("InitializeProcThreadAttributeList");
                std::mem::forget(list); // there is nothing to delete yet
                Err(error)
            }
            _ => Ok(list),
        }
    }

    fn list(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.0.as_mut_ptr().cast()
    }

    /// Sets an attribute that is a row of handles.
    ///
    /// # Safety
    /// `handles` and what they name live until the list is dropped.
    unsafe fn set(&mut self, attribute: usize, handles: &[HANDLE]) -> Result<()> {
        let len = size_of_val(handles);
        let value = handles.as_ptr().cast();
        // SAFETY: the list is initialised; the rest as promised.
        let set = unsafe {
            UpdateProcThreadAttribute(
                self.list(),
                0,
                attribute,
                value,
                len,
                ptr::null_mut(),
                ptr::null(),
            )
        };
        match set {
            0 => Err(Error::last("UpdateProcThreadAttribute")),
            _ => Ok(()),
        }
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: the list was initialised and is not used any more.
        unsafe { DeleteProcThreadAttributeList(self.list()) };
    }
}
