//! A Task: its steps; of a failed one the step, its exit code, its last lines, and what that means.

use super::object::field;
use crate::{
    follow,
    output::Table,
    session::Session,
    summary,
    terminal::{self, Tone, paint},
};
use anyhow::Result;
use api::{
    Task,
    task::{StepPhase, StepStatus, TaskPhase},
};

/// Lines of output shown of a failed step.
const LAST_LINES: u64 = 15;

/// Prints everything after the head.
pub async fn body(session: &Session, task: &Task) -> Result<()> {
    let status = task.status.clone().unwrap_or_default();
    let phase = format!("{:?}", status.phase);
    field("Job", &task.spec.job_ref.name)?;
    field("Node", &task.spec.node_name)?;
    field(
        "Index",
        &format!(
            "{} of {}, attempt {}",
            task.spec.index,
            task.spec.count,
            task.spec.attempt + 1
        ),
    )?;
    field("Phase", &paint(Tone::of(&phase), &phase))?;
    if !status.reason.is_empty() {
        field("Reason", &status.reason)?;
    }
    if !status.message.is_empty() {
        field("Message", &status.message)?;
    }
    if let Some(claim) = &status.claim {
        field(
            "Claimed",
            &format!("{} by agent {}", claim.time.0, claim.agent_instance),
        )?;
    }
    if let Some(stop) = &task.spec.stop {
        field("Stop", &format!("{} {}", stop.reason, stop.message))?;
    }
    if let Some(resolution) = &task.spec.resolution {
        field(
            "Resolution",
            &format!("{:?} by {}: {}", resolution.as_, resolution.by, resolution.reason),
        )?;
    }
    if let Some(late) = &status.late_report {
        field(
            "Late report",
            &format!("{:?} {} {}", late.phase, late.reason, late.message),
        )?;
    }
    for condition in &status.conditions {
        field(
            "Condition",
            &format!("{}={} {}", condition.type_, condition.status, condition.message),
        )?;
    }
    steps(task)?;
    if matches!(status.phase, TaskPhase::Failed | TaskPhase::Unknown) {
        terminal::line("")?;
        failure(session, task).await?;
    }
    Ok(())
}

/// A table of the steps.
pub fn steps(task: &Task) -> Result<()> {
    let Some(status) = task.status.as_ref().filter(|status| !status.steps.is_empty()) else {
        return Ok(());
    };
    terminal::line("Steps:")?;
    let mut table = Table::new(["  NAME", "PHASE", "REASON", "EXIT", "TRIES", "OUTPUTS"]);
    for step in &status.steps {
        let outputs: Vec<String> = step
            .outputs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        table.row([
            format!("  {}", step.name),
            format!("{:?}", step.phase),
            step.reason.clone(),
            summary::exit(step),
            step.attempts.to_string(),
            outputs.join(" ").replace('\n', " "),
        ]);
    }
    table.print(true)?;
    Ok(())
}

/// Where and how a Task failed.
pub async fn failure(session: &Session, task: &Task) -> Result<()> {
    let status = task.status.clone().unwrap_or_default();
    let (name, node) = (
        task.metadata.name.as_deref().unwrap_or_default(),
        &task.spec.node_name,
    );
    let Some(step) = summary::failed_step(task) else {
        let word = if status.phase == TaskPhase::Unknown {
            "has an unknown outcome"
        } else {
            "failed"
        };
        let title = format!("Task {name} on {node} {word}: {}", status.reason);
        terminal::line(paint(Tone::Bad, title))?;
        if !status.message.is_empty() {
            terminal::line(format!("  {}", status.message))?;
        }
        if let Some(hint) = meaning(&status.reason) {
            terminal::line(format!("  {hint}"))?;
        }
        return Ok(());
    };
    terminal::line(paint(
        Tone::Bad,
        format!(
            "Step {} failed on {node} (Task {name}, attempt {})",
            step.name,
            task.spec.attempt + 1
        ),
    ))?;
    terminal::line(format!("  {}", ending(step)))?;
    let namespace = task.metadata.namespace.as_deref().unwrap_or_default();
    let lines = follow::read_step(session, namespace, name, &step.name, Some(LAST_LINES)).await?;
    if lines.is_empty() {
        if step.message.is_empty() {
            terminal::line("  It printed nothing.")?;
        } else {
            step.message
                .lines()
                .try_for_each(|line| terminal::line(format!("  {line}")))?;
        }
    } else {
        terminal::line("  Last lines:")?;
        for line in lines {
            let text = if line.is_error {
                paint(Tone::Wait, &line.text)
            } else {
                line.text
            };
            terminal::line(format!("    {text}"))?;
        }
    }
    let skipped = status
        .steps
        .iter()
        .filter(|s| s.phase == StepPhase::Skipped)
        .count();
    if skipped > 0 {
        terminal::line(format!("  {skipped} later steps were skipped."))?;
    }
    if let Some(rollback) = status.rollback {
        terminal::line(format!("  Rollback: {rollback:?}"))?;
    }
    if let Some(hint) = meaning(&step.reason).or_else(|| meaning(&status.reason)) {
        terminal::line(format!("  {hint}"))?;
    }
    Ok(())
}

fn ending(step: &StepStatus) -> String {
    let tries = if step.attempts > 1 {
        format!(" after {} tries", step.attempts)
    } else {
        String::new()
    };
    match (summary::exit(step), step.reason.as_str()) {
        (exit, "" | "ExitCode" | "Failed") if !exit.is_empty() => format!("Exit code {exit}{tries}"),
        (exit, reason) if !exit.is_empty() => format!("{reason}, exit code {exit}{tries}"),
        (_, reason) => format!("{reason}{tries}"),
    }
}

/// What a reason means for whoever reads it first.
fn meaning(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "Timeout" => {
            "It took longer than timeoutSeconds or taskTimeoutSeconds allow: raise them, or find out what it waited for."
        }
        "StartFailed" => {
            "The program could not be started: is it installed on that node, and is its name or path right?"
        }
        "CheckFailed" => "The step's `check` neither said yes (0) nor no (1): it must end with one of them.",
        "NotConverged" => {
            "The step ran, but its `check` still says no: the step does not do what the check looks for."
        }
        "WhenError" => {
            "The `when` expression could not be evaluated: is a name misspelt, or a label or output missing?"
        }
        "SecretUnavailable" => {
            "A Secret or key it needs is not there: `prow plan -f FILE` lists what is missing."
        }
        "ConfigMapUnavailable" => {
            "A ConfigMap or key it needs is not there: `prow plan -f FILE` lists what is missing."
        }
        "OutOfMemory" => "It used more memory than its limit: raise resources.limits.memory.",
        "RunnerLost" => {
            "The process that ran the steps ended without a word; whether the step did its work is for you to find out."
        }
        "HostRebooted" | "HostCrashed" => {
            "The host went down while it ran; whether the step did its work is for you to find out."
        }
        "JournalLost" => "The agent no longer has the Task's journal, so it was not started again.",
        "NodeUnavailable" => "The node was not available in time: `prow why` says why.",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_shown_as_people_look_it_up() {
        let step = |reason: &str, code, attempts| StepStatus {
            reason: reason.into(),
            exit_code: code,
            attempts,
            ..Default::default()
        };
        assert_eq!(ending(&step("", Some(3), 1)), "Exit code 3");
        assert_eq!(
            ending(&step("ExitCode", Some(0xC000_0005), 2)),
            "Exit code 3221225477 (0xC0000005 STATUS_ACCESS_VIOLATION) after 2 tries"
        );
        assert_eq!(ending(&step("Timeout", None, 1)), "Timeout");
        assert_eq!(
            ending(&step("NotConverged", Some(1), 1)),
            "NotConverged, exit code 1"
        );
    }
}
