//! The node authorizer: what an agent may do, so that a taken-over host gets at nothing but its own work.
//!
//! It reads its own Node and the Tasks bound to it; a Job, Secret, ConfigMap or lock Lease only while a Task of its own
//! that has not ended names it. It writes only the status of its own Node and Tasks, its own heartbeat Lease, a request
//! to renew its own certificate, and Events about its own Tasks and Node. What is named is looked up in the cache when
//! asked for, so there is no graph that could lag behind.

use super::{Ask, Decision};
use crate::call::Call;
use crate::inner::Inner;
use crate::object::Object;
use crate::{NODE_LEASES, enrol};
use api::identity::Identity;
use machinery::status::Status;
use serde_json::Value;
use std::sync::Arc;

const TERMINAL: [&str; 6] = [
    "Succeeded",
    "Failed",
    "Cancelled",
    "Skipped",
    "Unknown",
    "Rejected",
];

/// Decides what the agent of node `me` may do.
pub(super) fn decide(inner: &Inner, user: &Identity, me: &str, ask: &Ask<'_>) -> Decision {
    let own = Own { inner, me };
    match (ask.group, ask.plural, ask.subresource) {
        (api::GROUP, "nodes", sub) => node(me, ask, sub),
        (api::GROUP, "tasks", sub) => own.task(ask, sub),
        (api::GROUP, "jobs", "") if ask.verb == "get" => {
            let named = own
                .jobs(ask.namespace)
                .into_iter()
                .any(|(job, _)| *job.name == *ask.name);
            denied_unless(
                named,
                "no Task of this node that has not ended belongs to this Job",
            )
        }
        ("", plural @ ("secrets" | "configmaps"), "") if ask.verb == "get" => denied_unless(
            own.refers(ask.namespace, plural, ask.name),
            "no Task of this node that has not ended refers to it",
        ),
        ("coordination.k8s.io", "leases", "") => own.lease(ask),
        ("certificates.k8s.io", "certificatesigningrequests", "") => match ask.verb {
            "create" => Decision::Allow,
            "get" => Decision::when(own_request(inner, user, ask.name)),
            _ => Decision::Deny(String::new()),
        },
        ("", "events", "") | ("events.k8s.io", "events", "") => {
            Decision::when(matches!(ask.verb, "create" | "patch" | "update"))
        }
        _ => Decision::Deny(String::new()),
    }
}

fn denied_unless(allowed: bool, hint: &str) -> Decision {
    if allowed {
        Decision::Allow
    } else {
        Decision::Deny(hint.into())
    }
}

fn node(me: &str, ask: &Ask<'_>, subresource: &str) -> Decision {
    let selects = ask.fields.exact("metadata.name") == Some(me);
    match (ask.verb, subresource) {
        ("get", "" | "status") | ("update" | "patch", "status") => {
            denied_unless(ask.name == me, "an agent reads and reports on its own Node only")
        }
        ("list" | "watch", "") => denied_unless(
            selects,
            &format!("an agent lists and watches its own Node only, with fieldSelector=metadata.name={me}"),
        ),
        ("update" | "patch", "") => {
            Decision::Deny("agents write nodes/status only; labels and taints are an administrator's".into())
        }
        _ => Decision::Deny(String::new()),
    }
}

/// Whether a certificate request was made by this user.
pub(super) fn own_request(inner: &Inner, user: &Identity, name: &str) -> bool {
    let requests = inner
        .cache
        .plural("certificates.k8s.io", "certificatesigningrequests");
    let Some(request) = requests.and_then(|cache| cache.get("", name)) else {
        return false;
    };
    request
        .value()
        .is_ok_and(|request| request["spec"]["username"] == *user.name)
}

/// What belongs to a node.
struct Own<'a> {
    inner: &'a Inner,
    me: &'a str,
}

impl Own<'_> {
    fn task(&self, ask: &Ask<'_>, subresource: &str) -> Decision {
        match (ask.verb, subresource) {
            ("get", "" | "status") | ("update" | "patch", "status") => {
                // A Task that is gone may be asked for: the agent must learn that it is.
                let foreign = self
                    .get(ask)
                    .is_some_and(|task| node_of(self.inner, &task) != self.me);
                denied_unless(!foreign, "the Task is bound to another node")
            }
            ("list" | "watch", "") => denied_unless(
                ask.fields.exact("spec.nodeName") == Some(self.me),
                &format!(
                    "an agent lists and watches its own Tasks only, with fieldSelector=spec.nodeName={}",
                    self.me
                ),
            ),
            _ => Decision::Deny(String::new()),
        }
    }

    fn lease(&self, ask: &Ask<'_>) -> Decision {
        if ask.namespace == NODE_LEASES {
            let mine = ask.name == self.me || ask.verb == "create" && ask.name.is_empty();
            return denied_unless(
                mine && matches!(ask.verb, "get" | "create" | "update" | "patch"),
                "an agent renews the Lease of its own name only",
            );
        }
        let named = ask.verb == "get"
            && self.tasks(ask.namespace).iter().any(|task| {
                let locks = task
                    .value()
                    .map(|task| task["spec"]["locks"].clone())
                    .unwrap_or_default();
                locks
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|lock| lock["name"] == *ask.name)
            });
        denied_unless(named, "no Task of this node that has not ended holds it")
    }

    fn get(&self, ask: &Ask<'_>) -> Option<Arc<Object>> {
        self.inner
            .cache
            .plural(ask.group, ask.plural)?
            .get(ask.namespace, ask.name)
    }

    /// The Tasks of this node in a namespace that have not ended.
    fn tasks(&self, namespace: &str) -> Vec<Arc<Object>> {
        let Some(tasks) = self.inner.cache.plural(api::GROUP, "tasks") else {
            return Vec::new();
        };
        let kind = &tasks.shape.kind;
        let Some(field) = kind.selectable.iter().position(|path| path == "spec.nodeName") else {
            return Vec::new();
        };
        let (mut own, _) = self.inner.cache.having(tasks, field, self.me);
        own.retain(|task| {
            *task.namespace == *namespace && !TERMINAL.contains(&task.field_at(kind, "status.phase").as_ref())
        });
        own
    }

    /// The Jobs those Tasks belong to, by name and uid, each with one of its Tasks.
    fn jobs(&self, namespace: &str) -> Vec<(Arc<Object>, Arc<Object>)> {
        let Some(jobs) = self.inner.cache.plural(api::GROUP, "jobs") else {
            return Vec::new();
        };
        let found = self.tasks(namespace).into_iter().filter_map(|task| {
            let value = task.value().ok()?;
            let reference = &value["spec"]["jobRef"];
            let job = jobs.get(namespace, reference["name"].as_str()?)?;
            (reference["uid"] == *job.uid).then_some((job, task))
        });
        found.collect()
    }

    fn refers(&self, namespace: &str, plural: &str, name: &str) -> bool {
        let jobs = self.jobs(namespace);
        jobs.iter()
            .any(|(job, _)| job.value().is_ok_and(|job| names(&job["spec"], plural, name)))
    }
}

fn node_of(inner: &Inner, task: &Object) -> String {
    let kind = inner
        .cache
        .plural(api::GROUP, "tasks")
        .map(|tasks| &tasks.shape.kind);
    kind.map(|kind| task.field_at(kind, "spec.nodeName").into_owned())
        .unwrap_or_default()
}

/// Whether a Job's spec refers to a Secret or ConfigMap: wherever a field of one of Kubernetes' reference names stands.
fn names(value: &Value, plural: &str, name: &str) -> bool {
    let fields: &[&str] = if plural == "secrets" {
        &[
            "secretKeyRef",
            "secretRef",
            "credentialSecretRef",
            "imagePullSecrets",
            "secret",
        ]
    } else {
        &["configMapKeyRef", "configMapRef", "configMap"]
    };
    let is = |value: &Value| match value {
        Value::String(text) => text == name,
        Value::Object(map) => map.get("name").is_some_and(|n| n == name),
        Value::Array(all) => all.iter().any(|one| one["name"] == name),
        _ => false,
    };
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| fields.contains(&key.as_str()) && is(value) || names(value, plural, name)),
        Value::Array(all) => all.iter().any(|value| names(value, plural, name)),
        _ => false,
    }
}

/// What can only be judged by the object itself: an agent's Events are about its own Tasks and Node, its requests for
/// its own certificate.
pub(crate) fn admits(call: &Call<'_>, object: &Value) -> Result<(), Status> {
    let Some(me) = call.user.node().filter(|_| !call.user.is_master()) else {
        return Ok(());
    };
    let kind = call.kind();
    let refused = |why: &str| {
        Err(Status::forbidden(
            kind,
            object["metadata"]["name"].as_str().unwrap_or_default(),
            why,
        ))
    };
    match kind.plural.as_str() {
        "events" => {
            let about = if object["involvedObject"].is_object() {
                &object["involvedObject"]
            } else {
                &object["regarding"]
            };
            let name = about["name"].as_str().unwrap_or_default();
            let own = match about["kind"].as_str() {
                Some("Node") => name == me,
                Some("Task") => {
                    let namespace = about["namespace"].as_str().unwrap_or_default();
                    let tasks = call.inner.cache.plural(api::GROUP, "tasks");
                    namespace == call.namespace
                        && tasks
                            .and_then(|tasks| tasks.get(namespace, name))
                            .is_none_or(|task| node_of(call.inner, &task) == me)
                }
                _ => false,
            };
            if own {
                Ok(())
            } else {
                refused("an agent reports Events about its own Tasks and Node only")
            }
        }
        "leases" if object["metadata"]["name"] != *me => {
            refused("an agent renews the Lease of its own name only")
        }
        "certificatesigningrequests" if object["spec"]["signerName"] != enrol::SIGNER => {
            refused("an agent asks the signer prow.windows/node-client only")
        }
        _ => Ok(()),
    }
}
