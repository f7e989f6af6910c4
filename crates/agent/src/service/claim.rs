//! Claiming: the only way to the right to start a Task.
//!
//! A claim is a compare-and-swap of the status. The right begins with its acknowledgement and only if that comes within 30 s of the
//! *sending*, on a clock that counts suspend: an agent that was frozen in between learns from the clock that it must not start. Where no
//! answer comes, the Task is read until it is known whose claim it holds. The second form, Claimed → Running, gives the same right to an
//! agent that claimed but died before it started a runner.

use super::{connection::Server, enrol::chain, home::Home, retry::Backoff};
use crate::platform;
use api::{
    Task,
    clock::Clock,
    task::{Claim, Drain, TaskPhase},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use std::time::Duration;

/// How long after sending it an acknowledgement gives the right to start.
const VALID: Duration = Duration::from_secs(30);
/// How long an answer is waited for before the Task is read instead.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of a claim.
#[derive(Debug)]
pub enum Outcome {
    /// Ours, and it may be started now.
    Granted(Box<Task>),
    /// Ours, but too late to start on this acknowledgement.
    Late(Box<Task>),
    /// Somebody else's, or ended: nothing to do with it.
    Lost(Option<Box<Task>>),
}

/// What a Task's status is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Bound → Claimed.
    Claim,
    /// Claimed → Running, of a claim of ours that was never started.
    Resume,
    /// Running or Rebooting → Rebooting, by work of ours that goes on after a restart of the host.
    Return {
        /// How many restarts it has asked for by now.
        reboots: i32,
    },
}

/// Claims Tasks of one namespace.
pub struct Claimer<'a> {
    /// Tasks of the namespace.
    pub tasks: Api<Task>,
    /// Who claims.
    pub home: &'a Home,
    /// Corrects the time of the claim.
    pub server: &'a Server,
    /// Tells that time.
    pub clock: &'a dyn Clock,
}

impl Claimer<'_> {
    /// Tries until it is known who has the Task. `sending` is called before each request, with the time that counts.
    pub async fn attempt<E>(
        &self,
        step: Step,
        mut task: Box<Task>,
        mut sending: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Outcome, E> {
        let mut backoff = Backoff::new(Duration::from_secs(5));
        loop {
            if !self.is_open(step, &task) {
                return Ok(Outcome::Lost(Some(task)));
            }
            let sent_at = platform::boot_nanos();
            sending(sent_at)?;
            let patch = Patch::Merge(self.patch(step, &task));
            let name = task.name().to_owned();
            let params = PatchParams::default();
            let sent = self.tasks.patch_status(&name, &params, &patch);
            match tokio::time::timeout(PATIENCE, sent).await {
                Ok(Ok(claimed)) => return Ok(in_time(sent_at, Box::new(claimed))),
                Ok(Err(kube::Error::Api(status))) if status.code == 404 => return Ok(Outcome::Lost(None)),
                Ok(Err(error)) => {
                    tracing::info!(task = name, error = %chain(&error), "claim not acknowledged; reading the Task");
                }
                Err(_) => tracing::info!(task = name, "no answer to the claim; reading the Task"),
            }
            match self.read(&name, task.uid(), &mut backoff).await {
                None => return Ok(Outcome::Lost(None)),
                // Our word stands there, whichever of our requests put it there; the oldest of them is not older than this process.
                Some(found) if self.is_done(step, &found) => return Ok(in_time(sent_at, found)),
                Some(found) => task = found,
            }
            backoff.wait().await;
        }
    }

    /// Ends a Task that nobody has claimed; true unless somebody was faster.
    pub async fn refuse(&self, task: &Task, phase: TaskPhase, reason: &str, message: &str) -> bool {
        let now = MicroTime(self.clock.now() + self.server.skew());
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": task.metadata.resource_version},
            "status": {"phase": phase, "reason": reason, "message": message, "finishedAt": now},
        }));
        let mut backoff = Backoff::new(Duration::from_secs(5));
        loop {
            let params = PatchParams::default();
            let sent = self.tasks.patch_status(task.name(), &params, &patch);
            match tokio::time::timeout(PATIENCE, sent).await {
                Ok(Ok(_)) => return true,
                Ok(Err(kube::Error::Api(status))) if status.code < 500 && status.code != 429 => return false,
                _ => backoff.wait().await,
            }
        }
    }

    fn patch(&self, step: Step, task: &Task) -> Value {
        let version = &task.metadata.resource_version;
        match step {
            Step::Claim => json!({
                "metadata": {"resourceVersion": version},
                "status": {"phase": TaskPhase::Claimed, "claim": Claim {
                    agent_instance: self.home.instance.clone(),
                    boot_id: self.home.boot_id.clone(),
                    nonce: self.home.nonce.clone(),
                    time: MicroTime(self.clock.now() + self.server.skew()),
                }},
            }),
            Step::Resume => json!({
                "metadata": {"resourceVersion": version},
                "status": {"phase": TaskPhase::Running},
            }),
            Step::Return { reboots } => json!({
                "metadata": {"resourceVersion": version},
                "status": {
                    "phase": TaskPhase::Rebooting,
                    "reboots": reboots,
                    "message": format!("the host is back from its restart, in boot {}", self.home.boot_id),
                },
            }),
        }
    }

    fn is_open(&self, step: Step, task: &Task) -> bool {
        match step {
            Step::Claim => task.phase().is_bound() && is_claimable(task),
            Step::Resume => task.phase() == TaskPhase::Claimed && self.is_ours(task),
            Step::Return { .. } => {
                matches!(task.phase(), TaskPhase::Running | TaskPhase::Rebooting)
                    && self.is_of_this_folder(task)
            }
        }
    }

    fn is_done(&self, step: Step, task: &Task) -> bool {
        match step {
            Step::Claim => {
                task.phase() == TaskPhase::Claimed
                    && claim_of(task).is_some_and(|claim| claim.nonce == self.home.nonce)
                    && self.is_ours(task)
            }
            Step::Resume => task.phase() == TaskPhase::Running && self.is_ours(task),
            // whose word it is cannot be told from a Task that waits for its restart: it is said again
            Step::Return { .. } => false,
        }
    }

    fn is_ours(&self, task: &Task) -> bool {
        claim_of(task).is_some_and(|claim| {
            claim.agent_instance == self.home.instance && claim.boot_id == self.home.boot_id
        })
    }

    fn is_of_this_folder(&self, task: &Task) -> bool {
        claim_of(task).is_some_and(|claim| claim.agent_instance == self.home.instance)
    }

    /// Reads a Task until the server answers; `None` where it is gone or another has its name.
    async fn read(&self, name: &str, uid: &str, backoff: &mut Backoff) -> Option<Box<Task>> {
        loop {
            match tokio::time::timeout(PATIENCE, self.tasks.get_opt(name)).await {
                Ok(Ok(found)) => return found.filter(|task| task.uid() == uid).map(Box::new),
                Ok(Err(error)) => {
                    tracing::debug!(task = name, error = %chain(&error), "cannot read the Task")
                }
                Err(_) => {}
            }
            backoff.wait().await;
        }
    }
}

/// Whether a Task that nobody has claimed may be claimed: not once it is withdrawn, nor while its node is being drained for it.
pub fn is_claimable(task: &Task) -> bool {
    let withdrawn = task.spec.stop.is_some() || task.metadata.deletion_timestamp.is_some();
    !withdrawn && task.spec.drain != Some(Drain::Wanted)
}

/// Who claimed a Task.
pub fn claim_of(task: &Task) -> Option<&Claim> {
    task.status.as_ref()?.claim.as_ref()
}

fn in_time(sent_at: u64, task: Box<Task>) -> Outcome {
    let age = Duration::from_nanos(platform::boot_nanos().saturating_sub(sent_at));
    if age < VALID {
        Outcome::Granted(task)
    } else {
        Outcome::Late(task)
    }
}

#[cfg(test)]
mod tests;
