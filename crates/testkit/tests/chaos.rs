//! Kills at random instants, and what must hold all the same. `ROUNDS` sets the length, `SEED` repeats a run.
//!
//! Every step appends its own id to a file of the round. After a round: no id is there twice; one is missing only where the Task says
//! that the outcome is not known; all accepted Jobs are there, ended, with exact counts; every log is what the agent's disk holds.

#[path = "chaos/dice.rs"]
mod dice;
#[path = "chaos/jobs.rs"]
mod jobs;
#[path = "chaos/kills.rs"]
mod kills;
#[path = "chaos/verdict.rs"]
mod verdict;

use anyhow::Result;
use dice::Dice;
use testkit::{Options, System, wait};

const AGENTS: u32 = 3;
const JOBS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_whatever_is_killed_whenever() -> Result<()> {
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(default)
    };
    let (rounds, seed) = (number("ROUNDS", 2), number("SEED", 1));
    let mut system = System::start(
        Options::agents(AGENTS)
            .flag("--renew-seconds", 1)
            .flag("--node-lost-seconds", 8),
    )
    .await?;
    wait::nodes_ready(&system.client().await?, AGENTS).await?;
    let mut tally = verdict::Tally::default();
    for round in 0..rounds {
        let mut dice = Dice::new(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let namespace = format!("round-{round}");
        let ids = system.folder().join(format!("{namespace}.ids"));
        jobs::namespace(&system, &namespace).await?;
        let client = system.client().await?;
        let plan = jobs::plan(&mut dice, JOBS, &ids)?;
        let submitting = tokio::spawn(jobs::submit(client, namespace.clone(), plan));
        kills::spread(&mut system, &mut dice).await?;
        let accepted = submitting.await??;
        let outcome = verdict::of(&system, &namespace, &accepted, &ids).await;
        tally.add(outcome.map_err(|error| {
            error.context(format!(
                "round {round} of SEED={seed}: {}",
                system.log_file().display()
            ))
        })?);
    }
    println!("{rounds} rounds with {JOBS} jobs each: {tally}");
    system.stop().await
}
