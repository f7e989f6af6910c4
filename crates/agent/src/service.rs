//! The agent: holds the node's Lease, takes Tasks bound to the node, has runners run them, and tells what comes of it.
//!
//! ```text
//! settings ─► home ─► enrol ─► lease ──┬─► renewals (own connection) ──► runners, freshness of claims
//!                                      ├─► inbox: the Tasks of this node ─► one life a Task
//!                                      │      life: work, claim, runner ◄─► attend ─► report, ship (own connection)
//!                                      ├─► node status, certificate renewal
//!                                      └─► cleanup of what is over
//! ```
//!
//! Killing it at any moment loses nothing: what it knows is in the folders of the tasks, and [`recovery`] reads it back.

mod abandoned;
mod attend;
mod capacity;
mod claim;
mod cleanup;
pub mod connection;
mod departure;
pub mod diagnose;
mod enrol;
mod facts;
pub mod home;
mod host;
mod inbox;
mod lease;
mod life;
mod node_status;
mod orders;
mod recovery;
mod report;
mod restart_wish;
mod retry;
pub mod settings;
mod ship;
pub mod state;
mod supervisor;
mod values;
mod work;

pub use enrol::Error as EnrolError;
pub use lease::Taken;
pub(crate) use retry::Backoff;
pub use settings::{RunAs, Settings, Written};

use crate::{journal, layout};
use api::clock::Clock;
use home::Home;
use host::Host;
use lease::Lease;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// Why the agent ended though nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// See there.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// See there.
    #[error(transparent)]
    Enrol(#[from] EnrolError),
    /// See there.
    #[error(transparent)]
    Taken(#[from] Taken),
    /// See there.
    #[error(transparent)]
    Layout(#[from] layout::Error),
}

/// Why the agent is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is to stop, alone: runners go on.
    Stop,
    /// The host goes down: runners are told to end too.
    HostDown {
        /// How long the host waits.
        within: Duration,
    },
}

/// Runs the agent until `asked` resolves or another agent holds its Lease. Runners are left alone unless the host goes down.
pub async fn run(
    settings: Settings,
    clock: Arc<dyn Clock>,
    asked: impl Future<Output = Ending>,
) -> Result<(), Error> {
    let home = Home::open(&settings.data_dir)?;
    tokio::pin!(asked);
    let token = match &settings.token {
        Some(token) => Some(token.clone()),
        None => home.join_token()?,
    };
    let (name, token) = (settings.name.as_deref(), token.as_deref());
    let enrolled = tokio::select! {
        enrolled = enrol::enrol(&home, &settings.server, name, token, clock.clone()) => enrolled?,
        _ = &mut asked => return Ok(()),
    };
    home.drop_join_token()?;
    let (node, server) = (enrolled.node, enrolled.server);
    tracing::info!(
        node,
        instance = home.instance,
        server = settings.server,
        "agent started"
    );
    let lease = tokio::select! {
        lease = Lease::take(server.client(), &home, &node, settings.renew, clock.clone()) => lease?,
        _ = &mut asked => return Ok(()),
    };
    home.mark_healthy()?;
    let client = server.client();
    let wish = restart_wish::RestartWish::open(home.data.path(), &home.boot_id);
    let host = Arc::new(Host {
        node,
        capacity: capacity::Capacity::new(&facts::capacity(&settings, home.data.path())),
        home,
        logs: server.client(),
        works: work::Works::new(client.clone()),
        client,
        server,
        renewals: lease.renewals(),
        clock,
        settings,
        kept: cleanup::Kept::default(),
        departure: departure::Departure::default(),
        abandoned: abandoned::Abandoned::default(),
        wish,
    });
    let (pressure, pressed) = watch::channel(false);
    let supervised = supervisor::run(host.clone());
    let working = async {
        tokio::select! {
            taken = lease.renew_forever() => Err(taken.into()),
            result = supervised => result,
            () = node_status::run(host.clone(), pressed) => Ok(()),
            () = enrol::renew_forever(&host.home, &host.server, &host.node, &*host.clock) => Ok(()),
            () = cleanup::run(&host, &pressure) => Ok(()),
            () = host.abandoned.run() => Ok(()),
        }
    };
    let ending = async {
        if let Ending::HostDown { within } = asked.await {
            let tasks = host.home.data.tasks()?;
            host.departure.depart(within, &tasks).await;
        }
        Ok(())
    };
    let ended = tokio::select! {
        ended = working => ended,
        ended = ending => ended,
    };
    if host.departure.has_begun() {
        note_shutdown(&host); // by now nobody else writes to the journals
    }
    ended
}

/// Leaves word in the folder of every unfinished task that the host went down in an orderly way.
fn note_shutdown(host: &Host) {
    for dir in host.home.data.tasks().into_iter().flatten() {
        let opened = journal::Writer::open(&dir.agent_journal(), host.clock.clone());
        let noted = opened.and_then(|(mut journal, _)| {
            journal.append(&journal::AgentRecord::ShutdownSeen)?;
            journal.sync()
        });
        if let Err(error) = noted {
            tracing::warn!(uid = dir.uid(), %error, "the shutdown is not noted");
        }
    }
}
