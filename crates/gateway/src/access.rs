//! Who may do what with a log: system:masters all, an agent what is of Tasks on its own node, nobody else anything.

use crate::refusal::Refusal;
use api::identity::Identity;
use api::task::Task;
use axum::Extension;
use machinery::status::{Reason, Status};

/// Lets `identity` through to the logs of `task` or says why not. The Task's name is in `what`, so that a refusal tells
/// no more than the request did.
pub(crate) fn check(identity: &Identity, verb: &str, what: &str, task: &Task) -> Result<(), Refusal> {
    if identity.is_master() || identity.node() == Some(&task.spec.node_name) {
        return Ok(());
    }
    Err(refused(identity, verb, what))
}

/// Refuses those who may read no logs at all before anything is looked up, so they cannot probe for names.
pub(crate) fn check_any(identity: &Identity, verb: &str, what: &str) -> Result<(), Refusal> {
    if identity.is_master() || identity.node().is_some() {
        return Ok(());
    }
    Err(refused(identity, verb, what))
}

/// Who asks; nobody in particular where authentication left nothing.
pub(crate) fn who(extension: Option<Extension<Identity>>) -> Identity {
    extension.map_or_else(Identity::anonymous, |Extension(identity)| identity)
}

fn refused(identity: &Identity, verb: &str, what: &str) -> Refusal {
    let why = match identity.node() {
        Some(node) => format!("the Task is not on node \"{node}\""),
        None => "only system:masters and the Task's own agent may".to_owned(),
    };
    let message = format!(
        "User \"{}\" cannot {verb} the logs of task {what}: {why}",
        identity.name
    );
    Status::new(Reason::Forbidden, message).into()
}
