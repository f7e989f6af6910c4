//! Where work goes, and when it is tried again.

use super::lab::*;
use crate::core::{Decision, Event};
use api::{
    placement::{Affinity, NodeAffinity, NodeSelectorTerm, Operator, PreferredTerm, Requirement},
    queue::Placement,
    retry::RetryStrategy,
    task::TaskPhase,
};
use std::{sync::Arc, time::Duration};

#[test]
fn work_is_spread_or_packed() {
    for (placement, expected) in [
        (Placement::Spread, ["j-0@a", "j-1@b", "j-2@a", "j-3@b"]),
        (Placement::Pack, ["j-0@a", "j-1@a", "j-2@a", "j-3@b"]),
    ] {
        let mut lab = Lab::new();
        lab.queue("default", |q| q.placement = placement);
        lab.node("a", 3, |_| {});
        lab.node("b", 3, |_| {});
        lab.job("j", 4, |_| {});
        let mut placed = lab.run();
        placed.sort();
        let on_a = |list: &[String]| list.iter().filter(|p| p.ends_with("@a")).count();
        let expected: Vec<String> = expected.iter().map(|s| s.to_string()).collect();
        let balance = on_a(&placed).max(4 - on_a(&placed));
        assert_eq!(
            balance,
            on_a(&expected).max(4 - on_a(&expected)),
            "{placement:?}: {placed:?}"
        );
    }
}

#[test]
fn preferred_nodes_are_preferred() {
    let mut lab = Lab::new();
    lab.node("a", 9, |_| {});
    lab.node("b", 9, |n| label(n, "disk", "ssd"));
    lab.job("j", 3, |s| {
        s.affinity = Some(Affinity {
            node_affinity: Some(NodeAffinity {
                preferred_during_scheduling_ignored_during_execution: vec![PreferredTerm {
                    weight: 10,
                    preference: NodeSelectorTerm {
                        match_expressions: vec![Requirement {
                            key: "disk".into(),
                            operator: Operator::In,
                            values: vec!["ssd".into()],
                        }],
                        match_fields: vec![],
                    },
                }],
                ..Default::default()
            }),
            ..Default::default()
        })
    });
    assert_eq!(lab.run(), ["j-0@b", "j-1@b", "j-2@b"]);
}

#[test]
fn a_retry_keeps_its_place_waits_its_time_and_shuns_the_node_it_failed_on() {
    let mut lab = Lab::new();
    lab.node("a", 2, |_| {});
    lab.node("b", 2, |_| {});
    lab.job("j", 1, |s| {
        s.retry_strategy = Some(RetryStrategy {
            limit: 1,
            ..Default::default()
        })
    });
    let first = lab.run()[0].clone();
    lab.end("j-0", TaskPhase::Failed, "ExitCode");
    assert!(lab.run().is_empty());
    assert!(
        lab.why("j")[0].starts_with("Backoff 1: the next attempt may start at"),
        "{:?}",
        lab.why("j")
    );
    let wake = lab.core.wake_at().unwrap();
    lab.now = wake;
    let second = lab.run()[0].clone();
    assert!(second.starts_with("j-0-1@"));
    assert_ne!(
        first.split_once('@').unwrap().1,
        second.split_once('@').unwrap().1
    );
}

#[test]
fn a_rejecting_node_is_left_alone_for_a_while_and_others_are_tried_at_once() {
    let mut lab = Lab::new();
    lab.node("a", 2, |_| {});
    lab.job("j", 1, |_| {});
    assert_eq!(lab.run(), ["j-0@a"]);
    lab.end("j-0", TaskPhase::Rejected, "NoRoom");
    assert!(lab.run().is_empty(), "only the node that rejected it is there");
    lab.node("b", 2, |_| {});
    lab.job("k", 1, |_| {});
    lab.wait(1);
    let placed = lab.run();
    assert!(placed.iter().any(|p| p.starts_with("j-0-1@")), "{placed:?}");
}

#[test]
fn what_was_assumed_is_taken_back_when_the_task_is_refused() {
    let mut lab = Lab::new();
    lab.node("a", 1, |_| {});
    lab.job("j", 1, |_| {});
    let Some(Decision::Place(placement)) = lab.core.next(lab.now) else {
        panic!("nothing was placed")
    };
    assert!(lab.core.next(lab.now).is_none(), "it is assumed");
    lab.tell(Event::Refused {
        placement: Box::new(placement),
        message: "namespace ops is being deleted".into(),
        wait: Duration::from_secs(10),
    });
    assert!(lab.run().is_empty());
    assert_eq!(lab.why("j"), ["TaskRefused 1: namespace ops is being deleted"]);
    lab.wait(10);
    assert_eq!(lab.run(), ["j-0@a"]);
}

#[test]
fn another_schedulers_task_counts_where_it_really_is() {
    let mut lab = Lab::new();
    lab.node("a", 1, |_| {});
    lab.job("j", 1, |_| {});
    lab.step().unwrap();
    let mut theirs = lab.tasks.values().next().unwrap().clone();
    lab.node("b", 1, |_| {});
    theirs.spec.node_name = "b".into();
    lab.tell(Event::Task(Arc::new(theirs)));
    lab.job("k", 2, |_| {});
    assert_eq!(lab.run(), ["k-0@a"], "a is free, b is taken");
}

#[test]
fn an_emergency_has_one_more_slot() {
    let mut lab = Lab::new();
    lab.node("a", 1, |_| {});
    lab.job("j", 2, |_| {});
    assert_eq!(lab.run(), ["j-0@a"]);
    lab.job("sos", 2, |s| s.priority_class_name = "prow-emergency".into());
    assert_eq!(lab.run(), ["sos-0@a"]);
    lab.end("sos-0", TaskPhase::Succeeded, "");
    assert_eq!(lab.run(), ["sos-1@a"], "the slot is not for j");
}

#[test]
fn a_task_removed_by_force_is_recorded_and_never_run_again() {
    let mut lab = Lab::new();
    lab.node("a", 1, |_| {});
    lab.job("j", 1, |_| {});
    lab.run();
    lab.end("j-0", TaskPhase::Running, "");
    let (name, gone) = lab.tasks.pop_first().unwrap();
    lab.tell(Event::TaskGone(Arc::new(gone)));
    assert_eq!(lab.run(), ["j-0!TaskGone"], "{name}");
}

#[test]
fn an_unclaimed_task_that_vanished_is_made_again() {
    let mut lab = Lab::new();
    lab.node("a", 1, |_| {});
    lab.job("j", 1, |_| {});
    lab.run();
    let (_, gone) = lab.tasks.pop_first().unwrap();
    lab.tell(Event::TaskGone(Arc::new(gone)));
    assert_eq!(lab.run(), ["j-0@a"]);
}

#[test]
fn tasks_seen_before_their_job_count_all_the_same() {
    let mut lab = Lab::new();
    lab.node("a", 4, |_| {});
    lab.job("j", 2, |s| s.resources = requests(&[("cpu", "2")]));
    lab.run();
    let mut fresh = Lab::new();
    fresh.node("a", 4, |_| {});
    for task in lab.tasks.values() {
        fresh.tell(Event::Task(Arc::new(task.clone())));
    }
    fresh.job("j", 2, |s| s.resources = requests(&[("cpu", "2")]));
    fresh.job("k", 1, |s| s.resources = requests(&[("cpu", "1")]));
    assert!(
        fresh.run().is_empty(),
        "a restart makes nothing twice and sees what is used"
    );
    assert_eq!(fresh.why("k"), ["NoNodeFits 1: 0/1 nodes: 1 needs 1 more cpu"]);
}

#[test]
fn an_indexed_job_that_fits_nowhere_ends_at_its_starting_deadline() {
    let mut lab = Lab::new();
    lab.job("j", 3, |s| {
        s.starting_deadline_seconds = Some(30);
        s.max_failures = None;
    });
    assert!(lab.run().is_empty());
    lab.wait(30);
    assert_eq!(lab.run(), ["j-0!NotStarted"]);
    lab.end("j-0", TaskPhase::Failed, "NotStarted");
    lab.wait(5);
    assert!(lab.run().is_empty(), "the first failure ends the Job");
}

#[test]
fn what_a_node_rejected_goes_to_another_as_soon_as_one_has_room() {
    let mut lab = Lab::new();
    lab.node("full", 0, |_| {});
    lab.node("refuses", 1, |_| {});
    lab.job("j", 1, |_| {});
    assert_eq!(lab.run(), ["j-0@refuses"]);
    lab.end("j-0", TaskPhase::Rejected, "");
    assert!(lab.run().is_empty(), "only the node that rejected it has room");
    lab.node("full", 1, |_| {});
    assert_eq!(
        lab.run(),
        ["j-0-1@full"],
        "it does not wait for the other node's time to pass"
    );
}
