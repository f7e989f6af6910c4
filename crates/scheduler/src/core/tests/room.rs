//! Quotas, drained queues, and work that makes room for other work.

use super::lab::*;
use api::{
    job::OnUnknown,
    quantity::Quantity,
    queue::{Preemption, StopPolicy},
    task::TaskPhase,
};

fn quota(queue: &mut api::QueueSpec, cpu: &str) {
    queue.quota = [("cpu".into(), Quantity(cpu.into()))].into();
}

fn one_cpu(queue: &str) -> impl Fn(&mut api::JobSpec) {
    let queue = queue.to_owned();
    move |s| {
        s.queue_name = queue.clone();
        s.resources = requests(&[("cpu", "1")]);
    }
}

/// Everything that was placed runs now: a Task that is stopped before it is claimed holds nothing any more.
fn start(lab: &mut Lab) {
    let open = lab.tasks.iter().filter(|(_, t)| !t.phase().is_terminal());
    let names: Vec<_> = open.map(|(name, _)| short(name)).collect();
    names
        .iter()
        .for_each(|name| lab.end(name, TaskPhase::Running, ""));
}

fn wide(lab: &mut Lab, cpu: &str) {
    lab.node("n", 99, |n| {
        n.status
            .as_mut()
            .unwrap()
            .allocatable
            .insert("cpu".into(), Quantity(cpu.into()));
    });
}

#[test]
fn a_quota_is_never_exceeded_and_says_so() {
    let mut lab = Lab::new();
    wide(&mut lab, "99");
    lab.queue("default", |q| quota(q, "2"));
    lab.job("a", 3, one_cpu("default"));
    lab.job("free", 1, |_| {});
    assert_eq!(
        lab.run(),
        ["a-0@n", "a-1@n", "free-0@n"],
        "what asks for no cpu is not held up"
    );
    assert_eq!(
        lab.why("a"),
        ["QueueQuota 1: the quota of Queue default and its tier lacks 1 cpu"]
    );
    lab.end("a-0", TaskPhase::Succeeded, "");
    assert_eq!(lab.run(), ["a-2@n"]);
    lab.job("b", 1, one_cpu("default"));
    assert!(lab.run().is_empty());
    lab.queue("default", |q| quota(q, "3"));
    assert_eq!(lab.run(), ["b-0@n"]);
}

#[test]
fn unused_quota_of_the_tier_is_borrowed_and_given_back_as_work_ends() {
    let mut lab = Lab::new();
    wide(&mut lab, "99");
    lab.queue("a", |q| quota(q, "2"));
    lab.queue("b", |q| quota(q, "2"));
    lab.queue("other-tier", |q| {
        q.priority = -1;
        quota(q, "50")
    });
    lab.job("a", 9, one_cpu("a"));
    assert_eq!(
        lab.run().len(),
        4,
        "its own two and the two of b, nothing of the other tier"
    );
    lab.job("b", 3, one_cpu("b"));
    assert!(lab.run().is_empty(), "all is lent");
    lab.end("a-0", TaskPhase::Succeeded, "");
    lab.end("a-1", TaskPhase::Succeeded, "");
    assert_eq!(lab.run(), ["b-0@n", "b-1@n"], "b goes first within its own quota");
    lab.end("a-2", TaskPhase::Succeeded, "");
    assert_eq!(
        lab.run(),
        ["a-4@n"],
        "a uses one of two, b all of two: a goes first"
    );
}

#[test]
fn a_drained_queue_stops_what_may_run_again_and_nothing_else() {
    let mut lab = Lab::new();
    lab.node("n", 9, |_| {});
    lab.job("again", 2, |s| s.on_unknown = OnUnknown::Rerun);
    lab.job("once", 1, |_| {});
    assert_eq!(lab.run().len(), 3);
    lab.end("again-0", TaskPhase::Running, "");
    lab.queue("default", |q| q.stop_policy = StopPolicy::HoldAndDrain);
    assert!(lab.run().is_empty());
    assert_eq!(lab.stopped, ["again-0", "again-1"]);
    lab.end("again-0", TaskPhase::Failed, "Preempted");
    lab.end("again-1", TaskPhase::Rejected, "Preempted");
    lab.wait(600);
    assert!(lab.run().is_empty());
    assert_eq!(
        lab.why("again"),
        ["QueueHeld 2: Queue default is held by its stopPolicy"]
    );
    lab.queue("default", |_| {});
    assert_eq!(
        lab.run(),
        ["again-0-1@n", "again-1-1@n"],
        "at no cost: retryStrategy has no limit"
    );
}

#[test]
fn a_task_that_shows_up_late_in_a_drained_queue_is_stopped_too() {
    let mut lab = Lab::new();
    lab.node("n", 9, |_| {});
    lab.job("again", 1, |s| s.on_unknown = OnUnknown::Rerun);
    let placed = lab.step().unwrap();
    let mut late = lab.tasks.remove(&placed.name()).unwrap();
    lab.tell(crate::core::Event::TaskGone(std::sync::Arc::new(late.clone())));
    lab.queue("default", |q| q.stop_policy = StopPolicy::HoldAndDrain);
    assert!(lab.run().is_empty());
    late.metadata.uid = Some("another".into());
    lab.tasks.insert(placed.name(), late.clone());
    lab.tell(crate::core::Event::Task(std::sync::Arc::new(late)));
    lab.run();
    assert_eq!(lab.stopped, ["again-0"]);
}

/// Queue `default` may push out lower work.
fn preempting() -> Lab {
    let mut lab = Lab::new();
    lab.queue("default", |q| q.preemption = Preemption::LowerPriority);
    lab
}

fn rerun(priority: i32, cpu: &'static str) -> impl Fn(&mut api::JobSpec) {
    move |s| {
        s.on_unknown = OnUnknown::Rerun;
        s.priority = Some(priority);
        s.resources = requests(&[("cpu", cpu)]);
    }
}

#[test]
fn the_cheapest_lower_work_makes_room_and_runs_again() {
    let mut lab = preempting();
    lab.node("a", 9, |_| {});
    lab.job("one", 1, rerun(1, "2"));
    lab.job("two", 1, rerun(2, "2"));
    lab.run();
    lab.node("b", 9, |_| {});
    lab.job("three", 1, rerun(1, "4"));
    assert_eq!(lab.run(), ["three-0@b"]);
    start(&mut lab);
    lab.wait(1);
    lab.job("high", 1, rerun(5, "2"));
    assert!(lab.run().is_empty());
    assert_eq!(
        lab.stopped,
        ["one-0 for high"],
        "the lowest, and no more than needed"
    );
    lab.job("small", 1, rerun(0, "1"));
    lab.end("one-0", TaskPhase::Failed, "Preempted");
    assert_eq!(
        lab.run(),
        ["high-0@a"],
        "nothing lower takes the place that was made"
    );
    lab.wait(3600);
    lab.end("two-0", TaskPhase::Succeeded, "");
    assert!(lab.run().contains(&"one-0-1@a".to_owned()), "it runs again");
}

#[test]
fn only_lower_work_that_may_run_again_gives_way_and_only_where_the_queue_says_so() {
    for (case, edit) in [
        (
            "Hold",
            Box::new(|s: &mut api::JobSpec| s.on_unknown = OnUnknown::Hold) as Box<dyn Fn(&mut api::JobSpec)>,
        ),
        ("equal", Box::new(|s| s.priority = Some(5))),
    ] {
        let mut lab = preempting();
        lab.node("a", 9, |_| {});
        lab.job("low", 1, |s| {
            rerun(1, "4")(s);
            edit(s);
        });
        lab.run();
        lab.job("high", 1, rerun(5, "2"));
        assert!(lab.run().is_empty());
        assert!(lab.stopped.is_empty(), "{case}: {:?}", lab.stopped);
    }
    let mut lab = Lab::new();
    lab.node("a", 9, |_| {});
    lab.job("low", 1, rerun(1, "4"));
    lab.run();
    lab.job("high", 1, rerun(5, "2"));
    assert!(lab.run().is_empty());
    assert!(lab.stopped.is_empty(), "off by default");
}

#[test]
fn a_tier_counts_before_a_priority() {
    let mut lab = preempting();
    lab.queue("gold", |q| q.priority = 1);
    lab.queue("tin", |q| q.priority = -1);
    lab.node("a", 9, |_| {});
    lab.node("b", 9, |_| {});
    lab.job("gold", 1, |s| {
        rerun(0, "4")(s);
        s.queue_name = "gold".into();
    });
    lab.job("tin", 1, |s| {
        rerun(100, "4")(s);
        s.queue_name = "tin".into();
    });
    lab.run();
    lab.job("mid", 1, rerun(5, "4"));
    lab.run();
    assert_eq!(lab.stopped, ["tin-0 for mid"]);
}

#[test]
fn several_indexes_make_room_on_several_nodes_and_no_more_than_they_need() {
    let mut lab = preempting();
    for node in ["a", "b", "c"] {
        lab.node(node, 1, |_| {});
    }
    lab.job("low", 3, |s| s.on_unknown = OnUnknown::Rerun);
    lab.run();
    start(&mut lab);
    lab.job("high", 2, |s| s.priority = Some(5));
    assert!(lab.run().is_empty());
    assert_eq!(lab.stopped.len(), 2, "{:?}", lab.stopped);
    for stopped in lab.stopped.clone() {
        let task = stopped.split(' ').next().unwrap().to_owned();
        lab.end(&task, TaskPhase::Failed, "Preempted");
    }
    let placed = lab.run();
    assert_eq!(
        placed.iter().filter(|p| p.starts_with("high")).count(),
        2,
        "{placed:?}"
    );
}

#[test]
fn one_node_at_a_time_makes_room_on_its_node() {
    let mut lab = preempting();
    lab.node("a", 1, |_| {});
    lab.node("b", 1, |_| {});
    lab.job("low", 2, |s| s.on_unknown = OnUnknown::Rerun);
    let placed = lab.run();
    start(&mut lab);
    lab.per_node("patch", &["b"], |s| s.priority = Some(1));
    assert!(lab.run().is_empty());
    let on_b = placed
        .iter()
        .find(|p| p.ends_with("@b"))
        .unwrap()
        .split('@')
        .next()
        .unwrap();
    assert_eq!(lab.stopped, [format!("{on_b} for patch")]);
    lab.end(on_b, TaskPhase::Failed, "Preempted");
    assert_eq!(lab.run().len(), 1);
}

#[test]
fn work_that_was_not_claimed_gives_way_at_once() {
    let mut lab = preempting();
    lab.node("a", 1, |_| {});
    lab.job("low", 1, |s| s.on_unknown = OnUnknown::Rerun);
    lab.run();
    lab.job("high", 1, |s| s.priority = Some(1));
    assert_eq!(lab.run(), ["high-0@a"]);
    assert_eq!(lab.stopped, ["low-0 for high"]);
}

#[test]
fn a_stop_that_could_not_be_written_is_tried_again() {
    let mut lab = preempting();
    lab.node("a", 1, |_| {});
    lab.job("low", 1, |s| s.on_unknown = OnUnknown::Rerun);
    lab.run();
    lab.job("high", 1, |s| s.priority = Some(1));
    let Some(crate::core::Decision::Stop(stopping)) = lab.core.next(lab.now) else {
        panic!("nothing was stopped")
    };
    lab.tell(crate::core::Event::NotStopped(stopping.task));
    assert!(lab.run().is_empty() && lab.stopped.is_empty());
    lab.wait(1);
    lab.run();
    assert_eq!(lab.stopped, ["low-0 for high"]);
}
