//! What to do with a Task, by what the server says and what this host's journals know.
//!
//! The same question is asked for a Task that is new, for one found in the data folder after a start, and for one whose claim was just
//! acknowledged: [`decide`] is the whole table, and pure.

use crate::{
    journal::{AgentRecord, Entry, RunRecord},
    runner::{Identity, has_begun, status_from_journal},
};
use api::{
    Task,
    task::{TaskPhase, TaskStatus},
};

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

/// How a run was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// A stable code.
    pub reason: &'static str,
    /// The same in a sentence.
    pub message: &'static str,
    /// Count as if a step of `steps` had started: the journal of another boot may lie.
    pub assume_started: bool,
}

impl Lost {
    /// The runner died while the host went on.
    pub const RUNNER: Self = Self {
        reason: "RunnerLost",
        message: "the process that ran the steps was killed or crashed; its log and journal end there",
        assume_started: false,
    };
    /// The host restarted in an orderly way, or nothing had begun.
    pub const REBOOTED: Self = Self {
        reason: "HostRebooted",
        message: "the host restarted before the work ended",
        assume_started: true,
    };
    /// The host restarted without having announced it.
    pub const CRASHED: Self = Self {
        reason: "HostCrashed",
        message: "the host crashed, lost power or was reset before the work ended",
        assume_started: true,
    };
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

    fn has_seen_shutdown(&self) -> bool {
        self.agent
            .iter()
            .any(|entry| entry.record == AgentRecord::ShutdownSeen)
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
            boot_id: of, running, ..
        } => match (of == boot_id, begun, running) {
            (true, true, _) | (true, false, true) => Next::Lost(Lost::RUNNER),
            (true, false, false) => Next::Resume,
            (false, false, _) => Next::Lost(Lost::REBOOTED),
            (false, true, _) if local.has_seen_shutdown() => Next::Lost(Lost::REBOOTED),
            (false, true, _) => Next::Lost(Lost::CRASHED),
        },
    }
}

#[cfg(test)]
mod tests;
