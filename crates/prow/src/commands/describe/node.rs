//! A Node: what it is, what it can take, and what runs there.

use super::object::field;
use crate::{
    fleet::list,
    output::Table,
    session::Session,
    terminal::{self, Tone, paint},
};
use anyhow::Result;
use api::{Node, Task};

/// Prints everything after the head.
pub async fn body(session: &Session, node: &Node) -> Result<()> {
    let status = node.status.clone().unwrap_or_default();
    let state = match (node.is_ready(), node.spec.unschedulable) {
        (true, false) => "Ready",
        (true, true) => "Ready, cordoned",
        (false, _) => "NotReady",
    };
    field("State", &paint(Tone::of(state), state))?;
    let info = &status.node_info;
    field(
        "System",
        &format!("{} {} {}", info.os_image, info.architecture, info.kernel_version),
    )?;
    field("Agent", &info.agent_version)?;
    for taint in &node.spec.taints {
        field(
            "Taint",
            &format!("{}={}:{:?}", taint.key, taint.value, taint.effect),
        )?;
    }
    let amounts = |list: &api::placement::ResourceList| {
        list.iter()
            .map(|(name, amount)| format!("{name}={amount}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    field("Capacity", &amounts(&status.capacity))?;
    field("Allocatable", &amounts(&status.allocatable))?;
    for condition in &status.conditions {
        field(
            "Condition",
            &format!(
                "{}={} {} {}",
                condition.type_, condition.status, condition.reason, condition.message
            ),
        )?;
    }
    let path = format!(
        "/apis/prow.windows/v1/tasks?fieldSelector=spec.nodeName%3D{}",
        node.name()
    );
    let tasks: Vec<Task> = list(session, &path).await?;
    let open: Vec<&Task> = tasks
        .iter()
        .filter(|task| !task.status.as_ref().is_some_and(|s| s.phase.is_terminal()))
        .collect();
    terminal::line(format!(
        "Tasks:        {} open, {} ended",
        open.len(),
        tasks.len() - open.len()
    ))?;
    if !open.is_empty() {
        let mut table = Table::new(["  NAMESPACE", "NAME", "PHASE"]);
        for task in open {
            table.row([
                format!("  {}", task.metadata.namespace.as_deref().unwrap_or_default()),
                task.metadata.name.clone().unwrap_or_default(),
                format!("{:?}", task.status.as_ref().map(|s| s.phase).unwrap_or_default()),
            ]);
        }
        table.print(true)?;
    }
    Ok(())
}
