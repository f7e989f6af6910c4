//! When work must stop: as the Task says, when it is being deleted, and when the server has ended it or does not know it any more.

use super::{enrol::chain, host::Host, retry::Backoff};
use api::{
    Task,
    task::{Stop, TaskPhase},
};
use kube::Api;
use std::{sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The latest of a Task. It may have left the watch, which alone means nothing.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// As last seen.
    pub task: Option<Arc<Task>>,
    /// Whether it left the watch since.
    pub left: bool,
}

/// What the server knows of a Task, read live.
pub async fn look_up(host: &Host, namespace: &str, name: &str, uid: &str) -> Option<Task> {
    let tasks: Api<Task> = Api::namespaced(host.client.clone(), namespace);
    let mut backoff = Backoff::new(Duration::from_secs(10));
    loop {
        match tokio::time::timeout(Duration::from_secs(15), tasks.get_opt(name)).await {
            Ok(Ok(found)) => return found.filter(|task| task.uid() == uid),
            Ok(Err(error)) => tracing::debug!(task = name, error = %chain(&error), "cannot read the Task"),
            Err(_) => {}
        }
        backoff.wait().await;
    }
}

/// The stop order of a running Task, as it comes and grows harder.
pub struct Orders {
    /// The order, once there is one.
    pub stop: watch::Receiver<Option<Stop>>,
    _following: AbortOnDropHandle<()>,
}

impl Orders {
    /// Follows a Task. `grace_seconds` is for stops that name no grace of their own.
    pub fn follow(host: Arc<Host>, task: &Task, mut news: watch::Receiver<News>, grace_seconds: i64) -> Self {
        let (namespace, name, uid) = (
            task.namespace().to_owned(),
            task.name().to_owned(),
            task.uid().to_owned(),
        );
        let (order, stop) = watch::channel(order(Some(task), grace_seconds));
        let following = tokio::spawn(async move {
            let mut departure = host.departure.orders(grace_seconds);
            news.mark_changed();
            loop {
                tokio::select! {
                    changed = news.changed() => if changed.is_err() {
                        return;
                    },
                    stop = departure.next() => {
                        order.send_replace(Some(stop)); // the runner keeps the first reason and the shortest grace
                        continue;
                    }
                }
                let News { task, left } = news.borrow_and_update().clone();
                let wanted = if left {
                    self::order(
                        look_up(&host, &namespace, &name, &uid).await.as_ref(),
                        grace_seconds,
                    )
                } else {
                    task.and_then(|task| self::order(Some(&task), grace_seconds))
                };
                order.send_if_modified(|known| {
                    let changed = wanted.is_some() && *known != wanted;
                    if changed {
                        known.clone_from(&wanted);
                    }
                    changed
                });
            }
        });
        Self {
            stop,
            _following: AbortOnDropHandle::new(following),
        }
    }
}

/// The order that follows from a Task as it stands; from one that is gone too.
pub fn order(task: Option<&Task>, grace_seconds: i64) -> Option<Stop> {
    let over = |message: &str| {
        Some(Stop {
            reason: "Ended".into(),
            message: message.into(),
            grace_seconds,
            force: true, // neither rollback nor finally: the work may have begun elsewhere
        })
    };
    let Some(task) = task else {
        return over("the Task was removed from the server");
    };
    if task.phase().is_terminal() {
        return over("the Task had ended on the server");
    }
    let deleted = || {
        task.metadata.deletion_timestamp.as_ref().map(|_| Stop {
            reason: "Cancelled".into(),
            message: "the Task was deleted".into(),
            grace_seconds,
            force: false,
        })
    };
    task.spec.stop.clone().or_else(deleted)
}

/// How a Task ends that was stopped before anything of it had started.
pub fn ended_unstarted(stop: &Stop) -> (TaskPhase, String, String) {
    let message = if stop.message.is_empty() {
        "stopped before it started".to_owned()
    } else {
        stop.message.clone()
    };
    (
        crate::runner::phase_when_stopped(&stop.reason),
        stop.reason.clone(),
        message,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::TaskStatus;

    #[test]
    fn what_a_task_says_of_stopping() {
        let mut task = Task::default();
        assert_eq!(order(Some(&task), 30), None);
        task.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            "2026-01-01T00:00:00Z".parse().unwrap(),
        ));
        let deleted = order(Some(&task), 30).unwrap();
        assert!(!deleted.force && deleted.grace_seconds == 30);
        task.spec.stop = Some(Stop {
            reason: "DeadlineExceeded".into(),
            ..Stop::default()
        });
        assert_eq!(order(Some(&task), 30), task.spec.stop);
        task.status = Some(TaskStatus {
            phase: TaskPhase::Unknown,
            ..TaskStatus::default()
        });
        assert!(order(Some(&task), 30).unwrap().force);
        assert!(order(None, 30).unwrap().force);
    }
}
