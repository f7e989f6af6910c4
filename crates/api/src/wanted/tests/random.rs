//! Random worlds against a slow, obvious reference.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct World {
    job: Job,
    tasks: Vec<Task>,
    now: i64,
}

fn ends() -> impl Strategy<Value = (TaskPhase, &'static str, bool, bool)> {
    let phase = prop_oneof![
        Just(TaskPhase::Bound),
        Just(TaskPhase::Running),
        Just(TaskPhase::Succeeded),
        Just(TaskPhase::Skipped),
        Just(TaskPhase::Cancelled),
        Just(TaskPhase::Unknown),
        Just(TaskPhase::Rejected),
        Just(TaskPhase::Failed),
        Just(TaskPhase::Failed),
        Just(TaskPhase::Failed),
    ];
    let reason = prop_oneof![
        Just("ExitCode"),
        Just("ExitCode"),
        Just("RunnerLost"),
        Just("NodeUnavailable"),
        Just("JournalLost"),
    ];
    (phase, reason, any::<bool>(), prop::bool::weighted(0.2))
}

fn world() -> impl Strategy<Value = World> {
    let attempts = prop::collection::vec(prop::collection::vec(ends(), 0..9), 0..6);
    let spec = (
        0i32..8,
        0i32..4,
        0i32..4,
        any::<bool>(),
        any::<bool>(),
        prop::option::of(1i64..100),
    );
    (attempts, spec, 0i64..200).prop_map(|(attempts, spec, now)| {
        let (completions, limit, failures, rerun, cancel, deadline) = spec;
        let mut job = job(completions, limit);
        job.spec.max_failures = Some(Amount::Count(failures));
        job.spec.active_deadline_seconds = deadline;
        if rerun {
            job.spec.on_unknown = OnUnknown::Rerun;
        }
        if cancel && failures == 0 {
            job.spec.cancel = Some(Cancel::default());
        }
        let mut tasks = Vec::new();
        for (index, ends) in attempts.into_iter().enumerate() {
            for (n, (phase, reason, started, fatal)) in ends.into_iter().enumerate() {
                let one = task(index as i32, n as i32, phase, reason);
                tasks.push(with(one, |s| {
                    s.started_steps = started;
                    s.fatal = fatal;
                }));
            }
        }
        World { job, tasks, now }
    })
}

/// What one index counts as, the slow way: `None` is pending.
fn count_slowly(job: &Job, tasks: &[&Task]) -> &'static str {
    if tasks.iter().any(|t| !t.phase().is_terminal()) {
        return "active";
    }
    let rerun = job.spec.on_unknown == OnUnknown::Rerun;
    let mut left = job.spec.retry_strategy.as_ref().unwrap().limit;
    let mut free = 5;
    for t in tasks {
        let s = t.status.as_ref().unwrap();
        match s.phase {
            TaskPhase::Succeeded => return "succeeded",
            TaskPhase::Skipped => return "skipped",
            TaskPhase::Cancelled => return "cancelled",
            TaskPhase::Rejected => continue,
            _ => {}
        }
        let name = if s.phase == TaskPhase::Unknown {
            "unknown"
        } else {
            "failed"
        };
        if s.reason == "NodeUnavailable" {
            return name;
        }
        let system = s.phase == TaskPhase::Unknown || s.reason == "RunnerLost";
        if system {
            let repeatable = rerun || s.phase == TaskPhase::Failed && !s.started_steps;
            if !repeatable {
                return name;
            }
            if free > 0 {
                free -= 1;
                continue;
            }
        } else if s.fatal {
            return name;
        }
        if left == 0 {
            return name;
        }
        left -= 1;
    }
    match tasks.iter().rev().find(|t| t.phase() != TaskPhase::Rejected) {
        None => "pending, else cancelled",
        Some(t) if t.phase() == TaskPhase::Unknown => "pending, else unknown",
        Some(_) => "pending, else failed",
    }
}

fn reference(world: &World) -> (Counts, JobPhase) {
    let job = &world.job;
    let mut found = std::collections::BTreeMap::<&str, u32>::new();
    let desired = job.spec.completions.unwrap();
    for index in 0..desired {
        let tasks: Vec<_> = world.tasks.iter().filter(|t| t.spec.index == index).collect();
        *found.entry(count_slowly(job, &tasks)).or_default() += 1;
    }
    let mut n = |name: &str| found.remove(name).unwrap_or(0);
    let (else_cancelled, else_unknown, else_failed) = (
        n("pending, else cancelled"),
        n("pending, else unknown"),
        n("pending, else failed"),
    );
    let mut c = Counts {
        desired: desired as u32,
        pending: else_cancelled + else_unknown + else_failed,
        active: n("active"),
        succeeded: n("succeeded"),
        failed: n("failed"),
        unknown: n("unknown"),
        cancelled: n("cancelled"),
        skipped: n("skipped"),
        ..Default::default()
    };
    let made = world.tasks.iter().any(|t| t.spec.index < desired);
    let late =
        made && job.spec.active_deadline_seconds.is_some_and(|s| s <= world.now) && c.pending + c.active > 0;
    let cancelled = job.spec.cancel.is_some();
    let allowed = match job.spec.max_failures {
        Some(Amount::Count(n)) => n as u32,
        _ => unreachable!(),
    };
    let too_many = c.failed + c.unknown > allowed;
    if cancelled || too_many || late {
        c.cancelled += else_cancelled;
        c.unknown += else_unknown;
        c.failed += else_failed;
        c.pending = 0;
    }
    let phase = if c.pending + c.active > 0 {
        if made {
            JobPhase::Running
        } else {
            JobPhase::Pending
        }
    } else if c.failed > 0 || (late && !cancelled) {
        JobPhase::Failed
    } else if c.unknown > 0 {
        JobPhase::Unknown
    } else if c.cancelled > 0 || cancelled && desired == 0 {
        JobPhase::Cancelled
    } else {
        JobPhase::Succeeded
    };
    (c, phase)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_the_slow_reference(world in world()) {
        let got = wanted(&world.job, None, &world.tasks, at(world.now)).outlook;
        let (counts, phase) = reference(&world);
        let plain = Counts { retries: 0, ..got.counts };
        prop_assert_eq!(plain, counts);
        prop_assert_eq!(got.phase, phase);
    }

    #[test]
    fn counts_always_add_up_and_nothing_is_wanted_twice(world in world()) {
        let w = wanted(&world.job, None, &world.tasks, at(world.now));
        let c = w.outlook.counts;
        prop_assert_eq!(c.desired, c.pending + c.active + c.succeeded + c.failed + c.unknown + c.cancelled + c.skipped);
        for (key, again) in &w.again {
            let Key::Index(index) = key else { unreachable!() };
            prop_assert!(!w.fresh.contains(*index));
            let used = world.tasks.iter().any(|t| t.spec.index == *index as i32 && t.spec.attempt == again.attempt as i32);
            prop_assert!(!used, "attempt {} of {} exists", again.attempt, key);
        }
        for t in &world.tasks {
            prop_assert!(!w.fresh.contains(t.spec.index as u32));
        }
    }

    #[test]
    fn the_order_of_events_and_detours_do_not_matter(world in world(), order in any::<prop::sample::Index>()) {
        let straight = wanted(&world.job, None, &world.tasks, at(world.now));
        let mut ledger = Ledger::new(&world.job);
        let turn = if world.tasks.is_empty() { 0 } else { order.index(world.tasks.len()) };
        for t in world.tasks[turn..].iter().chain(&world.tasks[..turn]).rev() {
            let mut bound = t.clone();
            bound.status = None;
            ledger.apply(&bound);
            ledger.remove(t);
            ledger.apply(t);
            ledger.apply(t);
        }
        prop_assert_eq!(ledger.wanted(&world.job, at(world.now)), straight);
    }
}
