//! Job objects: processes held together from their birth, ended as one.
//!
//! A process that is in several nested jobs was put into them by [`crate::spawn`] in one call, outermost first, so there is no moment in
//! which it could start something outside.

use crate::{Error, Result, handle::owned, security::Descriptor, wide::wide};
use std::{
    os::windows::io::{AsRawHandle, OwnedHandle},
    ptr,
    time::Duration,
};
use windows_sys::Win32::{
    Foundation::{ERROR_FILE_NOT_FOUND, ERROR_MORE_DATA, HANDLE},
    System::{
        JobObjects::{
            CreateJobObjectW, JOB_OBJECT_CPU_RATE_CONTROL_ENABLE, JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
            JOB_OBJECT_LIMIT_BREAKAWAY_OK, JOB_OBJECT_LIMIT_JOB_MEMORY, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
            JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_BASIC_PROCESS_ID_LIST,
            JOBOBJECT_CPU_RATE_CONTROL_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JOBOBJECTINFOCLASS,
            JobObjectBasicAccountingInformation, JobObjectBasicProcessIdList,
            JobObjectCpuRateControlInformation, JobObjectExtendedLimitInformation, OpenJobObjectW,
            QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
        },
        SystemServices::{JOB_OBJECT_QUERY, JOB_OBJECT_TERMINATE},
    },
};

/// A job.
#[derive(Debug)]
pub struct Job(OwnedHandle);

/// What holds for the processes of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// They may start processes outside of this job. Those stay in the jobs around it.
    pub break_away: bool,
    /// How many bytes they may commit together.
    pub memory: Option<u64>,
    /// Which share of the host's processors they may use together, in hundredths of a per cent, from 1 to 10,000.
    pub cpu_rate: Option<u32>,
}

/// What the processes of a job used, those that ended included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time, of programs and of the kernel for them.
    pub cpu: Duration,
    /// The most that they had committed together, in bytes.
    pub peak_memory: u64,
}

impl Job {
    /// Makes a job whose processes end when its last handle is closed, also by the death of the process that holds it. With a name other
    /// processes can open it as the descriptor allows; the name must be new. A rule that cannot be set is an error.
    pub fn create(name: Option<(&str, &Descriptor)>, rules: Rules) -> Result<Self> {
        let attributes = name.map(|(_, descriptor)| descriptor.attributes());
        let attributes = attributes.as_ref().map_or(ptr::null(), ptr::from_ref);
        let name = name.map(|(name, _)| wide(name));
        let name = name.as_ref().map_or(ptr::null(), |name| name.as_ptr());
        // SAFETY: attributes, their descriptor and the name live during the call.
        let handle = unsafe { CreateJobObjectW(attributes, name) };
        // SAFETY: just made, and ours.
        let job = Self(unsafe { owned("CreateJobObjectW", handle) }?);
        job.rule(rules)?;
        Ok(job)
    }

    /// Opens a job by its name, to be looked at and ended; `None` if there is none.
    pub fn open(name: &str) -> Result<Option<Self>> {
        let name = wide(name);
        // SAFETY: the name ends with a zero; the handle is not inherited.
        let handle = unsafe { OpenJobObjectW(JOB_OBJECT_QUERY | JOB_OBJECT_TERMINATE, 0, name.as_ptr()) };
        // SAFETY: just opened, and ours.
        match unsafe { owned("OpenJobObjectW", handle) } {
            Ok(handle) => Ok(Some(Self(handle))),
            Err(error) if error.code == ERROR_FILE_NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn raw(&self) -> HANDLE {
        self.0.as_raw_handle()
    }

    fn rule(&self, rules: Rules) -> Result<()> {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        let flags = &mut limits.BasicLimitInformation.LimitFlags;
        *flags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        if rules.break_away {
            *flags |= JOB_OBJECT_LIMIT_BREAKAWAY_OK;
        }
        if let Some(bytes) = rules.memory {
            *flags |= JOB_OBJECT_LIMIT_JOB_MEMORY;
            limits.JobMemoryLimit = usize::try_from(bytes).unwrap_or(usize::MAX);
        }
        self.set(JobObjectExtendedLimitInformation, &limits)?;
        if let Some(rate) = rules.cpu_rate {
            let mut control = JOBOBJECT_CPU_RATE_CONTROL_INFORMATION {
                ControlFlags: JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP,
                ..Default::default()
            };
            control.Anonymous.CpuRate = rate;
            self.set(JobObjectCpuRateControlInformation, &control)?;
        }
        Ok(())
    }

    fn set<T>(&self, class: JOBOBJECTINFOCLASS, value: &T) -> Result<()> {
        let len = u32::try_from(size_of::<T>()).unwrap_or_default();
        // SAFETY: the handle is open, `value` is of the type that belongs to the class and lives during the call.
        match unsafe { SetInformationJobObject(self.raw(), class, ptr::from_ref(value).cast(), len) } {
            0 => Err(Error::last("SetInformationJobObject")),
            _ => Ok(()),
        }
    }

    fn query<T: Default>(&self, class: JOBOBJECTINFOCLASS) -> Result<T> {
        let mut value = T::default();
        let len = u32::try_from(size_of::<T>()).unwrap_or_default();
        let to = ptr::from_mut(&mut value).cast();
        // SAFETY: the handle is open, `value` is of the type that belongs to the class.
        match unsafe { QueryInformationJobObject(self.raw(), class, to, len, ptr::null_mut()) } {
            0 => Err(Error::last("QueryInformationJobObject")),
            _ => Ok(value),
        }
    }

    /// The pids of its living processes, those of jobs inside it included.
    pub fn pids(&self) -> Result<Vec<u32>> {
        let header = size_of::<JOBOBJECT_BASIC_PROCESS_ID_LIST>();
        let mut room = 64;
        loop {
            let mut buffer = vec![0_usize; header / size_of::<usize>() + room];
            let len = u32::try_from(size_of_val(buffer.as_slice())).unwrap_or(u32::MAX);
            let to = buffer.as_mut_ptr().cast();
            // SAFETY: the handle is open, `len` says how large the buffer is; it is aligned as its entries are.
            let told = unsafe {
                QueryInformationJobObject(self.raw(), JobObjectBasicProcessIdList, to, len, ptr::null_mut())
            };
            if told == 0 {
                let error = Error::last("QueryInformationJobObject");
                if error.code == ERROR_MORE_DATA && room < 1 << 20 {
                    room *= 4;
                    continue;
                }
                return Err(error);
            }
            let list = buffer.as_ptr().cast::<JOBOBJECT_BASIC_PROCESS_ID_LIST>();
            // SAFETY: the call has filled the head and so many entries behind it.
            let pids = unsafe {
                let count = (*list).NumberOfProcessIdsInList as usize;
                std::slice::from_raw_parts((&raw const (*list).ProcessIdList).cast::<usize>(), count)
            };
            return Ok(pids
                .iter()
                .map(|pid| u32::try_from(*pid).unwrap_or_default())
                .collect());
        }
    }

    /// Ends all of its processes with an exit code. That takes a moment, and is not over when this returns.
    pub fn terminate(&self, code: u32) -> Result<()> {
        // SAFETY: the handle is open.
        match unsafe { TerminateJobObject(self.raw(), code) } {
            0 => Err(Error::last("TerminateJobObject")),
            _ => Ok(()),
        }
    }

    /// What its processes used.
    pub fn usage(&self) -> Result<Usage> {
        let times: JOBOBJECT_BASIC_ACCOUNTING_INFORMATION =
            self.query(JobObjectBasicAccountingInformation)?;
        let limits: JOBOBJECT_EXTENDED_LIMIT_INFORMATION = self.query(JobObjectExtendedLimitInformation)?;
        let ticks = (times.TotalUserTime + times.TotalKernelTime).unsigned_abs();
        Ok(Usage {
            cpu: Duration::from_nanos(ticks * 100),
            peak_memory: limits.PeakJobMemoryUsed as u64,
        })
    }
}
