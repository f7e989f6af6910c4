//! Being a service.
//!
//! ```text
//! dispatch ─► (service manager) ─► main(reporter, controls) ─► its exit code ─► STOPPED
//!                                        ▲ controls: Stop, Preshutdown, User
//! ```
//!
//! The state becomes STOP_PENDING inside of the handler of Stop and Preshutdown: from then on the manager sends nothing more, which
//! `windows-service` relies on, since it frees the handler after these two.

use super::of;
use crate::{Error, Result};
use std::{
    ffi::OsString,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;
use windows_service::{
    define_windows_service,
    service::{
        ServiceControl, ServiceControlAccept, ServiceExitCode, ServiceState, ServiceStatus, ServiceType,
    },
    service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle},
    service_dispatcher,
};
use windows_sys::Win32::Foundation::ERROR_SERVICE_EXISTS;

/// How long the manager waits for the next word of a service that stops or starts.
const HINT: Duration = Duration::from_secs(30);

/// What the manager asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// To stop.
    Stop,
    /// To stop since the host goes down. It waits for as long as the service's configuration says.
    Preshutdown,
    /// A code of the service's own, 128 to 255.
    User(u8),
}

/// Controls as they come.
pub type Controls = mpsc::UnboundedReceiver<Control>;

type Main = Box<dyn FnOnce(&Reporter, Controls) -> u32 + Send>;

/// What the one service of this process does; taken when the manager calls.
static MAIN: Mutex<Option<(String, Main)>> = Mutex::new(None);

/// Tells the manager how the service is doing.
#[derive(Debug)]
pub struct Reporter {
    handle: ServiceStatusHandle,
    checkpoint: AtomicU32,
}

/// Hands this process to the service manager, as the service `name`; returns when the service has stopped. `main` runs on a thread of the
/// manager's choice; its result is the exit code: anything but 0 counts as a failure, upon which the manager does what the service's
/// failure actions say. Fails with 1063 if the manager has not started this process.
pub fn dispatch(name: &str, main: impl FnOnce(&Reporter, Controls) -> u32 + Send + 'static) -> Result<()> {
    let mut kept = MAIN.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.is_some() {
        return Err(Error::of("StartServiceCtrlDispatcherW", ERROR_SERVICE_EXISTS));
    }
    *kept = Some((name.to_owned(), Box::new(main)));
    drop(kept);
    service_dispatcher::start(name, service_main).map_err(of("StartServiceCtrlDispatcherW"))
}

define_windows_service!(service_main, serve);

fn serve(_arguments: Vec<OsString>) {
    let taken = MAIN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((name, main)) = taken else { return };
    let (send, controls) = mpsc::unbounded_channel();
    let shared: Arc<OnceLock<Reporter>> = Arc::default();
    let in_handler = shared.clone();
    let handler = move |control| {
        let control = match control {
            ServiceControl::Interrogate => return ServiceControlHandlerResult::NoError,
            ServiceControl::Stop => Control::Stop,
            ServiceControl::Preshutdown => Control::Preshutdown,
            ServiceControl::UserEvent(code) => Control::User(u8::try_from(code.to_raw()).unwrap_or(u8::MAX)),
            _ => return ServiceControlHandlerResult::NotImplemented,
        };
        if let (Some(reporter), Control::Stop | Control::Preshutdown) = (in_handler.get(), control) {
            reporter.stopping();
        }
        let _ = send.send(control); // the service has ended meanwhile
        ServiceControlHandlerResult::NoError
    };
    // Without a handle nobody can be told of a failure but by ending, which the manager sees.
    let Ok(handle) = service_control_handler::register(&name, handler) else {
        return;
    };
    let reporter = shared.get_or_init(|| Reporter {
        handle,
        checkpoint: AtomicU32::new(0),
    });
    reporter.starting();
    let code = main(reporter, controls);
    reporter.stopped(code);
}

impl Reporter {
    /// The service is on its way up.
    pub fn starting(&self) {
        self.tell(ServiceState::StartPending, ServiceControlAccept::empty(), 0);
    }

    /// The service runs, and takes controls.
    pub fn running(&self) {
        let accepted = ServiceControlAccept::STOP | ServiceControlAccept::PRESHUTDOWN;
        self.tell(ServiceState::Running, accepted, 0);
    }

    /// The service is on its way down; to be repeated while that takes, at least every few seconds.
    pub fn stopping(&self) {
        self.tell(ServiceState::StopPending, ServiceControlAccept::empty(), 0);
    }

    /// The service is over.
    fn stopped(&self, code: u32) {
        self.tell(ServiceState::Stopped, ServiceControlAccept::empty(), code);
    }

    fn tell(&self, current_state: ServiceState, controls_accepted: ServiceControlAccept, code: u32) {
        let pending = matches!(
            current_state,
            ServiceState::StartPending | ServiceState::StopPending
        );
        let _ = self.handle.set_service_status(ServiceStatus {
            service_type: ServiceType::OWN_PROCESS,
            current_state,
            controls_accepted,
            exit_code: match code {
                0 => ServiceExitCode::Win32(0),
                code => ServiceExitCode::ServiceSpecific(code),
            },
            checkpoint: match pending {
                true => self.checkpoint.fetch_add(1, Ordering::Relaxed) + 1,
                false => 0,
            },
            wait_hint: if pending { HINT } else { Duration::ZERO },
            process_id: None,
        }); // fails only if the manager is gone, and the host with it
    }
}
