//! A process, held by a handle: the handle stays that of this process even when its pid is given to another.

use crate::{Error, Result, handle::owned, wide::text};
use std::{
    ffi::OsString,
    os::windows::io::{AsRawHandle, OwnedHandle},
    time::Duration,
};
use windows_sys::Win32::{
    Foundation::{ERROR_INVALID_PARAMETER, FILETIME, HANDLE, WAIT_OBJECT_0, WAIT_TIMEOUT},
    System::{
        JobObjects::IsProcessInJob,
        Threading::{
            GetCurrentProcess, GetExitCodeProcess, GetProcessTimes, INFINITE, OpenProcess,
            PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, PROCESS_TERMINATE,
            QueryFullProcessImageNameW, TerminateProcess, WaitForSingleObject,
        },
    },
};

/// A process, living or ended.
#[derive(Debug)]
pub struct Process {
    handle: OwnedHandle,
    pid: u32,
}

/// When it began and what it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// When it was created, in 100 ns since 1601.
    pub created: u64,
    /// Processor time, of the program and of the kernel for it.
    pub cpu: Duration,
}

impl Process {
    /// Opens a process by its pid, to be watched and ended; `None` if there is none.
    pub fn open(pid: u32) -> Result<Option<Self>> {
        let rights = PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE | PROCESS_TERMINATE;
        // SAFETY: takes no pointers; the handle is not inherited.
        let handle = unsafe { OpenProcess(rights, 0, pid) };
        // SAFETY: just opened, and ours.
        match unsafe { owned("OpenProcess", handle) } {
            Ok(handle) => Ok(Some(Self { handle, pid })),
            Err(error) if error.code == ERROR_INVALID_PARAMETER => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn of(handle: OwnedHandle, pid: u32) -> Self {
        Self { handle, pid }
    }

    /// The same process by another handle.
    pub fn try_clone(&self) -> Result<Self> {
        let code = |e: std::io::Error| e.raw_os_error().unwrap_or_default().cast_unsigned();
        let copy = self.handle.try_clone();
        let handle = copy.map_err(|e| Error::of("DuplicateHandle", code(e)))?;
        Ok(Self {
            handle,
            pid: self.pid,
        })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    fn raw(&self) -> HANDLE {
        self.handle.as_raw_handle()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        // SAFETY: the handle is open.
        unsafe { WaitForSingleObject(self.raw(), 0) != WAIT_TIMEOUT }
    }

    /// Waits for its end, for as long as that takes; its exit code. A code that equals STILL_ACTIVE (259) is one like any other, since it
    /// is read after the wait.
    pub fn wait(&self) -> Result<u32> {
        // SAFETY: the handle is open.
        if unsafe { WaitForSingleObject(self.raw(), INFINITE) } != WAIT_OBJECT_0 {
            return Err(Error::last("WaitForSingleObject"));
        }
        let mut code = 0;
        // SAFETY: the handle is open, `code` takes the result.
        match unsafe { GetExitCodeProcess(self.raw(), &mut code) } {
            0 => Err(Error::last("GetExitCodeProcess")),
            _ => Ok(code),
        }
    }

    /// Ends it, and it alone, with an exit code. One that has ended is fine.
    pub fn terminate(&self, code: u32) -> Result<()> {
        // SAFETY: the handle is open.
        if unsafe { TerminateProcess(self.raw(), code) } == 0 && !self.has_ended() {
            return Err(Error::last("TerminateProcess"));
        }
        Ok(())
    }

    /// When it began and what it used.
    pub fn times(&self) -> Result<Times> {
        let zero = FILETIME {
            dwLowDateTime: 0,
            dwHighDateTime: 0,
        };
        let (mut created, mut exited, mut kernel, mut user) = (zero, zero, zero, zero);
        // SAFETY: the handle is open, the pointers are to live variables.
        let told = unsafe { GetProcessTimes(self.raw(), &mut created, &mut exited, &mut kernel, &mut user) };
        if told == 0 {
            return Err(Error::last("GetProcessTimes"));
        }
        let ticks = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Ok(Times {
            created: ticks(created),
            cpu: Duration::from_nanos((ticks(kernel) + ticks(user)) * 100),
        })
    }

    /// The path of its program.
    pub fn image(&self) -> Result<OsString> {
        let mut buffer = vec![0; 32_768];
        let mut len = 32_768;
        // SAFETY: the handle is open, `len` says how many units the buffer has.
        match unsafe { QueryFullProcessImageNameW(self.raw(), 0, buffer.as_mut_ptr(), &mut len) } {
            0 => Err(Error::last("QueryFullProcessImageNameW")),
            _ => Ok(text(&buffer)),
        }
    }
}

/// Whether this process is in a job, which may end it with others.
pub fn is_in_job() -> Result<bool> {
    let mut inside = 0;
    // SAFETY: the pseudo handle of this process is always valid; no job means any.
    match unsafe { IsProcessInJob(GetCurrentProcess(), std::ptr::null_mut(), &mut inside) } {
        0 => Err(Error::last("IsProcessInJob")),
        _ => Ok(inside != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn this_process_lives_and_has_its_facts() {
        let me = Process::open(std::process::id()).unwrap().unwrap();
        assert!(!me.has_ended());
        let image = me.image().unwrap().to_string_lossy().to_lowercase();
        let exe = std::env::current_exe().unwrap().to_string_lossy().to_lowercase();
        assert_eq!(image, exe);
        let again = Process::open(std::process::id()).unwrap().unwrap();
        assert_eq!(me.times().unwrap().created, again.times().unwrap().created);
    }

    #[test]
    fn a_pid_of_nobody_is_none() {
        assert!(Process::open(0xFFFF_FFF0).unwrap().is_none());
    }

    #[test]
    fn exit_codes_keep_all_their_bits() {
        for code in [0_u32, 259, 3010, 0xC000_0005, u32::MAX] {
            let mut command = std::process::Command::new("cmd.exe");
            command
                .args(["/d", "/c", "pause"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null());
            let mut child = command.spawn().unwrap();
            let process = Process::open(child.id()).unwrap().unwrap();
            process.terminate(code).unwrap();
            assert_eq!(process.wait().unwrap(), code);
            assert!(process.has_ended());
            process.terminate(1).unwrap(); // again is fine
            child.wait().unwrap();
        }
    }
}
