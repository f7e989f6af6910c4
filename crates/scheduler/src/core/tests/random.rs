//! Random worlds: whatever happens, some things must hold.

use super::lab::*;
use crate::core::Event;
use api::{amount::Amount, job::JobPhase, placement::Resources, quantity::Quantity, task::TaskPhase};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Act {
    Node {
        name: u8,
        slots: u32,
        cpu: u32,
        web: bool,
    },
    Drop {
        name: u8,
    },
    Cordon {
        name: u8,
        on: bool,
    },
    Job {
        name: u8,
        completions: i32,
        parallelism: i32,
        cpu: u32,
        web: bool,
        priority: i32,
        per_node: bool,
    },
    Suspend {
        name: u8,
        on: bool,
    },
    End {
        which: prop::sample::Index,
        phase: TaskPhase,
    },
    Wait {
        seconds: i64,
    },
    Run {
        decisions: usize,
    },
}

fn act() -> impl Strategy<Value = Act> {
    let phase = prop_oneof![
        Just(TaskPhase::Running),
        Just(TaskPhase::Succeeded),
        Just(TaskPhase::Succeeded),
        Just(TaskPhase::Failed),
        Just(TaskPhase::Rejected),
    ];
    prop_oneof![
        2 => (0u8..6, 0u32..4, 1u32..5, any::<bool>()).prop_map(|(name, slots, cpu, web)| Act::Node { name, slots, cpu, web }),
        1 => (0u8..6).prop_map(|name| Act::Drop { name }),
        1 => (0u8..6, any::<bool>()).prop_map(|(name, on)| Act::Cordon { name, on }),
        3 => (0u8..200, 0i32..7, 1i32..5, 0u32..4, any::<bool>(), 0i32..3, prop::bool::weighted(0.2))
            .prop_map(|(name, completions, parallelism, cpu, web, priority, per_node)| Act::Job { name, completions, parallelism, cpu, web, priority, per_node }),
        1 => (0u8..200, any::<bool>()).prop_map(|(name, on)| Act::Suspend { name, on }),
        6 => (any::<prop::sample::Index>(), phase).prop_map(|(which, phase)| Act::End { which, phase }),
        1 => (0i64..400).prop_map(|seconds| Act::Wait { seconds }),
        4 => (1usize..20).prop_map(|decisions| Act::Run { decisions }),
    ]
}

fn play(lab: &mut Lab, act: &Act) -> Vec<String> {
    match act {
        Act::Node {
            name,
            slots,
            cpu,
            web,
        } => {
            lab.node(&format!("n{name}"), *slots, |node| {
                label(node, "role", if *web { "web" } else { "db" });
                let status = node.status.as_mut().unwrap();
                status.allocatable.insert("cpu".into(), Quantity(cpu.to_string()));
            });
        }
        Act::Drop { name } => {
            if lab.nodes.remove(&format!("n{name}")).is_some() {
                lab.tell(Event::NodeGone(format!("n{name}")));
            }
        }
        Act::Cordon { name, on } => {
            if lab.nodes.contains_key(&format!("n{name}")) {
                lab.edit_node(&format!("n{name}"), |n| n.spec.unschedulable = *on);
            }
        }
        Act::Job {
            name,
            completions,
            parallelism,
            cpu,
            web,
            priority,
            per_node,
        } => {
            let name = format!("j{name}");
            if lab.jobs.contains_key(&name) {
                return Vec::new();
            }
            let edit = |s: &mut api::JobSpec| {
                s.parallelism = Some(Amount::Count(*parallelism));
                s.priority = Some(*priority);
                if *cpu > 0 {
                    s.resources = Some(Resources {
                        requests: [("cpu".into(), Quantity(cpu.to_string()))].into(),
                        ..Default::default()
                    });
                }
                if *web && !*per_node {
                    s.node_selector = [("role".into(), "web".into())].into();
                }
            };
            if *per_node {
                lab.per_node(&name, &["n0", "n1", "n2"], edit);
            } else {
                lab.job(&name, *completions, edit);
            }
        }
        Act::Suspend { name, on } => {
            if lab.jobs.contains_key(&format!("j{name}")) {
                lab.edit_job(&format!("j{name}"), |j| j.spec.suspend = *on);
            }
        }
        Act::End { which, phase } => {
            let open: Vec<_> = lab
                .tasks
                .iter()
                .filter(|(_, t)| !t.phase().is_terminal())
                .map(|(n, _)| short(n))
                .collect();
            if !open.is_empty() {
                let name = &open[which.index(open.len())];
                let is = lab
                    .tasks
                    .iter()
                    .find(|(n, _)| short(n) == *name)
                    .unwrap()
                    .1
                    .phase();
                if is.may_become(*phase) || is == TaskPhase::Bound {
                    lab.end(name, *phase, "ExitCode");
                }
            }
        }
        Act::Wait { seconds } => lab.wait(*seconds),
        Act::Run { decisions } => {
            return (0..*decisions)
                .map_while(|_| lab.step())
                .map(|p| format!("{}@{}", p.name(), p.node))
                .collect();
        }
    }
    Vec::new()
}

/// What open Tasks take of a node, counted anew.
fn used(lab: &Lab) -> BTreeMap<String, (u32, u32)> {
    let mut used: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for task in lab.tasks.values() {
        let idle = task.phase() == TaskPhase::Bound && task.spec.stop.is_some();
        if task.phase().is_terminal() || idle {
            continue;
        }
        let job = &lab.jobs[&task.spec.job_ref.name];
        let cpu = job
            .spec
            .resources
            .as_ref()
            .map_or(0, |r| r.requests["cpu"].0.parse().unwrap());
        let node = used.entry(task.spec.node_name.clone()).or_default();
        node.0 += 1;
        node.1 += cpu;
    }
    used
}

fn room(lab: &Lab, node: &str) -> Option<(u32, u32)> {
    let allocatable = &lab.nodes.get(node)?.status.as_ref()?.allocatable;
    Some((
        allocatable["slots"].0.parse().ok()?,
        allocatable["cpu"].0.parse().ok()?,
    ))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No decision puts more on a node than it has, nor on one it must not use; parallelism holds; names are never used twice
    /// (the lab checks that); and in the end everything that waits has a reason.
    #[test]
    fn placements_are_sound_and_everything_has_a_reason(acts in prop::collection::vec(act(), 1..80)) {
        let mut lab = Lab::new();
        for act in &acts {
            if let Act::Run { decisions } = act {
                for _ in 0..*decisions {
                    let Some(placed) = lab.step() else { break };
                    if placed.record.is_some() {
                        continue;
                    }
                    let (slots, cpu) = used(&lab)[&*placed.node];
                    let (has_slots, has_cpu) = room(&lab, &placed.node).expect("the node is there");
                    prop_assert!(slots <= has_slots, "{} has {slots} of {has_slots} slots", placed.node);
                    let asks = placed.job.spec.resources.is_some();
                    prop_assert!(!asks || cpu <= has_cpu, "{} has {cpu} of {has_cpu} cpus", placed.node);
                    let node = &lab.nodes[&*placed.node];
                    prop_assert!(!node.spec.unschedulable);
                    for (k, v) in &placed.job.spec.node_selector {
                        prop_assert_eq!(node.metadata.labels.as_ref().unwrap().get(k), Some(v));
                    }
                    let job = &lab.jobs[placed.job.name()];
                    prop_assert!(!job.spec.suspend);
                    let running = lab.tasks.values().filter(|t| t.spec.job_ref.name == job.name() && !t.phase().is_terminal()).count();
                    let Some(Amount::Count(parallelism)) = job.spec.parallelism else { unreachable!() };
                    prop_assert!(running <= parallelism as usize);
                }
            } else {
                play(&mut lab, act);
            }
        }
        lab.run();
        let names: Vec<_> = lab.jobs.keys().cloned().collect();
        for name in names {
            let job = &lab.jobs[&name];
            let members: Vec<_> = ["n0", "n1", "n2"].iter().map(|n| std::sync::Arc::from(*n)).collect();
            let wanted = api::wanted::wanted(job, Some(&members), lab.tasks.values(), lab.now);
            let suspended = job.spec.suspend;
            if wanted.outlook.counts.pending > 0 && wanted.outlook.phase != JobPhase::Suspended && !suspended {
                let why = lab.why(&name);
                let explained: u32 = lab.core.waiting(&format!("uid-{name}"), lab.now).iter().map(|w| w.count as u32).sum();
                prop_assert_eq!(explained, wanted.outlook.counts.pending, "{}: {:?}", name, why);
            }
        }
    }

    /// No eligible index waits where it could go: in the end no free node fits any waiting Indexed work.
    #[test]
    fn nothing_waits_that_could_go(acts in prop::collection::vec(act(), 1..60)) {
        let mut lab = Lab::new();
        for act in &acts {
            play(&mut lab, act);
        }
        lab.run();
        let used = used(&lab);
        for (name, job) in &lab.jobs {
            let per_node = job.spec.is_per_node();
            let wanted = api::wanted::wanted(job, None, lab.tasks.values(), lab.now);
            let open = matches!(wanted.outlook.gate, api::wanted::Gate::Open { room } if room > 0);
            if per_node || !open || wanted.fresh.is_empty() {
                continue;
            }
            let cpu: u32 = job.spec.resources.as_ref().map_or(0, |r| r.requests["cpu"].0.parse().unwrap());
            for (node, state) in &lab.nodes {
                let (slots, cpus) = used.get(node).copied().unwrap_or_default();
                let (has_slots, has_cpus) = room(&lab, node).unwrap();
                let labels = state.metadata.labels.as_ref().unwrap();
                let fits = !state.spec.unschedulable
                    && slots < has_slots
                    && (cpu == 0 || cpus + cpu <= has_cpus)
                    && job.spec.node_selector.iter().all(|(k, v)| labels.get(k) == Some(v));
                let reserved = lab.now.as_second() - 1_700_000_000 >= 300; // a node may be kept for starved work
                prop_assert!(!fits || reserved, "{name} could go to {node}");
            }
        }
    }

    #[test]
    fn same_events_and_seed_same_decisions(acts in prop::collection::vec(act(), 1..80)) {
        let run = || {
            let mut lab = Lab::new();
            let mut decisions: Vec<String> = acts.iter().flat_map(|a| play(&mut lab, a)).collect();
            decisions.extend(lab.run());
            decisions
        };
        prop_assert_eq!(run(), run());
    }

    /// Only lower work that may run again gives way, never twice (the lab checks that), and what is made room for finds it.
    #[test]
    fn preemption_takes_only_what_counts_less(
        work in prop::collection::vec((1i32..4, 0i32..4, 1u32..4, any::<bool>()), 1..12),
        nodes in prop::collection::vec(1u32..5, 1..4),
    ) {
        let mut lab = Lab::new();
        lab.queue("default", |q| q.preemption = api::queue::Preemption::LowerPriority);
        for (number, cpu) in nodes.iter().enumerate() {
            lab.node(&format!("n{number}"), 9, |node| {
                let status = node.status.as_mut().unwrap();
                status.allocatable.insert("cpu".into(), Quantity(cpu.to_string()));
            });
        }
        let mut stopped = 0;
        for (number, (completions, priority, cpu, rerun)) in work.iter().enumerate() {
            lab.job(&format!("j{number}"), *completions, |s| {
                s.priority = Some(*priority);
                s.resources = requests(&[("cpu", &cpu.to_string())]);
                s.on_unknown = if *rerun { api::job::OnUnknown::Rerun } else { api::job::OnUnknown::Hold };
            });
            for _ in 0..50 {
                lab.run();
                let open: Vec<_> = lab.tasks.values().filter(|t| !t.phase().is_terminal()).cloned().collect();
                for task in &open {
                    let phase = match &task.spec.stop {
                        None => TaskPhase::Running,
                        Some(_) if task.phase().is_bound() => TaskPhase::Rejected,
                        Some(_) => TaskPhase::Failed,
                    };
                    if task.phase() != phase {
                        lab.end(&short(task.metadata.name.as_ref().unwrap()), phase, "Preempted");
                    }
                }
                if lab.stopped.len() == stopped {
                    break;
                }
                for stop in &lab.stopped[stopped..] {
                    let (task, job) = stop.split_once(" for ").unwrap();
                    let victim = &lab.jobs[task.split('-').next().unwrap()].spec;
                    let keeper = &lab.jobs[job].spec;
                    prop_assert!(victim.priority < keeper.priority, "{}", stop);
                    prop_assert_eq!(victim.on_unknown, api::job::OnUnknown::Rerun, "{}", stop);
                }
                stopped = lab.stopped.len();
            }
        }
        // what waits could not have been let in by stopping lower work: on no node is there enough of that
        lab.run();
        for (name, job) in &lab.jobs {
            let wanted = api::wanted::wanted(job, None, lab.tasks.values(), lab.now);
            if wanted.fresh.is_empty() {
                continue;
            }
            let cpu_of = |job: &api::Job| job.spec.resources.as_ref().unwrap().requests["cpu"].value().unwrap();
            for (number, cpu) in nodes.iter().enumerate() {
                let here = lab.tasks.values().filter(|t| t.spec.node_name == format!("n{number}") && !t.phase().is_terminal());
                let stays = here.map(|t| &lab.jobs[&t.spec.job_ref.name]).filter(|other| {
                    other.spec.priority >= job.spec.priority || other.spec.on_unknown == api::job::OnUnknown::Hold
                });
                let stays: u64 = stays.map(cpu_of).sum();
                prop_assert!(stays + cpu_of(job) > u64::from(*cpu), "{} could be let in on n{}", name, number);
            }
        }
    }
}
