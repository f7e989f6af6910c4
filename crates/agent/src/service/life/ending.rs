//! After a runner's death, and the end: the tree seen gone, rollback where it is due, the result told, the logs shipped.

use super::{Error, Life, Voice, running::How};
use crate::{
    journal::{AgentRecord, RunRecord},
    layout::TaskDir,
    platform,
    runner::{self, Recover, status_when_lost},
    service::{
        recovery::Lost,
        report::{Reporter, Told, logs_complete},
        ship::{Shipper, Whose},
        work::Found,
    },
};
use api::{TaskStatus, task::TaskPhase};
use std::time::Duration;

/// How long the terminal status waits for the last log bytes.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How much of what a runner said about itself is told, in characters.
const LAST_WORDS_LENGTH: usize = 500;
/// How long one try to end what a runner left behind takes.
const SWEEP: Duration = Duration::from_secs(30);

impl Life {
    /// Ends a run that left no end behind; `ended` says that neither rollback nor finally may run.
    pub(super) async fn lost(&mut self, lost: &Lost, ended: bool) -> Result<(), Error> {
        self.see_the_tree_gone().await;
        if self.journal.is_some() {
            runner::forbid(&self.dir).map_err(|e| Error::Stored(self.dir.path(), e))?;
            let found = self.stored_work()?;
            if let Some(spawned) = self.recover(&found, lost, ended).await? {
                let share = self.host.capacity.count(&found.spec);
                let attended = self.attend(found, share, spawned.identity, Some(spawned.ended), true);
                return Box::pin(attended).await;
            }
        }
        let status = self.lost_status(lost);
        self.end(status, true).await
    }

    /// Starts a runner for rollback and finally, where they are due after a run that was lost.
    pub(super) async fn recover(
        &mut self,
        found: &Found,
        lost: &Lost,
        ended: bool,
    ) -> Result<Option<runner::Spawned>, Error> {
        let tried = |record: &RunRecord| matches!(record, RunRecord::Recovering { .. });
        let before = self.local.run.iter().any(|entry| tried(&entry.record));
        let started = runner::status_from_journal(&self.local.run).started_steps;
        let due = !found.spec.finally.is_empty() || started && !found.spec.rollback.is_empty();
        if ended || before || !due || !runner::has_begun(&self.local.run) {
            return Ok(None);
        }
        let recover = Recover {
            phase: lost.phase,
            reason: lost.reason.clone().into_owned(),
            message: lost.message.clone().into_owned(),
        };
        let labels = self.labels(found).await?;
        let how = How::Recover(recover);
        match self.spawn(how, labels) {
            Ok(spawned) => {
                self.record(AgentRecord::RunnerStarted {
                    runner: spawned.identity.clone(),
                })?;
                Ok(Some(spawned))
            }
            Err(error) => {
                tracing::error!(task = self.task.name(), %error, "rollback and finally cannot be run");
                Ok(None)
            }
        }
    }

    pub(super) fn lost_status(&self, lost: &Lost) -> TaskStatus {
        let message = match last_words(&self.dir) {
            Some(words) => format!("{}; the last it said itself: {words}", lost.message),
            None => lost.message.clone().into_owned(),
        };
        let mut status = status_when_lost(&self.local.run, &lost.reason, &message);
        if !self
            .local
            .finished()
            .is_some_and(|status| status.phase.is_terminal())
        {
            status.phase = lost.phase;
        }
        status.started_steps |= lost.assume_started;
        status.finished_at.get_or_insert_with(|| self.now());
        status
    }

    /// Ends what is left of the work and returns only when nothing is.
    pub(super) async fn see_the_tree_gone(&self) {
        loop {
            let left = platform::end_survivors(self.dir.uid(), self.local.containment(), SWEEP).await;
            if left.is_empty() {
                return;
            }
            tracing::error!(
                task = self.task.name(),
                processes = ?left,
                "processes of a lost run do not end; its end is not told before they do"
            );
        }
    }

    /// Tells an end and ships the logs.
    pub(super) async fn end(&mut self, status: TaskStatus, resumed: bool) -> Result<(), Error> {
        let voice = self.voice(resumed);
        self.tell(status, voice).await
    }

    pub(super) async fn tell(&mut self, mut status: TaskStatus, mut voice: Voice) -> Result<(), Error> {
        self.measure_logs(&mut status);
        self.host.wish.consider(self.task.name(), &self.local.run);
        let shipped = tokio::time::timeout(LAST_WORDS, voice.shipper.finish())
            .await
            .is_ok();
        if shipped {
            self.record(AgentRecord::Shipped)?;
        }
        status.logs_pending = !shipped;
        let phase = status.phase;
        tracing::info!(task = self.task.name(), ?phase, reason = status.reason, "ended");
        let told = voice.reporter.end(status).await;
        if told == Told::Gone {
            self.record(AgentRecord::Dropped)?;
            self.keep();
            return Ok(());
        }
        self.record(AgentRecord::Reported { phase })?;
        if !shipped {
            voice.shipper.finish().await;
            if told == Told::Acknowledged {
                logs_complete(&self.host, &self.task).await;
            }
            self.record(AgentRecord::Shipped)?;
        }
        // Said by an earlier agent whose word we only repeated.
        self.say_logs_are_complete().await;
        self.keep();
        Ok(())
    }

    /// The server has ended the Task, or does not know it: tells a result that came too late, ships the logs it still waits for.
    pub(super) async fn wind_up(&mut self, exists: bool) -> Result<(), Error> {
        if self.journal.is_none() {
            return Ok(());
        }
        self.see_the_tree_gone().await;
        if !exists {
            self.record(AgentRecord::Dropped)?;
            self.keep();
            return Ok(());
        }
        if let Some(status) = self.local.finished().filter(|_| !self.local.is_reported()) {
            return self.end(status, true).await;
        }
        // Told by an earlier agent, perhaps in a write whose answer was lost, or ended by others.
        let mut voice = self.voice(true);
        voice.shipper.finish().await;
        self.say_logs_are_complete().await;
        self.record(AgentRecord::Shipped)?;
        self.record(AgentRecord::Reported {
            phase: self.task.phase(),
        })?;
        self.keep();
        Ok(())
    }

    async fn say_logs_are_complete(&self) {
        if self
            .task
            .status
            .as_ref()
            .is_some_and(|status| status.logs_pending)
        {
            logs_complete(&self.host, &self.task).await;
        }
    }

    /// The size of a log is its end for whoever follows it; a runner that was killed could not tell it.
    pub(super) fn measure_logs(&self, status: &mut TaskStatus) {
        let logs = self.dir.step_logs().unwrap_or_default();
        for (name, path) in logs {
            let step = status
                .steps
                .iter_mut()
                .find(|s| s.name == name && s.log_bytes.is_none());
            if let (Some(step), Ok(meta)) = (step, path.metadata()) {
                step.log_bytes = i64::try_from(meta.len()).ok();
            }
        }
    }

    pub(super) fn ended(&self, phase: TaskPhase, reason: &str, message: &str) -> TaskStatus {
        TaskStatus {
            phase,
            reason: reason.into(),
            message: message.into(),
            finished_at: Some(self.now()),
            ..TaskStatus::default()
        }
    }

    pub(super) fn keep(&self) {
        self.host.abandoned.consider(self.dir.uid(), &self.local);
        if self.journal.is_some() {
            let last = self.local.agent.last().map(|entry| entry.at.0);
            self.host
                .kept
                .add(&self.dir, last.unwrap_or_else(|| self.host.clock.now()));
        }
    }

    pub(super) fn voice(&self, resumed: bool) -> Voice {
        let whose = Whose {
            namespace: self.task.namespace().to_owned(),
            name: self.task.name().to_owned(),
            uid: self.task.uid().to_owned(),
        };
        Voice {
            reporter: Reporter::start(self.host.clone(), &self.task),
            shipper: Shipper::start(self.host.clone(), self.dir.clone(), whose, resumed),
        }
    }
}

/// The last line a runner wrote about itself: an error or a panic, if there was one.
fn last_words(dir: &TaskDir) -> Option<String> {
    let text = std::fs::read(dir.runner_log()).ok()?;
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.chars().take(LAST_WORDS_LENGTH).collect())
}
