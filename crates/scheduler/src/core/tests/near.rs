//! Spread over a label, and Jobs that keep apart.

use super::lab::*;
use api::{
    JobSpec,
    placement::{
        AntiAffinityTerm, JobAntiAffinity, LabelSelector, SpreadConstraint, Unsatisfiable,
        WeightedAntiAffinityTerm,
    },
    task::TaskPhase,
};

fn zones(lab: &mut Lab, zones: &[(&str, &str)]) {
    for (node, zone) in zones {
        lab.node(node, 9, |n| label(n, "zone", zone));
    }
}

fn spread(key: &str, max_skew: i32, when_unsatisfiable: Unsatisfiable) -> Vec<SpreadConstraint> {
    vec![SpreadConstraint {
        max_skew,
        topology_key: key.into(),
        when_unsatisfiable,
    }]
}

fn term(app: &str, key: &str) -> AntiAffinityTerm {
    AntiAffinityTerm {
        label_selector: LabelSelector {
            match_labels: [("app".into(), app.into())].into(),
            ..Default::default()
        },
        topology_key: key.into(),
    }
}

fn apart(spec: &mut JobSpec, term: AntiAffinityTerm) {
    let anti = spec
        .affinity
        .get_or_insert_default()
        .job_anti_affinity
        .get_or_insert_default();
    anti.required_during_scheduling_ignored_during_execution
        .push(term);
}

const HOST: &str = "kubernetes.io/hostname";

#[test]
fn a_required_spread_keeps_the_skew_and_waits_where_it_cannot() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a"), ("a2", "a"), ("b1", "b")]);
    lab.node("none", 9, |_| {});
    lab.edit_node("b1", |n| {
        n.status
            .as_mut()
            .unwrap()
            .allocatable
            .insert("slots".into(), api::quantity::Quantity("1".into()));
    });
    lab.job("j", 6, |s| {
        s.topology_spread_constraints = spread("zone", 1, Unsatisfiable::DoNotSchedule)
    });
    let placed = lab.run();
    let in_b = placed.iter().filter(|p| p.ends_with("@b1")).count();
    assert_eq!((placed.len(), in_b), (3, 1), "{placed:?}");
    let why = lab.why("j");
    assert!(
        why[0].contains("2 have enough of this Job's Tasks by zone"),
        "{why:?}"
    );
    assert!(why[0].contains("1 without the label zone"), "{why:?}");
    // a Task in zone a ends: one more may go there
    let a = placed
        .iter()
        .find(|p| !p.ends_with("@b1"))
        .unwrap()
        .split('@')
        .next()
        .unwrap();
    lab.end(a, TaskPhase::Succeeded, "");
    assert_eq!(lab.run().len(), 1);
}

#[test]
fn a_zone_that_is_down_does_not_hold_up_the_others() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a"), ("b1", "b")]);
    lab.edit_node("b1", |n| n.spec.unschedulable = true);
    lab.job("j", 4, |s| {
        s.topology_spread_constraints = spread("zone", 1, Unsatisfiable::DoNotSchedule)
    });
    assert_eq!(lab.run().len(), 4);
    lab.edit_node("b1", |n| n.spec.unschedulable = false);
    lab.job("k", 4, |s| {
        s.topology_spread_constraints = spread("zone", 1, Unsatisfiable::DoNotSchedule)
    });
    lab.edit_node("a1", |n| label(n, "zone", "b"));
    assert_eq!(lab.run().len(), 4, "all is one zone now");
}

#[test]
fn a_preferred_spread_is_even_and_never_waits() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")]);
    lab.job("j", 4, |s| {
        s.topology_spread_constraints = spread("zone", 1, Unsatisfiable::ScheduleAnyway)
    });
    let in_b = |placed: &[String]| placed.iter().filter(|p| p.ends_with("@b1")).count();
    let placed = lab.run();
    assert_eq!((placed.len(), in_b(&placed)), (4, 2), "{placed:?}");
    lab.edit_node("b1", |n| n.spec.unschedulable = true);
    lab.job("k", 4, |s| {
        s.topology_spread_constraints = spread("zone", 1, Unsatisfiable::ScheduleAnyway)
    });
    assert_eq!(lab.run().len(), 4);
}

#[test]
fn tasks_of_one_job_keep_apart_by_host() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a"), ("b1", "b")]);
    lab.labelled("db", 3, &[("app", "db")], |s| apart(s, term("db", HOST)));
    let placed = lab.run();
    assert_eq!(placed, ["db-0@b1", "db-1@a1"]);
    assert_eq!(
        lab.why("db"),
        ["NoNodeFits 1: 0/2 nodes: 2 have a Job that is kept apart"]
    );
    lab.end("db-1", TaskPhase::Succeeded, "");
    assert_eq!(lab.run(), ["db-2@a1"]);
}

#[test]
fn what_keeps_apart_holds_both_ways() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a"), ("a2", "a"), ("b1", "b")]);
    lab.labelled("web", 1, &[("app", "web")], |s| {
        s.node_selector = [("zone".into(), "a".into())].into()
    });
    let web = lab.run();
    lab.labelled("db", 2, &[("app", "db")], |s| apart(s, term("web", "zone")));
    assert_eq!(
        lab.run(),
        ["db-0@b1", "db-1@b1"],
        "db keeps away from web, not from itself"
    );
    lab.labelled("web2", 1, &[("app", "web")], |s| {
        s.node_selector = [("zone".into(), "b".into())].into()
    });
    lab.job("other", 1, |s| {
        s.node_selector = [("zone".into(), "b".into())].into()
    });
    assert_eq!(lab.run(), ["other-0@b1"], "{web:?}");
    assert!(
        lab.why("web2")[0].contains("1 has a Job that is kept apart by zone"),
        "{:?}",
        lab.why("web2")
    );
    lab.end("db-0", TaskPhase::Succeeded, "");
    assert!(lab.run().is_empty());
    lab.end("db-1", TaskPhase::Succeeded, "");
    assert_eq!(lab.run(), ["web2-0@b1"]);
}

#[test]
fn a_new_term_counts_the_tasks_that_run_already_and_labels_count_as_they_are_now() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a")]);
    lab.labelled("web", 1, &[("app", "web")], |_| {});
    lab.run();
    lab.labelled("db", 1, &[], |s| apart(s, term("web", HOST)));
    assert!(lab.run().is_empty());
    lab.edit_job("web", |j| j.metadata.labels = None);
    lab.edit_node("a1", |n| label(n, "touched", "yes"));
    assert_eq!(lab.run(), ["db-0@a1"]);
}

#[test]
fn a_preference_to_keep_apart_is_followed_while_there_is_another_place() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a"), ("b1", "b")]);
    lab.labelled("web", 1, &[("app", "web")], |s| s.node_names = vec!["b1".into()]);
    lab.run();
    let prefer = |s: &mut JobSpec| {
        s.affinity.get_or_insert_default().job_anti_affinity = Some(JobAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: vec![WeightedAntiAffinityTerm {
                weight: 5,
                job_affinity_term: term("web", "zone"),
            }],
            ..Default::default()
        });
    };
    lab.job("db", 3, prefer);
    assert!(lab.run().iter().all(|p| p.ends_with("@a1")));
    lab.edit_node("a1", |n| n.spec.unschedulable = true);
    lab.job("more", 1, prefer);
    assert_eq!(lab.run(), ["more-0@b1"]);
}

#[test]
fn a_node_that_moves_takes_its_tasks_along() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a"), ("b1", "b")]);
    lab.labelled("web", 1, &[("app", "web")], |s| s.node_names = vec!["a1".into()]);
    lab.labelled("db", 1, &[], |s| {
        s.suspend = true;
        apart(s, term("web", "zone"));
    });
    lab.run();
    lab.edit_node("a1", |n| label(n, "zone", "b"));
    lab.edit_job("db", |j| j.spec.suspend = false);
    assert!(lab.run().is_empty(), "both nodes are in the zone of web now");
    lab.edit_node("b1", |n| label(n, "zone", "a"));
    assert_eq!(lab.run(), ["db-0@b1"]);
}

#[test]
fn one_node_at_a_time_waits_for_what_runs_elsewhere_in_its_zone() {
    let mut lab = Lab::new();
    zones(&mut lab, &[("a1", "a"), ("a2", "a")]);
    lab.labelled("web", 1, &[("app", "web")], |s| s.node_names = vec!["a1".into()]);
    lab.run();
    lab.per_node("patch", &["a2"], |s| apart(s, term("web", "zone")));
    assert!(lab.run().is_empty());
    lab.end("web-0", TaskPhase::Succeeded, "");
    assert_eq!(lab.run().len(), 1);
}
