//! This process as the service: what the manager asks, and what it is told.

use super::{HOST_WAITS, NAME, events::Event};
use crate::{run::Run, upgrade};
use agent::service::Ending;
use anyhow::Context;
use std::{cell::Cell, time::Duration};
use tokio::sync::Notify;
use win32::service::{Control, Controls, Reporter, Service, dispatch};

/// Between words to the manager while the service stops; it gives up on one that says nothing for long.
const CHECKPOINT: Duration = Duration::from_secs(1);
/// Asks the service to hand over to the version that the service's ImagePath names: it ends with [`HANDED_OVER`], upon which the manager
/// starts that one. Heeded only while an upgrade is under way, since others than administrators may send it.
pub const HAND_OVER: u8 = 130;
/// In debug builds: as if the host went down. Wine never says so.
const HOST_DOWN: u8 = 200;
/// Exit codes of the service; anything but 0 has the manager start it again.
const FAILED: u32 = 1;
const HANDED_OVER: u32 = 2;

/// ERROR_FAILED_SERVICE_CONTROLLER_CONNECT: started by somebody else than the manager.
const NOT_A_SERVICE: u32 = 1063;

/// Runs the agent as the service.
pub fn serve(run: Run) -> anyhow::Result<()> {
    match dispatch(NAME, |reporter, controls| work(run, reporter, controls)) {
        Err(error) if error.code == NOT_A_SERVICE => Err(error).context(
            "only Windows' service manager may use --service: leave it out, or start the service prow-agent",
        ),
        result => Ok(result?),
    }
}

/// What it does until it has ended; its exit code.
fn work(run: Run, reporter: &Reporter, mut controls: Controls) -> u32 {
    let handed_over = Cell::new(false);
    let stopping = Notify::new();
    let data_dir = run.data_dir().to_owned();
    let started = || {
        reporter.running();
        Event::Started.report();
    };
    let asked = async {
        let ending = loop {
            match controls.recv().await {
                Some(Control::Preshutdown) => break host_down(),
                Some(Control::User(HOST_DOWN)) if cfg!(debug_assertions) => break host_down(),
                Some(Control::User(HAND_OVER)) if upgrade::is_under_way(&data_dir) => {
                    handed_over.set(true);
                    break Ending::Stop;
                }
                Some(Control::User(_)) => {}
                Some(Control::Stop) | None => break Ending::Stop,
            }
        };
        match ending {
            Ending::Stop => Event::Stopped.report(),
            Ending::HostDown { .. } => Event::HostDown.report(),
        }
        stopping.notify_one();
        ending
    };
    let checkpoints = async {
        stopping.notified().await;
        loop {
            reporter.stopping();
            tokio::time::sleep(CHECKPOINT).await;
        }
    };
    match run.work(started, asked, checkpoints) {
        Ok(()) if handed_over.get() => HANDED_OVER,
        Ok(()) => 0,
        Err(error) => {
            tracing::error!("the agent ended: {error:#}");
            Event::Failed(format!("{error:#}")).report();
            FAILED
        }
    }
}

/// The host waits for as long as the service's configuration says.
fn host_down() -> Ending {
    let told = Service::open(NAME)
        .ok()
        .flatten()
        .and_then(|service| service.preshutdown().ok());
    Ending::HostDown {
        within: told.unwrap_or(HOST_WAITS),
    }
}
