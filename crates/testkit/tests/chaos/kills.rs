//! Who is killed, together with whom, and when.

use crate::{AGENTS, dice::Dice};
use anyhow::Result;
use std::time::Duration;
use testkit::System;

/// Every way to kill some of server, agents and runners together.
const PAIRINGS: [(bool, bool, bool); 7] = [
    (true, false, false),
    (false, true, false),
    (false, false, true),
    (true, true, false),
    (true, false, true),
    (false, true, true),
    (true, true, true),
];

/// Kills all pairings in random order, at random instants while the round's Jobs come in and run.
pub async fn spread(system: &mut System, dice: &mut Dice) -> Result<()> {
    let mut left = PAIRINGS.to_vec();
    while !left.is_empty() {
        let next = usize::try_from(dice.below(left.len() as u64))?;
        let (server, agent, runner) = left.swap_remove(next);
        // the instant is the thing under test; nothing is awaited here
        tokio::time::sleep(Duration::from_millis(dice.below(700))).await;
        if server {
            system.kill_server().await?;
        }
        if agent {
            let number = 1 + u32::try_from(dice.below(AGENTS.into()))?;
            // none if it is about to be started again
            if let Ok(agent) = system.agent(number) {
                agent.kill();
            }
        }
        if runner {
            let runners = system.runners();
            if !runners.is_empty() {
                runners[usize::try_from(dice.below(runners.len() as u64))?].kill();
            }
        }
        if server {
            tokio::time::sleep(Duration::from_millis(dice.below(300))).await;
            system.start_server().await?;
        }
    }
    Ok(())
}
