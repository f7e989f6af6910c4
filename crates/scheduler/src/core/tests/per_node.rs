//! Work that carries its nodes.

use super::lab::*;
use crate::core::Event;
use api::{
    amount::Amount,
    job::{NodeSet, OnUnavailable},
    names::sha256_hex,
    task::TaskPhase,
};

fn task(job: &str, node: &str) -> String {
    format!("{job}-{}", &sha256_hex(node)[..12])
}

fn on(job: &str, node: &str) -> String {
    format!("{}@{node}", task(job, node))
}

#[test]
fn one_on_every_member_in_order_and_at_parallelism() {
    let mut lab = Lab::new();
    for name in ["c", "a", "b", "d"] {
        lab.node(name, 2, |_| {});
    }
    lab.per_node("j", &["c", "a", "b"], |s| s.parallelism = Some(Amount::Count(2)));
    assert_eq!(lab.run(), [on("j", "a"), on("j", "b")]);
    lab.end(&task("j", "a"), TaskPhase::Succeeded, "");
    assert_eq!(lab.run(), [on("j", "c")]);
    lab.end(&task("j", "b"), TaskPhase::Succeeded, "");
    assert!(lab.run().is_empty(), "d is no member");
}

#[test]
fn nothing_starts_before_the_members_are_known() {
    let mut lab = Lab::new();
    lab.node("a", 2, |_| {});
    lab.job("j", 1, |s| {
        s.completion_mode = Some(api::job::CompletionMode::PerNode)
    });
    assert!(lab.run().is_empty());
}

#[test]
fn an_unavailable_node_is_waited_for_and_then_skipped() {
    let mut lab = Lab::new();
    lab.node("a", 2, |_| {});
    lab.node("b", 2, not_ready);
    lab.node("c", 2, |n| n.spec.unschedulable = true);
    lab.per_node("j", &["a", "b", "c"], |s| s.starting_deadline_seconds = Some(60));
    assert_eq!(lab.run(), [on("j", "a")]);
    assert_eq!(
        lab.why("j"),
        ["NodeUnavailable 2: 2/3 nodes: 1 not ready, 1 cordoned"]
    );
    lab.wait(30);
    lab.edit_node("c", |n| n.spec.unschedulable = false);
    assert_eq!(lab.run(), [on("j", "c")], "woken by its own node");
    lab.wait(30);
    assert_eq!(lab.run(), [format!("{}!NodeUnavailable", task("j", "b"))]);
}

#[test]
fn skip_and_fail_do_not_wait() {
    for policy in [OnUnavailable::Skip, OnUnavailable::Fail] {
        let mut lab = Lab::new();
        lab.node("a", 2, |n| n.spec.taints.push(taint("maintenance")));
        lab.per_node("j", &["a"], |s| s.on_unavailable = policy);
        assert_eq!(lab.run(), [format!("{}!NodeUnavailable", task("j", "a"))]);
    }
}

#[test]
fn a_full_node_is_waited_for_without_a_deadline() {
    let mut lab = Lab::new();
    lab.node("a", 1, |_| {});
    lab.job("other", 1, |_| {});
    lab.run();
    lab.per_node("j", &["a"], |s| {
        s.starting_deadline_seconds = Some(1);
        s.on_unavailable = OnUnavailable::Fail;
    });
    lab.wait(100);
    assert!(lab.run().is_empty());
    assert_eq!(lab.why("j"), ["NoNodeFits 1: 1/1 nodes: 1 has no free slot"]);
    lab.end("other-0", TaskPhase::Succeeded, "");
    assert_eq!(lab.run(), [on("j", "a")]);
}

#[test]
fn a_member_that_was_deleted_is_skipped() {
    let mut lab = Lab::new();
    lab.node("a", 1, |_| {});
    lab.tell(Event::NodeGone("a".into()));
    lab.per_node("j", &["a"], |_| {});
    assert_eq!(lab.run(), [format!("{}!NodeGone", task("j", "a"))]);
}

#[test]
fn a_name_that_is_no_node_is_unavailable_and_runs_once_it_joins() {
    let mut lab = Lab::new();
    lab.per_node("j", &["ghost"], |s| s.node_names = vec!["ghost".into()]);
    assert!(lab.run().is_empty());
    assert_eq!(lab.why("j"), ["NodeUnavailable 1: 1/1 nodes: 1 does not exist"]);
    lab.node("ghost", 1, |_| {});
    assert_eq!(lab.run(), [on("j", "ghost")]);
}

#[test]
fn a_live_job_takes_in_nodes_as_they_join() {
    let mut lab = Lab::new();
    lab.node("a", 1, |n| label(n, "role", "web"));
    lab.job("j", 1, |s| {
        s.completion_mode = Some(api::job::CompletionMode::PerNode);
        s.node_set = NodeSet::Live;
        s.node_selector = [("role".into(), "web".into())].into();
    });
    assert_eq!(lab.run(), [on("j", "a")]);
    lab.node("b", 1, |n| label(n, "role", "db"));
    assert!(lab.run().is_empty());
    lab.edit_node("b", |n| label(n, "role", "web"));
    assert_eq!(lab.run(), [on("j", "b")]);
}

#[test]
fn a_retry_stays_on_its_node() {
    let mut lab = Lab::new();
    lab.node("a", 1, |_| {});
    lab.node("b", 1, |_| {});
    lab.per_node("j", &["a"], |_| {});
    lab.run();
    lab.end(&task("j", "a"), TaskPhase::Rejected, "NoRoom");
    assert!(lab.run().is_empty());
    lab.wait(1);
    assert_eq!(lab.run(), [format!("{}-1@a", task("j", "a"))]);
}
