//! Telling the server where a Task stands.
//!
//! A change is sent when it is a second old and no newer one has taken its place; the end is sent at once. Only what differs from what the
//! server last acknowledged goes over the wire. The claim and the conditions are not touched: other hands write those.

use super::{enrol::chain, host::Host, retry::Backoff};
use api::{
    Task,
    task::{LateReport, TaskPhase, TaskStatus},
};
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;

/// How old a change is when it is sent.
const AGE: Duration = Duration::from_secs(1);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(15);

/// What became of the end of a Task.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// The server has it.
    Acknowledged,
    /// The server had ended the Task already; the result went to `lateReport`.
    TooLate,
    /// There is no such Task any more.
    Gone,
}

/// Tells of one Task.
pub struct Reporter {
    wanted: watch::Sender<Wanted>,
    told: watch::Receiver<Option<Told>>,
    heard: watch::Receiver<Heard>,
}

#[derive(Default)]
struct Wanted {
    status: Option<TaskStatus>,
    /// Whether the status is the last.
    end: bool,
    /// Whether it may go now, however young it is.
    now: bool,
}

/// What the server last answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Heard {
    #[default]
    Nothing,
    /// It has this phase, after so many restarts of the host.
    Phase(TaskPhase, i32),
    /// The Task has ended there, or is gone.
    Over,
}

impl Reporter {
    /// Starts to tell of a Task, as the server last showed it.
    pub fn start(host: Arc<Host>, task: &Task) -> Self {
        let (wanted, changes) = watch::channel(Wanted::default());
        let (tell, told) = watch::channel(None);
        let (hear, heard) = watch::channel(Heard::Nothing);
        let line = Line {
            tasks: Api::namespaced(host.client.clone(), task.namespace()),
            name: task.name().to_owned(),
            uid: task.uid().to_owned(),
            acknowledged: fields(task.status.clone().unwrap_or_default(), SignedDuration::ZERO),
            phase: task.phase(),
            hear,
            host,
        };
        tokio::spawn(async move {
            if let Some(outcome) = line.run(changes).await {
                tell.send_replace(Some(outcome));
            }
        });
        Self { wanted, told, heard }
    }

    /// The status so far.
    pub fn set(&self, status: TaskStatus) {
        self.wanted.send_modify(|wanted| wanted.status = Some(status));
    }

    /// The status so far, at once; returns when the server has its phase and count of restarts, with false where the Task has ended there or is gone.
    pub async fn confirm(&mut self, status: TaskStatus) -> bool {
        // the phase alone may be that of an earlier restart
        let all = Heard::Phase(status.phase, status.reboots);
        self.wanted.send_modify(|wanted| {
            wanted.status = Some(status);
            wanted.now = true;
        });
        let heard = self
            .heard
            .wait_for(|heard| *heard == all || *heard == Heard::Over);
        heard.await.is_ok_and(|heard| *heard != Heard::Over)
    }

    /// The last status; returns when the server has it, or will not take it.
    pub async fn end(&mut self, status: TaskStatus) -> Told {
        self.wanted.send_modify(|wanted| {
            wanted.status = Some(status);
            wanted.end = true;
            wanted.now = true;
        });
        let told = self.told.wait_for(Option::is_some).await;
        told.ok().and_then(|told| told.clone()).unwrap_or(Told::Gone)
    }
}

struct Line {
    host: Arc<Host>,
    tasks: Api<Task>,
    name: String,
    uid: String,
    acknowledged: Map<String, Value>,
    phase: TaskPhase,
    hear: watch::Sender<Heard>,
}

enum Sent {
    Acknowledged,
    Ended,
    Gone,
}

impl Line {
    /// Sends until the end is told, the Task is found ended or gone (then waits for the end to say so), or nobody reports any more.
    async fn run(mut self, mut changes: watch::Receiver<Wanted>) -> Option<Told> {
        let mut backoff = Backoff::new(Duration::from_secs(10));
        loop {
            changes.changed().await.ok()?;
            // Young changes wait for their successors, unless one is urgent.
            let urgent = changes.wait_for(|wanted| wanted.now);
            let _ = tokio::time::timeout(AGE, urgent).await;
            loop {
                let (status, end) = {
                    let wanted = changes.borrow_and_update();
                    (wanted.status.clone(), wanted.end)
                };
                let Some(status) = status else { break };
                match self.send(status.clone()).await {
                    Ok(Sent::Acknowledged) if end => return Some(Told::Acknowledged),
                    Ok(Sent::Acknowledged) => {
                        self.hear.send_replace(Heard::Phase(self.phase, status.reboots));
                        break;
                    }
                    Ok(Sent::Ended | Sent::Gone) if !end => {
                        self.hear.send_replace(Heard::Over);
                        // The one who runs the task learns it from the watch; what remains is the result.
                        changes.wait_for(|wanted| wanted.end).await.ok()?;
                    }
                    Ok(Sent::Gone) => return Some(Told::Gone),
                    Ok(Sent::Ended) => match self.report_late(&status).await {
                        Ok(()) => return Some(Told::TooLate),
                        Err(error) => self.failed(&error),
                    },
                    Err(error) => self.failed(&error),
                }
                if changes.has_changed().is_err() {
                    return None;
                }
                backoff.wait().await;
            }
            backoff.reset();
        }
    }

    fn failed(&self, error: &kube::Error) {
        tracing::info!(task = self.name, error = %chain(error), "status not acknowledged; trying again");
    }

    async fn send(&mut self, mut status: TaskStatus) -> Result<Sent, kube::Error> {
        // A claim resumed was told as Running before the runner's journal says so.
        if status.phase == TaskPhase::Claimed && self.phase == TaskPhase::Running {
            status.phase = TaskPhase::Running;
        }
        let phase = status.phase;
        let wanted = fields(status, self.host.server.skew());
        let difference = difference(&self.acknowledged, &wanted);
        if difference.is_empty() {
            return Ok(Sent::Acknowledged);
        }
        match self.patch(json!({"status": difference})).await {
            Ok(task) if task.uid() != self.uid => Ok(Sent::Gone),
            Ok(_) => {
                self.acknowledged = wanted;
                self.phase = phase;
                Ok(Sent::Acknowledged)
            }
            Err(kube::Error::Api(refused)) if matches!(refused.code, 404 | 409 | 422 | 403) => {
                match self.read().await? {
                    None => Ok(Sent::Gone),
                    Some(task) if task.phase().is_terminal() => {
                        // Perhaps by an own write whose answer was lost.
                        let theirs = fields(task.status.clone().unwrap_or_default(), SignedDuration::ZERO);
                        let ours =
                            phase.is_terminal() && theirs.get("finishedAt") == wanted.get("finishedAt");
                        Ok(if ours && theirs.get("phase") == wanted.get("phase") {
                            Sent::Acknowledged
                        } else {
                            Sent::Ended
                        })
                    }
                    Some(task) => {
                        self.phase = task.phase();
                        self.acknowledged =
                            fields(task.status.clone().unwrap_or_default(), SignedDuration::ZERO);
                        Err(kube::Error::Api(refused))
                    }
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Adds what we know to a Task that was ended by others.
    async fn report_late(&self, status: &TaskStatus) -> Result<(), kube::Error> {
        let late = LateReport {
            phase: status.phase,
            reason: status.reason.clone(),
            message: status.message.clone(),
            time: MicroTime(self.host.clock.now() + self.host.server.skew()),
        };
        match self.patch(json!({"status": {"lateReport": late}})).await {
            Err(kube::Error::Api(refused)) if refused.code < 500 && refused.code != 429 => {
                tracing::warn!(task = self.name, error = refused.message, "late report refused");
                Ok(())
            }
            other => other.map(|_| ()),
        }
    }

    async fn patch(&self, patch: Value) -> Result<Task, kube::Error> {
        let params = PatchParams::default();
        let patch = Patch::Merge(patch);
        within(self.tasks.patch_status(&self.name, &params, &patch)).await
    }

    async fn read(&self) -> Result<Option<Task>, kube::Error> {
        let found = within(self.tasks.get_opt(&self.name)).await?;
        Ok(found.filter(|task| task.uid() == self.uid))
    }
}

/// Tells that the logs of an ended Task are complete.
pub async fn logs_complete(host: &Host, task: &Task) {
    let tasks: Api<Task> = Api::namespaced(host.client.clone(), task.namespace());
    let patch = Patch::Merge(json!({"metadata": {"uid": task.uid()}, "status": {"logsPending": false}}));
    let mut backoff = Backoff::new(Duration::from_secs(10));
    loop {
        match within(tasks.patch_status(task.name(), &PatchParams::default(), &patch)).await {
            Ok(_) => return,
            Err(kube::Error::Api(refused)) if refused.code < 500 && refused.code != 429 => return, // gone
            Err(_) => backoff.wait().await,
        }
    }
}

async fn within<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, kube::Error> {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(answer) => answer,
        Err(_) => Err(kube::Error::Service("no answer in time".into())),
    }
}

/// The fields an agent writes, with times by the server's clock.
fn fields(mut status: TaskStatus, skew: SignedDuration) -> Map<String, Value> {
    if !skew.is_zero() {
        let correct = |time: &mut Option<MicroTime>| {
            if let Some(time) = time {
                time.0 += skew;
            }
        };
        correct(&mut status.started_at);
        correct(&mut status.finished_at);
        for step in &mut status.steps {
            correct(&mut step.started_at);
            correct(&mut step.finished_at);
        }
    }
    status.claim = None;
    status.conditions.clear();
    status.late_report = None;
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(), // a status is a struct with string keys: it always serialises to an object
    }
}

/// The merge patch (RFC 7386) that turns one object into another.
fn difference(from: &Map<String, Value>, to: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for name in from.keys().filter(|name| !to.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in to {
        match (from.get(name), value) {
            (Some(old), new) if old == new => {}
            (Some(Value::Object(old)), Value::Object(new)) => {
                patch.insert(name.clone(), Value::Object(difference(old, new)));
            }
            (_, new) => {
                patch.insert(name.clone(), new.clone());
            }
        }
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::task::{StepPhase, StepStatus};

    fn status(phase: TaskPhase) -> TaskStatus {
        TaskStatus {
            phase,
            ..TaskStatus::default()
        }
    }

    #[test]
    fn only_what_changed_is_sent_and_what_went_away_is_removed() {
        let mut old = status(TaskPhase::Running);
        old.reason = "RunnerLost".into();
        old.outputs = [("a".into(), "1".into()), ("b".into(), "2".into())].into();
        old.logs_pending = true;
        let mut new = status(TaskPhase::Running);
        new.outputs = [("a".into(), "1".into()), ("c".into(), "3".into())].into();
        new.steps.push(StepStatus {
            name: "x".into(),
            phase: StepPhase::Running,
            ..StepStatus::default()
        });
        let fields = |s: &TaskStatus| fields(s.clone(), SignedDuration::ZERO);
        let patch = Value::Object(difference(&fields(&old), &fields(&new)));
        assert_eq!(patch["reason"], Value::Null);
        assert_eq!(patch["logsPending"], Value::Null);
        assert_eq!(patch["outputs"], json!({"b": null, "c": "3"}));
        assert_eq!(patch["steps"][0]["name"], "x");
        assert!(patch.get("phase").is_none());
        assert!(difference(&fields(&new), &fields(&new)).is_empty());
    }

    #[test]
    fn times_are_told_by_the_servers_clock_and_others_fields_are_left_alone() {
        let mut told = status(TaskPhase::Succeeded);
        let at = "2026-01-01T00:00:00Z".parse().unwrap();
        told.finished_at = Some(MicroTime(at));
        told.claim = Some(api::task::Claim {
            agent_instance: "i".into(),
            boot_id: "b".into(),
            nonce: "n".into(),
            time: MicroTime(at),
        });
        let fields = fields(told, SignedDuration::from_hours(2));
        assert!(
            fields["finishedAt"]
                .as_str()
                .unwrap()
                .starts_with("2026-01-01T02:00:00")
        );
        assert!(!fields.contains_key("claim"));
    }
}
