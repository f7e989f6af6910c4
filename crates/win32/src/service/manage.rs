//! Making, changing, starting, stopping and removing a service.

use super::of;
use crate::{Error, Result, system::is_wine, wide::wide};
use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    ptr,
    time::{Duration, Instant},
};
use windows_service::{
    service::{
        self, ServiceAccess, ServiceAction, ServiceActionType, ServiceErrorControl, ServiceExitCode,
        ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo, ServiceSidType, ServiceStartType,
        ServiceState, ServiceType, UserEventCode,
    },
    service_manager::{ServiceManager, ServiceManagerAccess},
};
use windows_sys::Win32::{
    Foundation::{
        ERROR_INVALID_LEVEL, ERROR_INVALID_PARAMETER, ERROR_SERVICE_DOES_NOT_EXIST, ERROR_SERVICE_NOT_ACTIVE,
    },
    System::Services::{
        ChangeServiceConfigW, QueryServiceConfig2W, SERVICE_CONFIG_PRESHUTDOWN_INFO, SERVICE_NO_CHANGE,
        SERVICE_PRESHUTDOWN_INFO,
    },
};

/// Between looks at a service's state: to be called back takes an alertable thread, and nobody waits for it often.
const LOOK: Duration = Duration::from_millis(50);
/// Failures are forgotten after so long without one.
const FORGIVE: Duration = Duration::from_secs(3600);

/// A service as it is to be.
#[derive(Clone, Debug)]
pub struct Config {
    /// The name it is known by.
    pub name: String,
    /// The name people see.
    pub display_name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Its program; quoted in the ImagePath, so that a space in it does not run another one.
    pub program: PathBuf,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// Its account; LocalSystem if none. One with a password is not for us.
    pub account: Option<String>,
    /// How long the host waits for it when it goes down.
    pub preshutdown: Duration,
    /// How long after the first, second, ... failure it is started again; the last counts for all after it. An exit code that is not 0 is a
    /// failure as well.
    pub restart_after: Vec<Duration>,
}

/// In which state a service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Ended, or never started.
    Stopped,
    /// On its way up.
    Starting,
    /// On its way down.
    Stopping,
    /// Running.
    Running,
    /// Paused, or on the way there or back.
    Paused,
}

/// How a service is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its state.
    pub state: State,
    /// Its process.
    pub pid: Option<u32>,
    /// How it ended last: 0, a code of its own, or a Win32 error such as 1077 (never started).
    pub exit_code: u32,
}

/// A service that is there.
pub struct Service(service::Service);

impl Service {
    /// Opens one to ask it; `None` if there is none.
    pub fn open(name: &str) -> Result<Option<Self>> {
        open(name, ServiceAccess::QUERY_STATUS | ServiceAccess::QUERY_CONFIG)
    }

    /// Opens one to change it, which takes an administrator; `None` if there is none.
    pub fn open_to_manage(name: &str) -> Result<Option<Self>> {
        open(name, ServiceAccess::ALL_ACCESS)
    }

    /// Makes it, or makes one that is there like this; also tells whether it was made.
    pub fn install(config: &Config) -> Result<(Self, bool)> {
        let info = ServiceInfo {
            name: config.name.clone().into(),
            display_name: config.display_name.clone().into(),
            service_type: ServiceType::OWN_PROCESS,
            start_type: ServiceStartType::AutoStart,
            error_control: ServiceErrorControl::Normal,
            executable_path: config.program.clone(),
            launch_arguments: config.arguments.clone(),
            dependencies: Vec::new(),
            account_name: Some(
                config
                    .account
                    .clone()
                    .unwrap_or_else(|| "LocalSystem".to_owned())
                    .into(),
            ),
            account_password: None,
        };
        let (service, made) = match Self::open_to_manage(&config.name)? {
            Some(service) => {
                service
                    .0
                    .change_config(&info)
                    .map_err(of("ChangeServiceConfigW"))?;
                (service, false)
            }
            None => {
                let made = manager(ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE)?
                    .create_service(&info, ServiceAccess::ALL_ACCESS);
                (Self(made.map_err(of("CreateServiceW"))?), true)
            }
        };
        match service.configure(config) {
            Err(error) if made => {
                let _ = service.delete(); // half of a service is worse than none; the first error tells more
                Err(error)
            }
            result => result.map(|()| (service, made)),
        }
    }

    fn configure(&self, config: &Config) -> Result<()> {
        let actions = config.restart_after.iter().map(|delay| ServiceAction {
            action_type: ServiceActionType::Restart,
            delay: *delay,
        });
        let failure = ServiceFailureActions {
            reset_period: ServiceFailureResetPeriod::After(FORGIVE),
            reboot_msg: None,
            command: None,
            actions: Some(actions.collect()),
        };
        let service = &self.0;
        let described = service.set_description(&config.description);
        described.map_err(of("ChangeServiceConfig2W, description"))?;
        let limited = service.set_preshutdown_timeout(config.preshutdown);
        limited.map_err(of("ChangeServiceConfig2W, preshutdown limit"))?;
        let acts = service.update_failure_actions(failure);
        known_to_windows(acts.map_err(of("ChangeServiceConfig2W, failure actions")))?;
        let flagged = service.set_failure_actions_on_non_crash_failures(true);
        known_to_windows(flagged.map_err(of("ChangeServiceConfig2W, failure actions flag")))?;
        let known = service.set_config_service_sid_info(ServiceSidType::Unrestricted);
        known_to_windows(known.map_err(of("ChangeServiceConfig2W, service SID")))
    }

    /// How it is doing.
    pub fn status(&self) -> Result<Status> {
        let status = self.0.query_status().map_err(of("QueryServiceStatusEx"))?;
        Ok(Status {
            state: match status.current_state {
                ServiceState::Stopped => State::Stopped,
                ServiceState::StartPending => State::Starting,
                ServiceState::StopPending => State::Stopping,
                ServiceState::Running => State::Running,
                ServiceState::ContinuePending | ServiceState::PausePending | ServiceState::Paused => {
                    State::Paused
                }
            },
            pid: status.process_id.filter(|pid| *pid != 0),
            exit_code: match status.exit_code {
                ServiceExitCode::Win32(code) | ServiceExitCode::ServiceSpecific(code) => code,
            },
        })
    }

    /// Its ImagePath: program and arguments.
    pub fn command_line(&self) -> Result<OsString> {
        let config = self.0.query_config().map_err(of("QueryServiceConfigW"))?;
        Ok(config.executable_path.into_os_string())
    }

    /// Its account.
    pub fn account(&self) -> Result<OsString> {
        let config = self.0.query_config().map_err(of("QueryServiceConfigW"))?;
        Ok(config.account_name.unwrap_or_default())
    }

    /// Gives it another ImagePath, in one step: there is no moment at which it has none.
    pub fn set_command_line(&self, command_line: &OsStr) -> Result<()> {
        let command_line = wide(command_line);
        // SAFETY: the handle is open, the text ends with a zero; null leaves the rest as it is.
        let changed = unsafe {
            ChangeServiceConfigW(
                self.0.raw_handle(),
                SERVICE_NO_CHANGE,
                SERVICE_NO_CHANGE,
                SERVICE_NO_CHANGE,
                command_line.as_ptr(),
                ptr::null(),
                ptr::null_mut(),
                ptr::null(),
                ptr::null(),
                ptr::null(),
                ptr::null(),
            )
        };
        match changed {
            0 => Err(Error::last("ChangeServiceConfigW")),
            _ => Ok(()),
        }
    }

    /// How long the host waits for it when it goes down.
    pub fn preshutdown(&self) -> Result<Duration> {
        let (mut info, mut used) = (SERVICE_PRESHUTDOWN_INFO::default(), 0);
        let len = u32::try_from(size_of_val(&info)).unwrap_or_default();
        // SAFETY: the handle is open, `len` is the size of `info`.
        let told = unsafe {
            QueryServiceConfig2W(
                self.0.raw_handle(),
                SERVICE_CONFIG_PRESHUTDOWN_INFO,
                (&raw mut info).cast(),
                len,
                &mut used,
            )
        };
        match told {
            0 => Err(Error::last("QueryServiceConfig2W")),
            _ => Ok(Duration::from_millis(info.dwPreshutdownTimeout.into())),
        }
    }

    /// Has it started; it may take a while to run.
    pub fn start(&self) -> Result<()> {
        self.0.start::<&OsStr>(&[]).map_err(of("StartServiceW"))
    }

    /// Asks it to stop; it may take a while. One that does not run is fine.
    pub fn stop(&self) -> Result<()> {
        match self.0.stop().map_err(of("ControlService")) {
            Err(error) if error.code == ERROR_SERVICE_NOT_ACTIVE => Ok(()),
            result => result.map(drop),
        }
    }

    /// Sends it a control of its own, 128 to 255.
    pub fn control(&self, code: u8) -> Result<()> {
        let call = "ControlService";
        let code =
            UserEventCode::from_raw(code.into()).map_err(|_| Error::of(call, ERROR_INVALID_PARAMETER))?;
        self.0.notify(code).map_err(of(call)).map(drop)
    }

    /// Waits until it is in a state; its status then, or as it is when the time is over.
    pub fn wait_for(&self, state: State, limit: Duration) -> Result<Status> {
        self.wait(|now| now == state, limit)
    }

    /// Waits until a start that is under way is over, for it takes no controls before; its status then, or when the time is over.
    pub fn wait_for_start(&self, limit: Duration) -> Result<Status> {
        self.wait(|now| now != State::Starting, limit)
    }

    fn wait(&self, done: impl Fn(State) -> bool, limit: Duration) -> Result<Status> {
        let end = Instant::now() + limit;
        loop {
            let status = self.status()?;
            if done(status.state) || Instant::now() >= end {
                return Ok(status);
            }
            #[allow(clippy::disallowed_methods)] // being told needs an alertable thread: looking is simpler
            std::thread::sleep(LOOK);
        }
    }

    /// Removes it; it goes when it has stopped and nobody has it open any more.
    pub fn delete(&self) -> Result<()> {
        self.0.delete().map_err(of("DeleteService"))
    }
}

fn manager(access: ServiceManagerAccess) -> Result<ServiceManager> {
    ServiceManager::local_computer(None::<&str>, access).map_err(of("OpenSCManagerW"))
}

fn open(name: &str, access: ServiceAccess) -> Result<Option<Service>> {
    let opened = manager(ServiceManagerAccess::CONNECT)?.open_service(name, access);
    match opened.map_err(of("OpenServiceW")) {
        Ok(service) => Ok(Some(Service(service))),
        Err(error) if error.code == ERROR_SERVICE_DOES_NOT_EXIST => Ok(None),
        Err(error) => Err(error),
    }
}

/// Wine does not know every setting that Windows has; there the service goes without.
fn known_to_windows(set: Result<()>) -> Result<()> {
    match set {
        Err(error) if matches!(error.code, ERROR_INVALID_PARAMETER | ERROR_INVALID_LEVEL) && is_wine() => {
            Ok(())
        }
        result => result,
    }
}
