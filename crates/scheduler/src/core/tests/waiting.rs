//! What is said about work that waits.

use super::lab::*;
use api::task::TaskPhase;

#[test]
fn the_message_counts_nodes_by_what_they_lack() {
    let mut lab = Lab::new();
    for n in 0..8 {
        lab.node(&format!("db{n}"), 2, |node| label(node, "role", "db"));
    }
    for n in 0..3 {
        lab.node(&format!("tainted{n}"), 2, |node| {
            label(node, "role", "web");
            node.spec.taints.push(taint("maintenance"));
        });
    }
    lab.node("small", 2, |node| label(node, "role", "web"));
    lab.job("j", 2, |s| {
        s.node_selector = [("role".into(), "web".into())].into();
        s.resources = requests(&[("memory", "10Gi")]);
    });
    assert!(lab.run().is_empty());
    assert_eq!(
        lab.why("j"),
        ["NoNodeFits 2: 0/12 nodes: 8 do not match role=web, 3 tainted maintenance, 1 needs 2Gi more memory"]
    );
}

#[test]
fn a_fleet_without_nodes_and_a_namespace_without_access_say_so() {
    let mut lab = Lab::new();
    lab.job("j", 1, |_| {});
    lab.run();
    assert_eq!(lab.why("j"), ["NoNodeFits 1: there is no node"]);
    lab.target("all", |_| {});
    lab.node("n", 2, |_| {});
    lab.wait(60);
    assert!(lab.run().is_empty());
    assert_eq!(
        lab.why("j"),
        ["NoNodeFits 1: 0/1 nodes: 1 is in no Target that lets namespace ops in"]
    );
}

#[test]
fn hopeless_work_is_explained_at_once_and_then_every_ten_seconds_if_it_changed() {
    let mut lab = Lab::new();
    lab.node("n", 1, |_| {});
    lab.job("j", 1, |s| {
        s.node_selector = [("role".into(), "web".into())].into()
    });
    lab.run();
    let told = lab.core.explanations(10, lab.now);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1[0].message, "0/1 nodes: 1 does not match role=web");
    lab.node("m", 1, |_| {});
    lab.run();
    assert!(lab.core.explanations(10, lab.now).is_empty(), "not again so soon");
    lab.wait(10);
    let told = lab.core.explanations(10, lab.now);
    assert_eq!(told[0].1[0].message, "0/2 nodes: 2 do not match role=web");
    lab.wait(10);
    assert!(lab.core.explanations(10, lab.now).is_empty(), "nothing changed");
    lab.edit_node("n", |n| label(n, "role", "web"));
    assert_eq!(lab.run(), ["j-0@n"]);
    assert_eq!(
        lab.core.explanations(10, lab.now)[0].1,
        [],
        "nothing waits any more"
    );
}

#[test]
fn work_that_is_placed_soon_costs_no_write() {
    let mut lab = Lab::new();
    lab.node("n", 1, |_| {});
    lab.job("a", 1, |_| {});
    lab.job("b", 1, |_| {});
    lab.run();
    assert!(lab.core.explanations(10, lab.now).is_empty());
    lab.end("a-0", TaskPhase::Succeeded, "");
    lab.edit_job("a", |j| {
        j.status.get_or_insert_default().phase = api::job::JobPhase::Succeeded
    });
    lab.run();
    lab.wait(60);
    assert!(lab.core.explanations(10, lab.now).is_empty());
}
