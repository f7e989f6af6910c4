//! A desktop of one's own: windows on it see, and can send messages to, each other alone.

use crate::{Error, Result, security::Descriptor, wide::wide};
use std::ptr;
use windows_sys::Win32::{
    Foundation::GENERIC_ALL,
    System::StationsAndDesktops::{
        CloseDesktop, CloseWindowStation, CreateDesktopW, CreateWindowStationW, GetProcessWindowStation,
        HDESK, HWINSTA, SetProcessWindowStation,
    },
};

/// A window station with one desktop. It is gone when this is dropped and the last process on it has ended.
#[derive(Debug)]
pub struct Desktop {
    station: HWINSTA,
    desktop: HDESK,
    name: String,
}

// SAFETY: handles of stations and desktops belong to the process, not to a thread.
unsafe impl Send for Desktop {}
// SAFETY: nothing is done with them but closing.
unsafe impl Sync for Desktop {}

impl Drop for Desktop {
    fn drop(&mut self) {
        // SAFETY: both are open and ours, and no thread of ours is on them.
        unsafe {
            CloseDesktop(self.desktop);
            CloseWindowStation(self.station);
        }
    }
}

impl Desktop {
    /// Makes a station of this name, which must be new, for those whom the descriptor names. While it is made, other threads of this
    /// process must not start anything that has windows.
    pub fn create(name: &str, descriptor: &Descriptor) -> Result<Self> {
        let attributes = descriptor.attributes();
        let station_name = wide(name);
        // SAFETY: the name ends with a zero; attributes and their descriptor live during the call.
        let station = unsafe { CreateWindowStationW(station_name.as_ptr(), 0, GENERIC_ALL, &attributes) };
        if station.is_null() {
            return Err(Error::last("CreateWindowStationW"));
        }
        let desktop_name = wide("default");
        // A desktop is made on the station that the process is on.
        // SAFETY: the handles are open; the name ends with a zero; attributes and descriptor live during the calls.
        let made = unsafe {
            let before = GetProcessWindowStation();
            if SetProcessWindowStation(station) == 0 {
                Err(Error::last("SetProcessWindowStation"))
            } else {
                let desktop = CreateDesktopW(
                    desktop_name.as_ptr(),
                    ptr::null(),
                    ptr::null(),
                    0,
                    GENERIC_ALL,
                    &attributes,
                );
                let made = if desktop.is_null() {
                    Err(Error::last("CreateDesktopW"))
                } else {
                    Ok(desktop)
                };
                SetProcessWindowStation(before);
                made
            }
        };
        match made {
            Ok(desktop) => Ok(Self {
                station,
                desktop,
                name: format!(r"{name}\default"),
            }),
            Err(error) => {
                // SAFETY: open, ours, and not used again.
                unsafe { CloseWindowStation(station) };
                Err(error)
            }
        }
    }

    /// What a process is started on it by.
    pub fn name(&self) -> &str {
        &self.name
    }
}
