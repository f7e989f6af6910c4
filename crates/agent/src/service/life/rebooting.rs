//! A restart of the host that the work waits for: told, allowed, ordered, and come back from.
//!
//! Up to the order nothing is lost by waiting: no runner lives, and the journal says where the work stands. Whoever reads that in
//! another boot knows that the host was restarted; who did it does not matter.

use super::{Error, Life, Voice, running::How};
use crate::{
    journal::{AgentRecord, Restart},
    platform::{self, Ordered},
    runner::{phase_when_stopped, restarting_step, status_from_journal},
    service::{
        claim::{Outcome, Step},
        orders::{Orders, order},
        recovery::Lost,
        work::Found,
    },
};
use api::{
    Task, TaskStatus,
    step::Reboot,
    task::{Stop, TaskPhase},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// Why work is stopped when the host goes down: no reason to give up what waits for that.
const INTERRUPTED: &str = "Interrupted";

/// What ends the wait for the end of this boot.
enum Ended {
    /// A stop order.
    Stopped(Stop),
    /// What happened instead of a restart.
    Failed(Lost),
}

impl Life {
    /// The work asked for a restart of the host in this boot. Returns with the end of the Task; the restart ends this process.
    pub(super) async fn restart(
        &mut self,
        found: &Found,
        mut voice: Voice,
        mut orders: Orders,
    ) -> Result<(), Error> {
        let Some(restart) = self.local.awaited_restart().cloned() else {
            return Ok(());
        };
        let status = status_from_journal(&self.local.run);
        let over = !voice.reporter.confirm(status.clone()).await;
        let ended = match over {
            true => None,
            false => Some(self.wait(found, &restart, &voice, &mut orders, status).await?),
        };
        drop((voice, orders));
        match ended {
            Some(Ended::Failed(lost)) => Box::pin(self.lost(&lost, false)).await,
            Some(Ended::Stopped(stop)) if stop.reason != "Ended" => {
                Box::pin(self.lost(&stopped(&stop), stop.force)).await
            }
            _ => {
                let remote = self.look().await;
                let exists = remote.is_some();
                if let Some(task) = remote {
                    self.task = task;
                }
                self.wind_up(exists).await
            }
        }
    }

    async fn wait(
        &mut self,
        found: &Found,
        restart: &Restart,
        voice: &Voice,
        orders: &mut Orders,
        mut status: TaskStatus,
    ) -> Result<Ended, Error> {
        let reboot = reboot_of(found, &restart.step);
        let mut say = |message: String| {
            tracing::info!(step = restart.step, message, "restart of the host");
            status.message = message;
            voice.reporter.set(status.clone());
        };
        if !restart.under_way {
            if !self.host.settings.may_reboot {
                let message = "this agent may not restart its host: it runs neither as a service nor with allowReboot: true in agent.yaml";
                return Ok(Ended::Failed(Lost::with(
                    TaskPhase::Failed,
                    "RebootRefused",
                    message,
                )));
            }
            say(format!(
                "step \"{}\" asked for a restart of the host; waiting for the permission (spec.rebootAllowed)",
                restart.step
            ));
            let delay = Duration::from_secs(reboot.delay_seconds.unsigned_abs());
            let allowed = async {
                let allows = |news: &crate::service::orders::News| {
                    news.task.as_ref().is_some_and(|task| task.spec.reboot_allowed)
                };
                if self.news.wait_for(allows).await.is_err() {
                    std::future::pending::<()>().await; // the agent ends
                }
                if !delay.is_zero() {
                    say(format!("the host is restarted in {} s", delay.as_secs()));
                    tokio::time::sleep(delay).await;
                }
            };
            tokio::select! {
                () = allowed => {}
                stop = stop(orders) => return Ok(Ended::Stopped(stop)),
            }
        }
        let since = MicroTime(self.host.clock.now() + self.host.server.skew());
        self.record(AgentRecord::RebootAsked { since })?;
        if let Some(journal) = &self.journal {
            journal.sync()?;
        }
        let mut ours = false;
        if restart.under_way {
            say(format!(
                "step \"{}\" restarts the host; waiting for that",
                restart.step
            ));
        } else {
            let why = format!("Prow: step {} of {}", restart.step, self.task.name());
            match platform::order_reboot(&why) {
                Ok(Ordered::Ours) => {
                    ours = true;
                    say("the host is restarting".to_owned());
                }
                Ok(Ordered::Theirs(who)) => say(format!(
                    "a shutdown of the host is under way that was not asked for here ({who}); waiting for that"
                )),
                Err(error) => {
                    let message = format!("the host cannot be restarted: {error}");
                    return Ok(Ended::Failed(Lost::with(
                        TaskPhase::Failed,
                        "RebootRefused",
                        message,
                    )));
                }
            }
        }
        let limit = Duration::from_secs(reboot.timeout_seconds.unsigned_abs());
        tokio::select! {
            () = tokio::time::sleep_until(Instant::now() + limit) => {
                let message = format!(
                    "the host did not go down for its restart within {} s (reboot.timeoutSeconds)",
                    limit.as_secs()
                );
                Ok(Ended::Failed(Lost::with(TaskPhase::Failed, "RebootTimeout", message)))
            }
            stop = stop(orders), if !ours => Ok(Ended::Stopped(stop)),
        }
    }

    /// The host is back from a restart the work waited for. Goes on with it, or answers what to look at next; nothing where all is told.
    pub(super) async fn come_back(&mut self) -> Result<Option<Option<Arc<Task>>>, Error> {
        let found = self.stored_work()?;
        let grace = found.spec.termination_grace_period_seconds;
        if let Some(stop) = order(Some(&self.task), grace) {
            self.lost(&stopped(&stop), stop.force).await?;
            return Ok(None);
        }
        let known = status_from_journal(&self.local.run).reboots;
        let cut_off = restarting_step(&self.local.run).is_some();
        if let (Some(since), Some(restart)) = (self.local.asked_since(), self.local.awaited_restart()) {
            let limit = reboot_of(&found, &restart.step).timeout_seconds;
            let now = self.host.clock.now() + self.host.server.skew();
            let took = now.duration_since(since.0).as_secs();
            if took > limit {
                let message = format!(
                    "the host came back from its restart after {took} s, later than reboot.timeoutSeconds ({limit} s)"
                );
                self.lost(&Lost::with(TaskPhase::Failed, "RebootTimeout", message), false)
                    .await?;
                return Ok(None);
            }
        }
        let share = self.host.capacity.count(&found.spec);
        let labels = self.labels(&found).await?;
        let step = Step::Return {
            reboots: known + i32::from(cut_off),
        };
        match self.attempt(step).await? {
            Outcome::Granted(task) => self.task = Arc::new(*task),
            Outcome::Late(task) => return Ok(Some(Some(Arc::new(*task)))),
            Outcome::Lost(task) => return Ok(Some(task.map(|task| Arc::new(*task)))),
        }
        self.record(AgentRecord::Returned {
            boot_id: self.host.home.boot_id.clone(),
        })?;
        match self.spawn(How::Resume, labels) {
            Ok(spawned) => {
                self.record(AgentRecord::RunnerStarted {
                    runner: spawned.identity.clone(),
                })?;
                self.attend(found, share, spawned.identity, Some(spawned.ended), true)
                    .await?;
            }
            Err(error) => {
                let message = format!(
                    "{} cannot be started: {error}",
                    self.host.settings.program.display()
                );
                self.lost(
                    &Lost::with(TaskPhase::Failed, Lost::RUNNER.reason, message),
                    false,
                )
                .await?;
            }
        }
        Ok(None)
    }
}

/// The next stop order, but one that comes since the host goes down.
async fn stop(orders: &mut Orders) -> Stop {
    let counts = |stop: &Option<Stop>| stop.as_ref().is_some_and(|stop| stop.reason != INTERRUPTED);
    match orders.stop.wait_for(counts).await.map(|stop| stop.clone()) {
        Ok(Some(stop)) => stop,
        _ => std::future::pending().await, // the agent ends
    }
}

fn stopped(stop: &Stop) -> Lost {
    let message = match stop.message.is_empty() {
        true => "stopped while it waited for a restart of the host".to_owned(),
        false => stop.message.clone(),
    };
    Lost::with(phase_when_stopped(&stop.reason), stop.reason.clone(), message)
}

fn reboot_of(found: &Found, step: &str) -> Reboot {
    let all = found.spec.all_steps();
    let step = all.map(|(_, _, s)| s).find(|s| s.name == step);
    step.and_then(|step| step.reboot.clone()).unwrap_or_default()
}
