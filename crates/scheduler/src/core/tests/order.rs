//! Who goes first.

use super::lab::*;
use api::{
    amount::Amount,
    placement::LabelSelector,
    queue::{Ordering, StopPolicy},
    task::TaskPhase,
};

#[test]
fn older_work_goes_first_and_higher_priority_before_it() {
    let mut lab = Lab::new();
    lab.job("old", 1, |_| {});
    lab.wait(1);
    lab.job("new", 1, |_| {});
    lab.wait(1);
    lab.job("urgent", 1, |s| s.priority = Some(5));
    lab.node("n", 3, |_| {});
    assert_eq!(lab.run(), ["urgent-0@n", "old-0@n", "new-0@n"]);
}

#[test]
fn priority_is_read_when_it_counts() {
    let mut lab = Lab::new();
    lab.job("a", 1, |_| {});
    lab.wait(1);
    lab.job("b", 1, |_| {});
    lab.edit_job("b", |j| j.spec.priority = Some(1));
    lab.node("n", 1, |_| {});
    assert_eq!(lab.run(), ["b-0@n"]);
}

#[test]
fn work_that_fits_nowhere_is_passed_by_unless_the_queue_is_strict() {
    for (ordering, expected) in [
        (Ordering::PriorityThenFifo, vec!["small-0@n"]),
        (Ordering::StrictFifo, vec![]),
    ] {
        let mut lab = Lab::new();
        lab.queue("default", |q| q.ordering = ordering);
        lab.node("n", 4, |_| {});
        lab.job("big", 1, |s| s.resources = requests(&[("memory", "100Gi")]));
        lab.wait(1);
        lab.job("small", 1, |_| {});
        assert_eq!(lab.run(), expected, "{ordering:?}");
    }
}

#[test]
fn tiers_come_before_shares_and_shares_follow_weights() {
    let mut lab = Lab::new();
    lab.queue("gold", |q| q.priority = 1);
    lab.queue("heavy", |q| q.weight = 3);
    for queue in ["default", "heavy", "gold"] {
        lab.job(queue, 40, |s| s.queue_name = queue.into());
    }
    lab.node("n", 44, |_| {});
    let placed = lab.run();
    let of = |name: &str, upto: usize| placed[..upto].iter().filter(|p| p.starts_with(name)).count();
    assert_eq!(of("gold", 40), 40, "{placed:?}");
    assert_eq!((of("heavy", 44), of("default", 44)), (3, 1), "{placed:?}");
}

#[test]
fn an_idle_queue_saves_up_nothing() {
    let mut lab = Lab::new();
    lab.queue("late", |_| {});
    lab.node("n", 120, |_| {});
    lab.job("a", 100, |s| s.parallelism = Some(Amount::Count(50)));
    assert_eq!(lab.run().len(), 50);
    lab.edit_job("a", |j| j.spec.parallelism = Some(Amount::Count(100)));
    lab.job("b", 100, |s| s.queue_name = "late".into());
    let next: Vec<_> = (0..20)
        .map(|_| lab.step().unwrap().job.name().to_owned())
        .collect();
    let late = next.iter().filter(|n| *n == "b").count();
    assert_eq!(late, 10, "{next:?}");
}

#[test]
fn queue_limits_hold_and_open_again() {
    let mut lab = Lab::new();
    lab.queue("default", |q| q.max_running = Some(2));
    lab.node("n", 9, |_| {});
    lab.job("a", 3, |_| {});
    assert_eq!(lab.run(), ["a-0@n", "a-1@n"]);
    assert_eq!(
        lab.why("a"),
        ["QueueLimit 1: Queue default runs 2 Tasks, its maxRunning"]
    );
    lab.end("a-0", TaskPhase::Succeeded, "");
    assert_eq!(lab.run(), ["a-2@n"]);
}

#[test]
fn held_missing_and_closed_queues_say_so() {
    let mut lab = Lab::new();
    lab.node("n", 9, |_| {});
    lab.job("lost", 1, |s| s.queue_name = "nightly".into());
    lab.queue("held", |q| q.stop_policy = StopPolicy::Hold);
    lab.job("held", 1, |s| s.queue_name = "held".into());
    lab.queue("closed", |q| {
        q.namespace_selector = Some(LabelSelector {
            match_labels: [("team".into(), "a".into())].into(),
            ..Default::default()
        })
    });
    lab.job("closed", 1, |s| s.queue_name = "closed".into());
    assert!(lab.run().is_empty());
    assert_eq!(lab.why("lost"), ["QueueMissing 1: there is no Queue nightly"]);
    assert_eq!(
        lab.why("held"),
        ["QueueHeld 1: Queue held is held by its stopPolicy"]
    );
    assert_eq!(
        lab.why("closed"),
        ["QueueClosed 1: Queue closed does not select namespace ops"]
    );

    lab.queue("nightly", |_| {});
    lab.queue("held", |_| {});
    lab.tell(crate::core::Event::Namespace(
        "ops".into(),
        [("team".into(), "a".into())].into(),
    ));
    let mut placed = lab.run();
    placed.sort();
    assert_eq!(placed, ["closed-0@n", "held-0@n", "lost-0@n"]);
}

#[test]
fn parallelism_and_suspend_are_obeyed_at_once() {
    let mut lab = Lab::new();
    lab.node("n", 9, |_| {});
    lab.job("a", 4, |s| s.parallelism = Some(Amount::Count(1)));
    assert_eq!(lab.run(), ["a-0@n"]);
    lab.edit_job("a", |j| j.spec.parallelism = Some(Amount::Count(2)));
    assert_eq!(lab.run(), ["a-1@n"]);
    lab.edit_job("a", |j| j.spec.suspend = true);
    lab.end("a-0", TaskPhase::Succeeded, "");
    assert!(lab.run().is_empty());
    lab.edit_job("a", |j| j.spec.suspend = false);
    assert_eq!(lab.run(), ["a-2@n"]);
}

#[test]
fn big_work_does_not_starve_behind_small() {
    let mut lab = Lab::new();
    lab.node("n", 9, |_| {});
    lab.job("small", 100, |s| s.resources = requests(&[("cpu", "1")]));
    assert_eq!(lab.run().len(), 4);
    lab.wait(1);
    lab.job("big", 1, |s| {
        s.priority = Some(9);
        s.resources = requests(&[("cpu", "4")]);
    });
    let mut next = 0;
    for minute in 0..20 {
        lab.wait(60);
        let running: Vec<_> = lab
            .tasks
            .iter()
            .filter(|(_, t)| !t.phase().is_terminal())
            .map(|(n, _)| short(n))
            .collect();
        if running.iter().any(|n| n == "big-0") {
            assert!(minute >= 5, "not before five minutes");
            return;
        }
        // one small Task ends a minute: without a reserved node the next small one would take its place for ever
        if let Some(first) = running.first() {
            lab.end(first, TaskPhase::Succeeded, "");
        }
        next += lab.run().len();
    }
    panic!("big work starved while {next} more went before it");
}

#[test]
fn a_node_that_is_no_longer_kept_wakes_what_waits_for_it() {
    let mut lab = Lab::new();
    lab.node("n", 9, |_| {});
    lab.job("small", 1, |s| s.resources = requests(&[("cpu", "1")]));
    lab.run();
    lab.job("big", 1, |s| s.resources = requests(&[("cpu", "4")]));
    lab.run();
    lab.wait(301);
    assert!(lab.run().is_empty());
    lab.per_node("here", &["n"], |_| {});
    assert!(lab.run().is_empty(), "n is kept for big");
    assert_eq!(
        lab.why("here"),
        ["NoNodeFits 1: 1/1 nodes: 1 kept for work that waits longer"]
    );
    lab.tell(crate::core::Event::JobGone("uid-big".into()));
    assert_eq!(lab.run().len(), 1);
}

/// 25 to 75, give or take 3, over 10,000 placements under overload.
#[test]
fn weights_share_out_a_full_fleet() {
    let mut lab = Lab::new();
    lab.queue("heavy", |q| q.weight = 3);
    for node in 0..20 {
        lab.node(&format!("n{node}"), 5, |_| {});
    }
    for queue in ["default", "heavy"] {
        lab.job(queue, 20_000, |s| s.queue_name = queue.into());
    }
    let (mut placed, mut heavy) = (0, 0);
    let mut running = std::collections::VecDeque::new();
    while placed < 10_000 {
        let Some(next) = lab.step() else {
            let oldest: String = running.pop_front().unwrap();
            lab.end(&oldest, TaskPhase::Succeeded, "");
            continue;
        };
        placed += 1;
        heavy += i32::from(next.job.name() == "heavy");
        running.push_back(short(&next.name()));
    }
    assert!((7200..=7800).contains(&heavy), "{heavy} of {placed}");
}
