//! What to do with a Task, by what the server says and what this host's journals know.
//!
//! The same question is asked for a Task that is new, for one found in the data folder after a start, and for one whose claim was just
//! acknowledged: [`decide`] is the whole table, and pure.

use crate::{
    journal::{AgentRecord, Entry, Restart, RunRecord},
    runner::{Identity, awaited_restart, has_begun, restarting_step, status_from_journal},
};
use api::{
    Task,
    task::{TaskPhase, TaskStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use std::borrow::Cow;

/// What the server says of a Task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// There is none of this uid.
    Gone,
    /// Nobody has claimed it.
    Bound,
    /// An agent has claimed it and it has not ended.
    Claimed {
        /// Whether this data folder's agent did.
        ours: bool,
        /// In which boot.
        boot_id: String,
        /// Whether it is beyond Claimed.
        running: bool,
        /// Whether it is Rebooting.
        rebooting: bool,
        /// How many restarts of the host the server knows of.
        reboots: i32,
    },
    /// It has ended.
    Ended,
}

/// What this host knows of a Task.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// The agent's journal.
    pub agent: Vec<Entry<AgentRecord>>,
    /// The runner's journal.
    pub run: Vec<Entry<RunRecord>>,
    /// Whether a runner of this Task lives.
    pub alive: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Claim it; then ask again.
    Claim,
    /// Start a runner once Claimed → Running is acknowledged.
    Resume,
    /// The work waits for a restart of the host, which has not been yet: ask for it, or go on waiting.
    Restart,
    /// The host is back from a restart the work waited for: go on once the server still has it so.
    Return,
    /// A runner lives: go on with it.
    Attach,
    /// A runner lives whose Task has ended or is gone: end the work.
    Stop,
    /// The work ended here: tell.
    Report,
    /// The runner is gone without an end: see the tree gone, roll back where that is due, tell.
    Lost(Lost),
    /// Claimed, but this host knows nothing of it: Unknown, never started.
    JournalLost,
    /// Nothing is left to do but to ship what logs remain.
    Nothing,
}

/// How a run ended that left no end behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Failed, or Cancelled where it was stopped.
    pub phase: TaskPhase,
    /// A stable code.
    pub reason: Cow<'static, str>,
    /// The same in a sentence.
    pub message: Cow<'static, str>,
    /// Count as if a step of `steps` had started: the journal of another boot may lie.
    pub assume_started: bool,
}

impl Lost {
    /// The runner died while the host went on.
    pub const RUNNER: Self = Self {
        phase: TaskPhase::Failed,
        reason: Cow::Borrowed("RunnerLost"),
        message: Cow::Borrowed(
            "the process that ran the steps was killed or crashed; its log and journal end there",
        ),
        assume_started: false,
    };
    /// The host restarted in an orderly way, or nothing had begun.
    pub const REBOOTED: Self = Self {
        phase: TaskPhase::Failed,
        reason: Cow::Borrowed("HostRebooted"),
        message: Cow::Borrowed("the host restarted before the work ended"),
        assume_started: true,
    };
    /// The host restarted without having announced it.
    pub const CRASHED: Self = Self {
        phase: TaskPhase::Failed,
        reason: Cow::Borrowed("HostCrashed"),
        message: Cow::Borrowed("the host crashed, lost power or was reset before the work ended"),
        assume_started: true,
    };

    /// An end in other words.
    pub fn with(
        phase: TaskPhase,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            phase,
            reason: reason.into(),
            message: message.into(),
            assume_started: false,
        }
    }
}

impl Remote {
    /// What a Task as read from the server means to the agent `instance`.
    pub fn of(task: &Task, instance: &str) -> Self {
        let phase = task.phase();
        let claim = task.status.as_ref().and_then(|s| s.claim.as_ref());
        match claim {
            _ if phase.is_terminal() => Self::Ended,
            Some(claim) => Self::Claimed {
                ours: claim.agent_instance == instance,
                boot_id: claim.boot_id.clone(),
                running: phase != TaskPhase::Claimed,
                rebooting: phase == TaskPhase::Rebooting,
                reboots: task.status.as_ref().map_or(0, |s| s.reboots),
            },
            None => Self::Bound,
        }
    }
}

impl Local {
    /// The runner that took the task last, as it wrote itself or as the agent started it.
    pub fn runner(&self) -> Option<&Identity> {
        let own = self.run.iter().rev().find_map(|entry| match &entry.record {
            RunRecord::RunnerStarted { runner, .. } => Some(runner),
            _ => None,
        });
        own.or_else(|| {
            self.agent.iter().rev().find_map(|entry| match &entry.record {
                AgentRecord::RunnerStarted { runner } => Some(runner),
                _ => None,
            })
        })
    }

    /// What holds the run's processes together beside the session.
    pub fn containment(&self) -> Option<&str> {
        self.run.iter().rev().find_map(|entry| match &entry.record {
            RunRecord::RunnerStarted { containment, .. } => containment.as_deref(),
            _ => None,
        })
    }

    /// How the run ended, if it did.
    pub fn finished(&self) -> Option<TaskStatus> {
        Some(status_from_journal(&self.run)).filter(|status| status.phase.is_terminal())
    }

    /// Whether the end was acknowledged by the server.
    pub fn is_reported(&self) -> bool {
        self.agent.iter().any(|entry| {
            matches!(&entry.record, AgentRecord::Reported { phase } if phase.is_terminal())
                || entry.record == AgentRecord::Dropped
        })
    }

    /// Whether no log byte is left to ship.
    pub fn is_shipped(&self) -> bool {
        self.agent
            .iter()
            .any(|entry| matches!(entry.record, AgentRecord::Shipped | AgentRecord::Dropped))
    }

    /// Whether the folder needs no agent any more but to be removed one day.
    pub fn is_done(&self) -> bool {
        !self.alive && self.is_reported() && self.is_shipped()
    }

    /// Whether a claim was sent: only then can there be a runner.
    pub fn may_have_run(&self) -> bool {
        let sent = |entry: &Entry<AgentRecord>| matches!(entry.record, AgentRecord::ClaimSent { .. });
        self.agent.iter().any(sent) || has_begun(&self.run)
    }

    fn is_stored(&self) -> bool {
        self.agent
            .iter()
            .any(|entry| matches!(entry.record, AgentRecord::Stored { .. }))
    }

    /// The restart of the host that the work waits for.
    pub fn awaited_restart(&self) -> Option<&Restart> {
        awaited_restart(&self.run)
    }

    /// Since when a restart is awaited, by the server's clock.
    pub fn asked_since(&self) -> Option<&MicroTime> {
        self.since_return().find_map(|record| match record {
            AgentRecord::RebootAsked { since } => Some(since),
            _ => None,
        })
    }

    /// In which boot the work goes on, where it does so after a restart.
    fn returned(&self) -> Option<&str> {
        self.agent.iter().rev().find_map(|entry| match &entry.record {
            AgentRecord::Returned { boot_id } => Some(boot_id.as_str()),
            _ => None,
        })
    }

    /// The agent's records of this boot or the one that the work waits to leave, the last first.
    fn since_return(&self) -> impl Iterator<Item = &AgentRecord> {
        let records = self.agent.iter().rev().map(|entry| &entry.record);
        records.take_while(|record| !matches!(record, AgentRecord::Returned { .. }))
    }

    fn has_seen_shutdown(&self) -> bool {
        self.since_return()
            .any(|record| *record == AgentRecord::ShutdownSeen)
    }

    /// How many restarts the server must know of to let this journal go on; another number, and it is older than the work.
    fn reboots(&self) -> i32 {
        status_from_journal(&self.run).reboots
    }
}

/// The table.
pub fn decide(remote: &Remote, local: &Local, boot_id: &str) -> Next {
    let begun = has_begun(&local.run);
    match remote {
        Remote::Gone | Remote::Ended if local.alive => Next::Stop,
        Remote::Gone | Remote::Ended => Next::Nothing,
        Remote::Bound => Next::Claim,
        Remote::Claimed {
            ours, boot_id: of, ..
        } if !ours || !local.is_stored() => {
            if of == boot_id {
                Next::JournalLost
            } else {
                Next::Lost(Lost::REBOOTED)
            }
        }
        Remote::Claimed { .. } if local.finished().is_some() && !local.alive => Next::Report,
        Remote::Claimed { .. } if local.alive => Next::Attach,
        Remote::Claimed {
            boot_id: of,
            running,
            rebooting,
            reboots,
            ..
        } => {
            // what the server was not told of before the host went down is no sign of an old journal
            let known = local.reboots();
            if let Some(restart) = local.awaited_restart() {
                return match (restart.boot_id == boot_id, rebooting) {
                    (true, _) => Next::Restart,
                    (false, true) if *reboots == known => Next::Return,
                    (false, false) if *reboots < known => Next::Return,
                    (false, _) => Next::Lost(Lost::REBOOTED),
                };
            }
            let same = local.returned().unwrap_or(of) == boot_id;
            if restarting_step(&local.run).is_some() && !same && local.has_seen_shutdown() {
                // told as Rebooting where an agent of this boot came so far already
                return match *reboots == known + i32::from(*rebooting) {
                    true => Next::Return,
                    false => Next::Lost(Lost::REBOOTED),
                };
            }
            match (same, begun, running) {
                (true, true, _) | (true, false, true) => Next::Lost(Lost::RUNNER),
                (true, false, false) => Next::Resume,
                (false, false, _) => Next::Lost(Lost::REBOOTED),
                (false, true, _) if local.has_seen_shutdown() => Next::Lost(Lost::REBOOTED),
                (false, true, _) => Next::Lost(Lost::CRASHED),
            }
        }
    }
}

#[cfg(test)]
mod tests;
