//! The core against the oracle: whatever happens, every decision is one the oracle allows, and where the core decides nothing the oracle
//! finds nothing that could go. And the oracle itself: a planted bug of each kind is noticed.

use super::{
    lab::*,
    lies::{self, Lie},
    oracle::Oracle,
};
use api::{
    Job,
    amount::Amount,
    placement::{
        AntiAffinityTerm, LabelSelector, SpreadConstraint, Toleration, TolerationOperator, Unsatisfiable,
    },
    quantity::Quantity,
    queue::{Ordering, StopPolicy},
    retry::RetryStrategy,
    task::TaskPhase,
};
use proptest::{
    prelude::*,
    test_runner::{TestCaseError, TestRunner},
};

/// The lab's clock moves no further than this, so that no node is kept for work that starved.
const END: i64 = 1_700_000_000 + 290;
const QUEUES: [&str; 3] = ["default", "other", "gold"];

#[derive(Clone, Debug)]
enum Act {
    Node {
        name: u8,
        slots: u32,
        cpu: u32,
        web: bool,
        zone: u8,
        tainted: bool,
        cordoned: bool,
    },
    Queue {
        name: usize,
        tier: i32,
        strict: bool,
        max: Option<i32>,
        cpu: Option<u32>,
        hold: bool,
    },
    Job(Work),
    Suspend {
        name: u8,
        on: bool,
    },
    Priority {
        name: u8,
        to: i32,
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

#[derive(Clone, Debug)]
struct Work {
    name: u8,
    queue: usize,
    completions: i32,
    parallelism: i32,
    cpu: u32,
    priority: i32,
    web: bool,
    tolerates: bool,
    spread: Option<(bool, i32)>,
    /// Which label it has, and from which it keeps apart: by zone or by host.
    app: u8,
    apart: Option<(u8, bool)>,
}

fn work() -> impl Strategy<Value = Work> {
    let plain = (
        0u8..40,
        0usize..3,
        0i32..6,
        1i32..5,
        0u32..4,
        0i32..3,
        any::<bool>(),
        any::<bool>(),
    );
    let spread = prop::option::weighted(0.25, (any::<bool>(), 1i32..3));
    let apart = prop::option::weighted(0.25, (0u8..3, any::<bool>()));
    (plain, spread, 0u8..3, apart).prop_map(
        |((name, queue, completions, parallelism, cpu, priority, web, tolerates), spread, app, apart)| Work {
            name,
            queue,
            completions,
            parallelism,
            cpu,
            priority,
            web,
            tolerates,
            spread,
            app,
            apart,
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    let phase = prop_oneof![
        Just(TaskPhase::Running),
        Just(TaskPhase::Succeeded),
        Just(TaskPhase::Succeeded),
        Just(TaskPhase::Failed),
        Just(TaskPhase::Rejected),
    ];
    let rare = || prop::bool::weighted(0.2);
    prop_oneof![
        4 => (0u8..5, 0u32..4, 0u32..5, any::<bool>(), 0u8..3, rare(), rare()).prop_map(
            |(name, slots, cpu, web, zone, tainted, cordoned)| Act::Node { name, slots, cpu, web, zone, tainted, cordoned }
        ),
        1 => (0usize..3, 0i32..2, rare(), prop::option::weighted(0.3, 0i32..4), prop::option::weighted(0.4, 0u32..5), rare())
            .prop_map(|(name, tier, strict, max, cpu, hold)| Act::Queue { name, tier, strict, max, cpu, hold }),
        4 => work().prop_map(Act::Job),
        1 => (0u8..40, any::<bool>()).prop_map(|(name, on)| Act::Suspend { name, on }),
        1 => (0u8..40, 0i32..3).prop_map(|(name, to)| Act::Priority { name, to }),
        6 => (any::<prop::sample::Index>(), phase).prop_map(|(which, phase)| Act::End { which, phase }),
        1 => (0i64..40).prop_map(|seconds| Act::Wait { seconds }),
        4 => (1usize..12).prop_map(|decisions| Act::Run { decisions }),
    ]
}

fn submit(lab: &mut Lab, work: &Work) {
    let name = format!("j{}", work.name);
    if lab.jobs.contains_key(&name) {
        return;
    }
    let app = format!("app{}", work.app);
    lab.labelled(&name, work.completions, &[("app", &app)], |s| {
        s.queue_name = QUEUES[work.queue].into();
        s.parallelism = Some(Amount::Count(work.parallelism));
        s.priority = Some(work.priority);
        s.retry_strategy = Some(RetryStrategy {
            limit: 1,
            ..Default::default()
        });
        if work.cpu > 0 {
            s.resources = requests(&[("cpu", &work.cpu.to_string())]);
        }
        if work.web {
            s.node_selector = [("role".into(), "web".into())].into();
        }
        if work.tolerates {
            s.tolerations = vec![Toleration {
                operator: TolerationOperator::Exists,
                ..Default::default()
            }];
        }
        if let Some((required, max_skew)) = work.spread {
            s.topology_spread_constraints = vec![SpreadConstraint {
                max_skew,
                topology_key: "zone".into(),
                when_unsatisfiable: match required {
                    true => Unsatisfiable::DoNotSchedule,
                    false => Unsatisfiable::ScheduleAnyway,
                },
            }];
        }
        if let Some((app, by_zone)) = work.apart {
            let anti = s
                .affinity
                .get_or_insert_default()
                .job_anti_affinity
                .get_or_insert_default();
            anti.required_during_scheduling_ignored_during_execution = vec![AntiAffinityTerm {
                label_selector: LabelSelector {
                    match_labels: [("app".into(), format!("app{app}"))].into(),
                    ..Default::default()
                },
                topology_key: if by_zone { "zone" } else { "kubernetes.io/hostname" }.into(),
            }];
        }
    });
}

fn play(lab: &mut Lab, act: &Act) -> Result<(), String> {
    match act {
        Act::Node {
            name,
            slots,
            cpu,
            web,
            zone,
            tainted,
            cordoned,
        } => {
            let name = format!("n{name}");
            let generation = lab
                .nodes
                .get(&name)
                .and_then(|n| n.metadata.generation)
                .unwrap_or(0)
                + 1;
            lab.node(&name, *slots, |node| {
                node.metadata.generation = Some(generation);
                label(node, "role", if *web { "web" } else { "db" });
                if *zone > 0 {
                    label(node, "zone", &zone.to_string());
                }
                if *tainted {
                    node.spec.taints = vec![taint("broken")];
                }
                node.spec.unschedulable = *cordoned;
                let status = node.status.as_mut().unwrap();
                status.allocatable.insert("cpu".into(), Quantity(cpu.to_string()));
            });
        }
        Act::Queue {
            name,
            tier,
            strict,
            max,
            cpu,
            hold,
        } => lab.queue(QUEUES[*name], |q| {
            q.priority = *tier;
            q.max_running = *max;
            q.quota = cpu
                .iter()
                .map(|cpu| ("cpu".into(), Quantity(cpu.to_string())))
                .collect();
            q.ordering = if *strict {
                Ordering::StrictFifo
            } else {
                Ordering::PriorityThenFifo
            };
            q.stop_policy = if *hold { StopPolicy::Hold } else { StopPolicy::None };
        }),
        Act::Job(work) => submit(lab, work),
        Act::Suspend { name, on } if lab.jobs.contains_key(&format!("j{name}")) => {
            lab.edit_job(&format!("j{name}"), |j| j.spec.suspend = *on);
        }
        Act::Priority { name, to } if lab.jobs.contains_key(&format!("j{name}")) => {
            lab.edit_job(&format!("j{name}"), |j| j.spec.priority = Some(*to));
        }
        Act::Suspend { .. } | Act::Priority { .. } => {}
        Act::End { which, phase } => {
            let open: Vec<_> = lab
                .tasks
                .iter()
                .filter(|(_, t)| !t.phase().is_terminal())
                .collect();
            if !open.is_empty() {
                let (name, task) = open[which.index(open.len())];
                if task.phase().may_become(*phase) || task.phase().is_bound() {
                    let name = short(name);
                    lab.end(&name, *phase, "ExitCode");
                }
            }
        }
        Act::Wait { seconds } => lab.wait((*seconds).min(END - lab.now.as_second())),
        Act::Run { decisions } => {
            for _ in 0..*decisions {
                if !step(lab)? {
                    break;
                }
            }
        }
    }
    Ok(())
}

/// One decision, judged before it is carried out.
fn step(lab: &mut Lab) -> Result<bool, String> {
    let Some(placed) = lab.decide() else {
        let oracle = Oracle(lab);
        let waits = |job: &&Job| !oracle.blocked(job, false);
        for job in lab.jobs.values().filter(waits) {
            if let Some((key, node)) = oracle.could_go(job).first() {
                return Err(format!("{} {key} could go to {node} and waits", job.name()));
            }
        }
        return Ok(false);
    };
    let oracle = Oracle(lab);
    let job = &lab.jobs[placed.job.name()];
    let what = format!("{} {} on {}", job.name(), placed.key, placed.node);
    if let Some(why) = oracle.held(job).or_else(|| oracle.refuses(job, &placed.node)) {
        return Err(format!("{what}: {why}"));
    }
    let places = oracle.could_go(job);
    if !places.contains(&(placed.key.clone(), placed.node.to_string())) {
        return Err(format!("{what}: not its turn"));
    }
    if places[0].0 != placed.key {
        return Err(format!("{what}: {} goes first", places[0].0));
    }
    if oracle.blocked(job, true) {
        return Err(format!("{what}: work before it lets nothing pass"));
    }
    for other in lab
        .jobs
        .values()
        .filter(|other| oracle.before(other, job) && !oracle.blocked(other, false))
    {
        if let Some((_, node)) = oracle.could_go(other).first() {
            return Err(format!(
                "{what}: {} goes before it and could go to {node}",
                other.name()
            ));
        }
    }
    let score = oracle.score(job, &placed.node);
    for (key, node) in &places {
        if *key == placed.key && oracle.score(job, node) > score {
            return Err(format!(
                "{what}: {node} is better, {:?} against {score:?}",
                oracle.score(job, node)
            ));
        }
    }
    lab.carry_out(placed);
    Ok(true)
}

fn check(acts: &[Act], lie: Option<Lie>) -> Result<(), String> {
    let mut lab = Lab::new();
    lab.lie = lie;
    for name in QUEUES {
        lab.queue(name, |_| {});
    }
    for act in acts {
        play(&mut lab, act)?;
    }
    while step(&mut lab)? {}
    Ok(())
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    prop::collection::vec(act(), 1..70)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_decision_is_one_the_oracle_allows(acts in acts()) {
        check(&acts, None).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn a_planted_bug_of_each_kind_is_noticed() {
    for lie in lies::ALL {
        let config = ProptestConfig {
            cases: 2000,
            max_shrink_iters: 0,
            failure_persistence: None,
            ..Default::default()
        };
        let mut runner = TestRunner::new_with_rng(
            config,
            proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
        );
        let noticed = runner.run(&acts(), |acts| {
            check(&acts, Some(lie)).map_err(TestCaseError::fail)
        });
        assert!(noticed.is_err(), "{lie:?} goes unnoticed");
    }
}
