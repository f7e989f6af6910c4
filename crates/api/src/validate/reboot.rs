//! Restarts of the host: which steps may ask for one, and what the Job must say for it.

use crate::{
    JobSpec,
    field::{Errors, Path},
    job::Impact,
    step::{Reboot, RebootPolicy, Resume, Step},
};

pub(super) fn job(spec: &JobSpec, path: &Path, errors: &mut Errors) {
    if spec.drain_timeout_seconds.is_some() && spec.impact != Impact::Disruptive {
        errors.forbidden(
            &path.child("drainTimeoutSeconds"),
            "only a Job with impact: Disruptive waits for the node's other Tasks; set it or remove this",
        );
    }
    let mut asking = spec.all_steps().filter(|(_, _, step)| may_reboot(step));
    if let Some((list, i, _)) = asking.next()
        && spec.impact != Impact::Disruptive
    {
        errors.required(
            &path.child("impact"),
            format_args!("must be Disruptive, since {list}[{i}] may restart the host"),
        );
    }
}

pub(super) fn step(step: &Step, list: &str, path: &Path, errors: &mut Errors) {
    let Some(reboot) = &step.reboot else { return };
    let path = path.child("reboot");
    if reboot.policy == RebootPolicy::Never {
        let plain = Reboot {
            max_resumes: 3,
            timeout_seconds: 3600,
            ..Reboot::default()
        };
        if *reboot != plain {
            errors.forbidden(
                &path,
                "the other fields mean nothing while policy is Never; set policy or remove them",
            );
        }
        return;
    }
    if list != "steps" {
        errors.forbidden(
            &path.child("policy"),
            format_args!("only a step of steps may restart the host, not one of {list}"),
        );
    }
    if reboot.policy == RebootPolicy::Always && reboot.resume == Resume::Same && step.check.is_none() {
        errors.forbidden(
            &path.child("resume"),
            "Always and Same together restart without end; add a check that says when it is enough, or use IfRequested",
        );
    }
    if reboot
        .ready_check
        .as_ref()
        .is_some_and(|check| check.trim().is_empty())
    {
        errors.required(&path.child("readyCheck"), "the script is empty");
    }
}

fn may_reboot(step: &Step) -> bool {
    step.reboot
        .as_ref()
        .is_some_and(|r| r.policy != RebootPolicy::Never)
}
