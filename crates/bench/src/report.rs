//! What a command found, as a table for people or JSON for machines.

use crate::machine;
use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// One measurement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The command.
    pub bench: &'static str,
    /// What one operation is.
    pub operation: &'static str,
    /// How many were done.
    pub operations: u64,
    /// How long they took together.
    pub seconds: f64,
    /// Operations per second.
    pub rate: f64,
    /// The latency half of them stayed under, in milliseconds.
    pub p50_ms: f64,
    /// The latency 99 of 100 stayed under, in milliseconds.
    pub p99_ms: f64,
    /// Processor seconds of the measured process for 1,000 operations; absent where the system does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_1000: Option<f64>,
    /// The median time of an fsync on the disk used, in milliseconds.
    pub fsync_ms: f64,
}

/// Measures from its making to [`Meter::report`].
#[derive(Debug)]
pub struct Meter {
    start: std::time::Instant,
    process: Option<u32>,
    cpu: Option<Duration>,
}

impl Meter {
    /// Starts to measure, with the processor time of this process.
    pub fn start() -> Self {
        Self::of(None)
    }

    /// Starts to measure, with the processor time of process `process`: a server.
    pub fn of_server(process: u32) -> Self {
        Self::of(Some(process))
    }

    fn of(process: Option<u32>) -> Self {
        Self {
            start: std::time::Instant::now(),
            process,
            cpu: machine::cpu_time(process),
        }
    }

    /// What was done since the start, with the `latencies` of all operations in nanoseconds.
    pub fn report(
        self,
        bench: &'static str,
        operation: &'static str,
        latencies: &Histogram<u64>,
        fsync: Duration,
    ) -> Report {
        let operations = latencies.len();
        self.report_many(bench, operation, operations, latencies, fsync)
    }

    /// As [`Meter::report`], where there are more operations than latencies.
    #[allow(clippy::cast_precision_loss)]
    pub fn report_many(
        self,
        bench: &'static str,
        operation: &'static str,
        operations: u64,
        latencies: &Histogram<u64>,
        fsync: Duration,
    ) -> Report {
        let seconds = self.start.elapsed().as_secs_f64();
        let cpu = self
            .cpu
            .zip(machine::cpu_time(self.process))
            .map(|(before, after)| after.saturating_sub(before).as_secs_f64());
        let ms = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e6;
        Report {
            bench,
            operation,
            operations,
            seconds,
            rate: operations as f64 / seconds,
            p50_ms: ms(0.5),
            p99_ms: ms(0.99),
            cpu_seconds_per_1000: cpu.map(|cpu| cpu * 1000.0 / operations.max(1) as f64),
            fsync_ms: fsync.as_secs_f64() * 1e3,
        }
    }
}

impl Report {
    /// Prints it to stdout.
    pub fn print(&self, json: bool) -> Result<()> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        let cpu = self
            .cpu_seconds_per_1000
            .map_or("-".to_owned(), |cpu| format!("{cpu:.4}"));
        println!(
            "{:<16}{:>10}{:>12}{:>12}{:>12}{:>14}{:>12}",
            "BENCH", "COUNT", "RATE/S", "P50 MS", "P99 MS", "CPU S/1000", "FSYNC MS"
        );
        println!(
            "{:<16}{:>10}{:>12.0}{:>12.2}{:>12.2}{:>14}{:>12.3}",
            self.bench, self.operations, self.rate, self.p50_ms, self.p99_ms, cpu, self.fsync_ms
        );
        Ok(())
    }
}
