use super::*;
use crate::journal::{List, Restart, VERSION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use std::collections::BTreeMap;

const BOOT: &str = "this boot";
const EARLIER: &str = "an earlier boot";

fn at<R>(record: R) -> Entry<R> {
    Entry {
        v: VERSION,
        at: MicroTime("2026-01-01T00:00:00Z".parse().unwrap()),
        record,
    }
}

fn stored() -> Local {
    Local {
        agent: vec![at(AgentRecord::Stored { boot_id: BOOT.into() })],
        ..Local::default()
    }
}

fn begun() -> Local {
    let runner = Identity {
        pid: 1,
        created: 1,
        boot_id: BOOT.into(),
        image: "/prow-agent".into(),
    };
    let mut local = stored();
    local.run = vec![
        at(RunRecord::RunnerStarted {
            runner,
            containment: Some("/cg".into()),
        }),
        at(RunRecord::StepStarted {
            list: List::Steps,
            place: 0,
            name: "a".into(),
            attempt: 1,
            restarts_host: false,
        }),
    ];
    local
}

fn finished() -> Local {
    let mut local = begun();
    local.run.push(at(RunRecord::Finished {
        phase: TaskPhase::Succeeded,
        reason: String::new(),
        message: String::new(),
        fatal: false,
        retry_code: false,
        outputs: BTreeMap::new(),
    }));
    local
}

fn alive(mut local: Local) -> Local {
    local.alive = true;
    local
}

fn claimed(boot: &str) -> Remote {
    Remote::Claimed {
        ours: true,
        boot_id: boot.into(),
        running: false,
        rebooting: false,
        reboots: 0,
    }
}

fn running(boot: &str) -> Remote {
    Remote::Claimed {
        ours: true,
        boot_id: boot.into(),
        running: true,
        rebooting: false,
        reboots: 0,
    }
}

fn foreign(boot: &str) -> Remote {
    Remote::Claimed {
        ours: false,
        boot_id: boot.into(),
        running: true,
        rebooting: false,
        reboots: 0,
    }
}

#[test]
fn the_recovery_table() {
    let shutdown = || {
        let mut local = begun();
        local.agent.push(at(AgentRecord::ShutdownSeen));
        local
    };
    let rows: Vec<(&str, Remote, Local, Next)> = vec![
        ("new", Remote::Bound, Local::default(), Next::Claim),
        ("stored, never claimed", Remote::Bound, stored(), Next::Claim),
        ("claimed, never started", claimed(BOOT), stored(), Next::Resume),
        (
            "resumed, then died",
            running(BOOT),
            stored(),
            Next::Lost(Lost::RUNNER),
        ),
        ("its runner lives", claimed(BOOT), alive(begun()), Next::Attach),
        (
            "its runner was just started",
            claimed(BOOT),
            alive(stored()),
            Next::Attach,
        ),
        (
            "its runner died",
            running(BOOT),
            begun(),
            Next::Lost(Lost::RUNNER),
        ),
        (
            "ended while nobody looked",
            running(BOOT),
            finished(),
            Next::Report,
        ),
        (
            "ended in another boot",
            running(EARLIER),
            finished(),
            Next::Report,
        ),
        (
            "its runner still tidies up",
            running(BOOT),
            alive(finished()),
            Next::Attach,
        ),
        (
            "restarted before the start",
            claimed(EARLIER),
            stored(),
            Next::Lost(Lost::REBOOTED),
        ),
        (
            "restarted in the middle",
            running(EARLIER),
            shutdown(),
            Next::Lost(Lost::REBOOTED),
        ),
        (
            "crashed in the middle",
            running(EARLIER),
            begun(),
            Next::Lost(Lost::CRASHED),
        ),
        (
            "claimed but missing here",
            claimed(BOOT),
            Local::default(),
            Next::JournalLost,
        ),
        (
            "missing, from another boot",
            running(EARLIER),
            Local::default(),
            Next::Lost(Lost::REBOOTED),
        ),
        (
            "claimed by another instance",
            foreign(BOOT),
            finished(),
            Next::JournalLost,
        ),
        (
            "by another in another boot",
            foreign(EARLIER),
            stored(),
            Next::Lost(Lost::REBOOTED),
        ),
        (
            "ended there, alive here",
            Remote::Ended,
            alive(begun()),
            Next::Stop,
        ),
        ("gone there, alive here", Remote::Gone, alive(begun()), Next::Stop),
        ("ended there and here", Remote::Ended, finished(), Next::Nothing),
        ("gone there, nothing here", Remote::Gone, stored(), Next::Nothing),
    ];
    for (story, remote, local, next) in rows {
        assert_eq!(decide(&remote, &local, BOOT), next, "{story}");
    }
}

fn told(boot: &str, rebooting: bool, reboots: i32) -> Remote {
    Remote::Claimed {
        ours: true,
        boot_id: boot.into(),
        running: true,
        rebooting,
        reboots,
    }
}

fn requested(mut local: Local, boot: &str) -> Local {
    local.run.push(at(RunRecord::RebootRequested(Restart {
        step: "a".into(),
        boot_id: boot.into(),
        under_way: false,
        worked_millis: 0,
    })));
    local
}

/// The host came back once, and the work went on in this boot or an earlier one.
fn returned(boot: &str) -> Local {
    let mut local = requested(begun(), "the first boot");
    local.agent.push(at(AgentRecord::ShutdownSeen));
    local
        .agent
        .push(at(AgentRecord::Returned { boot_id: boot.into() }));
    local.run.push(at(RunRecord::Resumed { boot_id: boot.into() }));
    local
}

fn restarts_itself(clean: bool) -> Local {
    let mut local = begun();
    local.run.pop();
    local.run.push(at(RunRecord::StepStarted {
        list: List::Steps,
        place: 0,
        name: "a".into(),
        attempt: 1,
        restarts_host: true,
    }));
    if clean {
        local.agent.push(at(AgentRecord::ShutdownSeen));
    }
    local
}

#[test]
fn the_recovery_table_of_restarts() {
    let rebooted = || Next::Lost(Lost::REBOOTED);
    let rows: Vec<(&str, Remote, Local, Next)> = vec![
        (
            "asked, not gone down yet",
            told(BOOT, true, 1),
            requested(begun(), BOOT),
            Next::Restart,
        ),
        (
            "its word had not come through",
            told(BOOT, false, 0),
            requested(begun(), BOOT),
            Next::Restart,
        ),
        (
            "back",
            told(EARLIER, true, 1),
            requested(begun(), EARLIER),
            Next::Return,
        ),
        (
            "back, and nobody was told",
            told(EARLIER, false, 0),
            requested(begun(), EARLIER),
            Next::Return,
        ),
        (
            "a journal from before the restart",
            told(EARLIER, false, 1),
            requested(begun(), EARLIER),
            rebooted(),
        ),
        (
            "a journal from before another restart",
            told(EARLIER, true, 2),
            requested(begun(), EARLIER),
            rebooted(),
        ),
        (
            "went on and died",
            told(EARLIER, false, 1),
            returned(BOOT),
            Next::Lost(Lost::RUNNER),
        ),
        (
            "went on and crashed",
            told(EARLIER, false, 1),
            returned(EARLIER),
            Next::Lost(Lost::CRASHED),
        ),
        (
            "wants another",
            told(EARLIER, true, 2),
            requested(returned(EARLIER), EARLIER),
            Next::Return,
        ),
        (
            "restarted by its step",
            told(EARLIER, false, 0),
            restarts_itself(true),
            Next::Return,
        ),
        (
            "and the agent died before it went on",
            told(EARLIER, true, 1),
            restarts_itself(true),
            Next::Return,
        ),
        (
            "by its step, an old journal",
            told(EARLIER, false, 1),
            restarts_itself(true),
            rebooted(),
        ),
        (
            "crashed in such a step",
            told(EARLIER, false, 0),
            restarts_itself(false),
            Next::Lost(Lost::CRASHED),
        ),
        (
            "its runner died in such a step",
            told(BOOT, false, 0),
            restarts_itself(true),
            Next::Lost(Lost::RUNNER),
        ),
        (
            "ended on the server",
            Remote::Ended,
            requested(begun(), EARLIER),
            Next::Nothing,
        ),
        (
            "gone from the server",
            Remote::Gone,
            requested(begun(), EARLIER),
            Next::Nothing,
        ),
    ];
    for (story, remote, local, next) in rows {
        assert_eq!(decide(&remote, &local, BOOT), next, "{story}");
    }
}

/// Whatever the journals say: a Task somebody has claimed is started in one case only, and never twice.
#[test]
fn a_claimed_task_is_started_only_if_nothing_had_begun_in_this_boot() {
    let locals = [Local::default(), stored(), begun(), finished()];
    let remotes = [
        claimed(BOOT),
        claimed(EARLIER),
        running(BOOT),
        running(EARLIER),
        foreign(BOOT),
    ];
    for local in locals.iter().flat_map(|l| [l.clone(), alive(l.clone())]) {
        for remote in &remotes {
            let starts = matches!(decide(remote, &local, BOOT), Next::Resume | Next::Claim);
            let may = *remote == claimed(BOOT) && local.is_stored() && local.run.is_empty() && !local.alive;
            assert_eq!(starts, may, "{remote:?} {local:?}");
        }
    }
}

#[test]
fn what_is_left_to_do_is_read_from_the_journal() {
    let mut local = finished();
    assert_eq!(local.containment(), Some("/cg"));
    assert!(!local.is_done());
    local.agent.push(at(AgentRecord::Reported {
        phase: TaskPhase::Running,
    }));
    assert!(!local.is_reported());
    local.agent.push(at(AgentRecord::Reported {
        phase: TaskPhase::Succeeded,
    }));
    assert!(local.is_reported() && !local.is_done());
    local.agent.push(at(AgentRecord::Shipped));
    assert!(local.is_done());
    assert!(!alive(local).is_done());
}
