//! `place-*`: how fast the scheduler's core decides, in the shapes and sizes of Kubernetes' scheduler_perf.
//!
//! The core is driven as the scheduler drives it: it is told of nodes, Jobs and Tasks, is asked for decisions, and is shown every Task
//! that it decided on. No API, no disk, one thread. An operation is a placement with all that; a latency is that of the decision alone.

mod shape;
mod world;

use crate::report::{Meter, Report};
use anyhow::{Result, bail, ensure};
use hdrhistogram::Histogram;
use scheduler::core::Decision;
use shape::Shape;
use std::time::{Duration, Instant};
use world::World;

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Nodes; every third is in the same zone.
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    /// Tasks that run before the measurement.
    #[arg(long, default_value_t = 1000)]
    initial: u32,
    /// Placements that are measured.
    #[arg(long, default_value_t = 10_000)]
    measured: u32,
    /// Runs that wait; at least as many as are measured.
    #[arg(long)]
    waiting: Option<u32>,
    /// The scheduler's core alone.
    #[arg(long)]
    core: bool,
}

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Places work that asks for a little cpu and memory.
    #[command(name = "place-basic")]
    Basic(Options),
    /// Places work that must go to one of three zones.
    #[command(name = "place-affinity")]
    Affinity(Options),
    /// Places work while every other node has a taint it does not tolerate.
    #[command(name = "place-taints")]
    Taints(Options),
    /// Places one Job's Tasks evenly over three zones.
    #[command(name = "place-spread")]
    Spread(Options),
    /// Places work that keeps apart by host: at most one Task a node.
    #[command(name = "place-anti-affinity")]
    AntiAffinity(Options),
    /// Places work on full nodes, each time stopping what counts less.
    #[command(name = "place-preempt")]
    Preempt(Options),
    /// Places work while as much again waits that fits nowhere.
    #[command(name = "place-unschedulable")]
    Unschedulable(Options),
    /// Places work while Tasks end and nodes come and go.
    #[command(name = "place-churn")]
    Churn(Options),
}

pub fn run(command: &Command) -> Result<Report> {
    match command {
        Command::Basic(options) => measure("place-basic", Shape::Basic, options),
        Command::Affinity(options) => measure("place-affinity", Shape::Affinity, options),
        Command::Taints(options) => measure("place-taints", Shape::Taints, options),
        Command::Spread(options) => measure("place-spread", Shape::Spread, options),
        Command::AntiAffinity(options) => measure("place-anti-affinity", Shape::AntiAffinity, options),
        Command::Preempt(options) => measure("place-preempt", Shape::Preempt, options),
        Command::Unschedulable(options) => measure("place-unschedulable", Shape::Unschedulable, options),
        Command::Churn(options) => measure("place-churn", Shape::Churn, options),
    }
}

fn measure(name: &'static str, shape: Shape, options: &Options) -> Result<Report> {
    if !options.core {
        bail!("only the core can be measured in this version: add --core");
    }
    let waiting = options.waiting.unwrap_or(options.measured).max(options.measured);
    if shape == Shape::AntiAffinity {
        let tasks = u64::from(options.initial) + u64::from(options.measured);
        ensure!(
            tasks <= options.nodes as u64,
            "one Task a node: --initial and --measured together must be at most --nodes"
        );
    }
    if shape == Shape::Preempt {
        let room = options.nodes * world::CPUS;
        ensure!(
            options.measured as usize <= room,
            "the nodes hold {room} Tasks: --measured must be at most that"
        );
    }
    let mut world = World::new(shape, options.nodes, options.initial, options.measured);
    world.submit(waiting);
    let mut latencies = Histogram::<u64>::new(3)?;
    let meter = Meter::start();
    let mut placed = 0;
    while placed < options.measured {
        let asked = Instant::now();
        let decision = world.decide();
        latencies.record(u64::try_from(asked.elapsed().as_nanos())?.max(1))?;
        match decision {
            Some(Decision::Place(placement)) => {
                world.made(&placement);
                placed += 1;
                if shape == Shape::Churn {
                    world.churn(placed);
                }
            }
            Some(Decision::Stop(stopping)) => world.stopped(&stopping),
            None => bail!("only {placed} could be placed: {}", world.why()),
        }
    }
    Ok(meter.report_many(name, "one placement", placed.into(), &latencies, Duration::ZERO))
}
