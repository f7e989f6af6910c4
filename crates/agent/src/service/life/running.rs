//! From the start of a runner to the moment it is gone.

use super::{Error, Life, Ready};
use crate::{
    journal::AgentRecord,
    runner::{self, Identity, Options, Recover, status_when_lost},
    service::{
        attend::{Attendance, Over},
        capacity::Share,
        orders::{Orders, ended_unstarted, order},
        recovery::Lost,
        work::Found,
    },
};
use api::{placement::Labels, task::TaskPhase};
use std::{io, process::ExitStatus, time::Duration};
use tokio::task::JoinHandle;

/// What a runner is started for.
pub(super) enum How {
    /// The work, from its beginning.
    Begin,
    /// The work, after a restart of the host.
    Resume,
    /// Rollback and finally.
    Recover(Recover),
}

impl Life {
    pub(super) async fn start(&mut self, ready: Ready) -> Result<(), Error> {
        let Ready { found, share, labels } = ready;
        let grace = found.spec.termination_grace_period_seconds;
        if let Some(stop) = order(Some(&self.task), grace) {
            let (phase, reason, message) = ended_unstarted(&stop);
            let status = self.ended(phase, &reason, &message);
            return self.end(status, false).await;
        }
        match self.spawn(How::Begin, labels) {
            Ok(spawned) => {
                self.record(AgentRecord::RunnerStarted {
                    runner: spawned.identity.clone(),
                })?;
                self.attend(found, share, spawned.identity, Some(spawned.ended), false)
                    .await
            }
            Err(error) => {
                let message = format!(
                    "{} cannot be started: {error}",
                    self.host.settings.program.display()
                );
                let status = self.ended(TaskPhase::Failed, &Lost::RUNNER.reason, &message);
                self.end(status, false).await
            }
        }
    }

    pub(super) fn spawn(&self, how: How, node_labels: Labels) -> io::Result<runner::Spawned> {
        let resume = matches!(how, How::Resume);
        let recover = match how {
            How::Recover(recover) => Some(recover),
            How::Begin | How::Resume => None,
        };
        let options = Options {
            max_log_bytes: self.host.settings.max_log_bytes,
            renewed_at: self.host.renewals.borrow().sent_at,
            resume,
            recover,
            node_labels,
            ..Options::default()
        };
        runner::spawn(&self.host.settings.program, &self.dir, &options)
    }

    /// Stays with a runner until it has ended, then sees the Task to its end.
    pub(super) async fn attend(
        &mut self,
        found: Found,
        share: Share,
        mut runner: Identity,
        mut exited: Option<JoinHandle<io::Result<ExitStatus>>>,
        resumed: bool,
    ) -> Result<(), Error> {
        let grace = found.spec.termination_grace_period_seconds;
        let mut orders = Orders::follow(self.host.clone(), &self.task, self.news.clone(), grace);
        let mut voice = self.voice(resumed);
        let mut fenced = false;
        let seconds = self.task.spec.fence_seconds.and_then(|s| u64::try_from(s).ok());
        loop {
            fenced |= Attendance {
                host: &self.host,
                dir: &self.dir,
                namespace: self.task.namespace(),
                fence: seconds.map(Duration::from_secs),
                local: &mut self.local,
                orders: &mut orders,
                reporter: &voice.reporter,
                shipper: &voice.shipper,
            }
            .run(&runner, exited.take())
            .await
                == Over::Fenced;
            self.load()?;
            if self.local.alive {
                // Not ours was the one that took the task, but one an earlier agent had started.
                let Some(other) = self.living_runner().await? else {
                    continue;
                };
                runner = other;
                continue;
            }
            if let Some(status) = self.local.finished() {
                drop(share);
                return self.tell(status, voice).await;
            }
            let waits = self.local.awaited_restart();
            if waits.is_some_and(|restart| restart.boot_id == self.host.home.boot_id) {
                return self.restart(&found, voice, orders).await;
            }
            self.see_the_tree_gone().await;
            if fenced {
                let message =
                    "the node could not renew its Lease for fenceSeconds and the runner did not answer";
                let mut status = status_when_lost(&self.local.run, "Fenced", message);
                status.finished_at = Some(self.now());
                return self.tell(status, voice).await;
            }
            runner::forbid(&self.dir).map_err(|e| Error::Stored(self.dir.path(), e))?;
            let ended = orders.stop.borrow().as_ref().is_some_and(|stop| stop.force);
            match self.recover(&found, &Lost::RUNNER, ended).await? {
                Some(spawned) => {
                    runner = spawned.identity;
                    exited = Some(spawned.ended);
                }
                None => {
                    drop(share);
                    let status = self.lost_status(&Lost::RUNNER);
                    return self
                        .tell(status, std::mem::replace(&mut voice, self.voice(true)))
                        .await;
                }
            }
        }
    }
}
