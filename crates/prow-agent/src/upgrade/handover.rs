//! An upgrade, step by step; killed after any of them, it comes to a good end.
//!
//! ```text
//! pending recorded ─► guard armed ─► service's program changed ─► handed over ─► new version at work ─► done
//!                                                                        └─► not in time ─► changed back ─► handed over ─► taken back
//! ```
//!
//! Nothing of the old version is moved or overwritten. Before the guard is armed nothing has changed; after it the guard, a one-shot
//! scheduled task, does [`settle`] if the command that began is gone. Settling is the same for both, and again is fine.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What is known of the last upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The old program.
    pub from: PathBuf,
    /// The new one.
    pub to: PathBuf,
    /// How far it is.
    pub stage: Stage,
}

/// How far an upgrade is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Under way.
    Pending,
    /// The new version does its work.
    Done,
    /// The old version is back.
    TakenBack {
        /// Why.
        why: String,
    },
}

/// The host an upgrade happens on.
pub trait Host {
    /// What fails.
    type Error;
    /// The program that the service is to run.
    fn program(&self) -> Result<PathBuf, Self::Error>;
    /// Changes it, in one step.
    fn set_program(&mut self, program: &Path) -> Result<(), Self::Error>;
    /// The program that the service runs now.
    fn running(&self) -> Result<Option<PathBuf>, Self::Error>;
    /// Has the service end and start anew, with the program it is to run.
    fn hand_over(&mut self) -> Result<(), Self::Error>;
    /// The program that does the agent's work now: it holds the node's Lease.
    fn at_work(&self) -> Option<PathBuf>;
    /// Waits a moment; whether there is time left.
    fn wait(&mut self) -> bool;
    /// Has the guard come, if we do not call it off.
    fn arm(&mut self, record: &Record) -> Result<(), Self::Error>;
    /// Calls the guard off.
    fn disarm(&mut self) -> Result<(), Self::Error>;
    /// The last record.
    fn record(&self) -> Result<Option<Record>, Self::Error>;
    /// Keeps a record, durably.
    fn keep(&mut self, record: &Record) -> Result<(), Self::Error>;
}

/// Upgrades to a program that lies where it is to be.
pub fn upgrade<H: Host>(host: &mut H, to: &Path) -> Result<Stage, H::Error> {
    let from = host.program()?;
    if from == to {
        return Ok(Stage::Done);
    }
    let record = Record {
        from,
        to: to.to_owned(),
        stage: Stage::Pending,
    };
    host.keep(&record)?;
    host.arm(&record)?;
    host.set_program(to)?;
    let handed_over = host.hand_over();
    let stage = settle(host)?;
    match (handed_over, &stage) {
        (Err(error), Some(Stage::Pending) | None) => Err(error),
        _ => Ok(stage.unwrap_or(Stage::Done)),
    }
}

/// Sees the last upgrade to its end: how it ended, `None` if there was none.
pub fn settle<H: Host>(host: &mut H) -> Result<Option<Stage>, H::Error> {
    let Some(mut record) = host.record()? else {
        host.disarm()?;
        return Ok(None);
    };
    if record.stage == Stage::Pending {
        record.stage = if host.program()? != record.to {
            run(host, &record.from)?; // it may have been changed back, and nobody told the service
            taken_back("it was cut off before the new version could start")
        } else if is_at_work(host, &record.to) {
            Stage::Done
        } else {
            host.set_program(&record.from)?;
            run(host, &record.from)?;
            taken_back("the new version did not get to work in time; see its words in agent.log")
        };
        host.keep(&record)?;
    }
    host.disarm()?;
    Ok(Some(record.stage))
}

fn taken_back(why: &str) -> Stage {
    Stage::TakenBack { why: why.to_owned() }
}

fn is_at_work<H: Host>(host: &mut H, program: &Path) -> bool {
    loop {
        if host.at_work().as_deref() == Some(program) {
            return true;
        }
        if !host.wait() {
            return false;
        }
    }
}

fn run<H: Host>(host: &mut H, program: &Path) -> Result<(), H::Error> {
    if host.running()?.as_deref() == Some(program) {
        return Ok(());
    }
    host.hand_over()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "old";

    /// A host whose updater can be killed before any change it makes.
    #[derive(Clone, Debug)]
    struct Fake {
        program: PathBuf,
        running: Option<PathBuf>,
        record: Option<Record>,
        armed: bool,
        looks: u32,
        /// Changes that are made before the kill.
        left: u32,
    }

    #[derive(Debug, PartialEq)]
    struct Killed;

    impl Fake {
        fn new() -> Self {
            Self {
                program: OLD.into(),
                running: Some(OLD.into()),
                record: None,
                armed: false,
                looks: 0,
                left: u32::MAX,
            }
        }

        fn change(&mut self) -> Result<(), Killed> {
            self.left = self.left.checked_sub(1).ok_or(Killed)?;
            Ok(())
        }

        /// What the service manager does in the end: the service runs what it is to run, if that can run.
        fn assert_in_order(&self, to: &str, why: &str) {
            let wanted = if to == "good" { [OLD, "good"] } else { [OLD, OLD] };
            assert!(
                wanted.iter().any(|w| self.program == Path::new(w)),
                "{why}: {self:?}"
            );
            assert_eq!(self.running.as_ref(), Some(&self.program), "{why}: {self:?}");
            assert!(!self.armed, "{why}: {self:?}");
        }
    }

    impl Host for Fake {
        type Error = Killed;

        fn program(&self) -> Result<PathBuf, Killed> {
            Ok(self.program.clone())
        }

        fn set_program(&mut self, program: &Path) -> Result<(), Killed> {
            self.change()?;
            self.program = program.to_owned();
            Ok(())
        }

        fn running(&self) -> Result<Option<PathBuf>, Killed> {
            Ok(self.running.clone())
        }

        fn hand_over(&mut self) -> Result<(), Killed> {
            self.change()?;
            self.running = None;
            self.change()?;
            self.running = Some(self.program.clone()).filter(|program| program != Path::new("broken"));
            Ok(())
        }

        fn at_work(&self) -> Option<PathBuf> {
            self.running
                .clone()
                .filter(|program| program != Path::new("idle"))
        }

        fn wait(&mut self) -> bool {
            self.looks += 1;
            self.looks < 3 && self.left > 0
        }

        fn arm(&mut self, _record: &Record) -> Result<(), Killed> {
            self.change()?;
            self.armed = true;
            Ok(())
        }

        fn disarm(&mut self) -> Result<(), Killed> {
            self.change()?;
            self.armed = false;
            Ok(())
        }

        fn record(&self) -> Result<Option<Record>, Killed> {
            Ok(self.record.clone())
        }

        fn keep(&mut self, record: &Record) -> Result<(), Killed> {
            self.change()?;
            self.record = Some(record.clone());
            Ok(())
        }
    }

    #[test]
    fn a_good_version_takes_over_and_a_bad_one_does_not() {
        for (to, good) in [("good", true), ("idle", false), ("broken", false)] {
            let mut host = Fake::new();
            let stage = upgrade(&mut host, Path::new(to)).unwrap();
            assert_eq!(stage == Stage::Done, good, "{to}: {stage:?}");
            assert_eq!(host.program, Path::new(if good { to } else { OLD }), "{to}");
            host.assert_in_order(to, "unkilled");
        }
    }

    /// AL-01: the updater is killed before each of its changes, and then the guard before each of its own.
    #[test]
    fn wherever_it_is_killed_an_agent_that_works_is_there_in_the_end() {
        for to in ["good", "idle", "broken"] {
            for first in 0.. {
                let mut host = Fake {
                    left: first,
                    ..Fake::new()
                };
                let ended = upgrade(&mut host, Path::new(to));
                if !host.armed {
                    // Nothing has changed yet, or all is over.
                    host.assert_in_order(to, &format!("{to}, killed at {first}"));
                    if ended.is_ok() {
                        break;
                    }
                    continue;
                }
                for second in 0.. {
                    let mut host = Fake {
                        left: second,
                        looks: 0,
                        ..host.clone()
                    };
                    if settle(&mut host).is_err() {
                        assert!(
                            host.armed,
                            "{to}, killed at {first}, guard at {second}: nobody comes again"
                        );
                    }
                    // At the next boot the guard comes again.
                    host.left = u32::MAX;
                    host.looks = 0;
                    let stage = settle(&mut host).unwrap();
                    host.assert_in_order(to, &format!("{to}, killed at {first}, guard at {second}"));
                    assert_ne!(stage, Some(Stage::Pending));
                    if second > 20 {
                        break;
                    }
                }
            }
        }
    }

    #[test]
    fn an_upgrade_that_was_cut_off_does_not_stand_in_the_way_of_the_next() {
        let mut host = Fake {
            left: 1,
            ..Fake::new()
        };
        assert_eq!(upgrade(&mut host, Path::new("idle")), Err(Killed));
        host.left = u32::MAX;
        assert_eq!(upgrade(&mut host, Path::new("good")), Ok(Stage::Done));
        host.assert_in_order("good", "second");
    }
}
