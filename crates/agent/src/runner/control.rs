//! What makes running work stop: orders, time limits, the fence.
//!
//! `steps` end at a stop order, at the task's time limit and at the fence. Rollback and finally have limits of their own and go on
//! through a stop order, unless it says `force`. At the fence everything ends: another host may be about to do the work again.
//!
//! The fence counts from the sending of the last acknowledged renewal, on the clock that counts suspend. Timers do not, so it is looked
//! at every second; a host that wakes up stops its work at once.

use crate::platform;
use api::task::{SYSTEM_ENDS, Stop, TaskPhase};
use std::time::Duration;
use tokio::{sync::watch, time::Instant};

/// What the agent has told.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    pub stop: Option<Stop>,
    /// [`platform::boot_nanos`] at the sending of the last renewal.
    pub renewed_at: u64,
}

impl Orders {
    /// Takes a stop order: the first reason stays, force may turn true, grace may shrink.
    pub fn stop(&mut self, new: Stop) {
        match &mut self.stop {
            Some(stop) => {
                stop.force |= new.force;
                stop.grace_seconds = stop.grace_seconds.min(new.grace_seconds);
            }
            None => self.stop = Some(new),
        }
    }
}

/// Which part of the task runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// preflight and steps.
    Work,
    Rollback,
    Finally,
}

/// Why something must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The step's own limit; it may be tried again.
    StepTimeout,
    /// The limit of this part of the task.
    PartTimeout,
    /// An order.
    Stop,
    /// An order that ends rollback and finally too.
    Force,
    /// The fence.
    Fence,
}

/// The end of running work, and how long it may take to end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Halt {
    pub cause: Cause,
    pub reason: String,
    pub message: String,
    pub grace: Duration,
}

impl Halt {
    /// The phase of a task whose work ended so.
    pub fn phase(&self) -> TaskPhase {
        let failed = self.reason == "Timeout"
            || self.reason == "DeadlineExceeded"
            || SYSTEM_ENDS.contains(&self.reason.as_str());
        if failed {
            TaskPhase::Failed
        } else {
            TaskPhase::Cancelled
        }
    }

    /// Takes on what a later one forbids; the first reason stays, but that of a mere step.
    pub fn harden(&mut self, later: Halt) {
        if self.cause == Cause::StepTimeout {
            *self = later;
        } else {
            self.cause = later.cause;
        }
    }

    /// Whether neither rollback nor finally may run.
    pub fn ends_all(&self) -> bool {
        matches!(self.cause, Cause::Force | Cause::Fence)
    }
}

/// Watches over the part of the task that runs.
pub(super) struct Control {
    orders: watch::Receiver<Orders>,
    fence: Option<Duration>,
    grace: Duration,
    part: Part,
    limit: Duration,
    end: Instant,
}

const LOOK: Duration = Duration::from_secs(1);

impl Control {
    pub fn new(
        orders: watch::Receiver<Orders>,
        fence: Option<Duration>,
        grace: Duration,
        limit: Duration,
    ) -> Self {
        Self {
            orders,
            fence,
            grace,
            part: Part::Work,
            limit,
            end: Instant::now() + limit,
        }
    }

    /// Goes to another part, with a limit of its own.
    pub fn enter(&mut self, part: Part, limit: Duration) {
        self.part = part;
        self.limit = limit;
        self.end = Instant::now() + limit;
    }

    /// The part that runs has so much time left from now on.
    pub fn go_on(&mut self, left: Duration) {
        self.end = Instant::now() + left;
    }

    /// Whether what runs must end, also by a limit of its own.
    pub fn halt(&self, own_end: Option<Instant>) -> Option<Halt> {
        let now = Instant::now();
        let orders = self.orders.borrow();
        let halt = |cause, reason: &str, message: String, grace| {
            Some(Halt {
                cause,
                reason: reason.to_owned(),
                message,
                grace,
            })
        };
        if let Some(fence) = self.fence {
            let since = Duration::from_nanos(platform::boot_nanos().saturating_sub(orders.renewed_at));
            if since >= self.ladder(fence) {
                let message = format!("the agent could not renew its lease for {} s", since.as_secs());
                return halt(Cause::Fence, "Fenced", message, fence.saturating_sub(since));
            }
        }
        if let Some(stop) = &orders.stop {
            if stop.force {
                return halt(Cause::Force, &stop.reason, message_of(stop), Duration::ZERO);
            }
            if self.part == Part::Work {
                return halt(
                    Cause::Stop,
                    &stop.reason,
                    message_of(stop),
                    seconds(stop.grace_seconds),
                );
            }
        }
        if now >= self.end {
            let what = match self.part {
                Part::Work => "the task",
                Part::Rollback => "the rollback",
                Part::Finally => "finally",
            };
            let message = format!("{what} took longer than {} s", self.limit.as_secs());
            return halt(Cause::PartTimeout, "Timeout", message, self.grace);
        }
        if own_end.is_some_and(|end| now >= end) {
            let message = "the step took longer than its timeoutSeconds".to_owned();
            return halt(Cause::StepTimeout, "Timeout", message, self.grace);
        }
        None
    }

    /// Waits until what runs must end.
    pub async fn halted(&self, own_end: Option<Instant>) -> Halt {
        let mut orders = self.orders.clone();
        loop {
            orders.mark_unchanged();
            if let Some(halt) = self.halt(own_end) {
                return halt;
            }
            let next = own_end.map_or(self.end, |end| end.min(self.end));
            let next = if self.fence.is_some() {
                next.min(Instant::now() + LOOK)
            } else {
                next
            };
            tokio::select! {
                changed = orders.changed() => if changed.is_err() {
                    tokio::time::sleep_until(next).await; // nobody is left who could order anything
                },
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Waits until a grace that began at `since` is over: its time, a force, or an order that shortens it.
    pub async fn grace_over(&self, since: Instant, grace: Duration) {
        let mut orders = self.orders.clone();
        loop {
            orders.mark_unchanged();
            let ordered = match &orders.borrow().stop {
                Some(stop) if stop.force => Duration::ZERO,
                Some(stop) if self.part == Part::Work => grace.min(seconds(stop.grace_seconds)),
                _ => grace,
            };
            let end = since + ordered;
            if Instant::now() >= end {
                return;
            }
            tokio::select! {
                changed = orders.changed() => if changed.is_err() {
                    tokio::time::sleep_until(end).await;
                },
                () = tokio::time::sleep_until(end) => {}
            }
        }
    }

    /// When after a renewal the ladder begins: a grace before the fence, but not in its first half.
    fn ladder(&self, fence: Duration) -> Duration {
        fence.saturating_sub(self.grace).max(fence / 2)
    }
}

fn message_of(stop: &Stop) -> String {
    if stop.message.is_empty() {
        "a stop was asked for".to_owned()
    } else {
        stop.message.clone()
    }
}

fn seconds(n: i64) -> Duration {
    Duration::from_secs(n.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(reason: &str, grace_seconds: i64, force: bool) -> Stop {
        Stop {
            reason: reason.into(),
            grace_seconds,
            force,
            ..Stop::default()
        }
    }

    fn control(fence: Option<u64>) -> (watch::Sender<Orders>, Control) {
        let (sender, orders) = watch::channel(Orders {
            renewed_at: platform::boot_nanos(),
            stop: None,
        });
        let fence = fence.map(Duration::from_secs);
        let (grace, limit) = (Duration::from_secs(30), Duration::from_secs(3600));
        (sender, Control::new(orders, fence, grace, limit))
    }

    #[test]
    fn a_repeated_stop_keeps_its_reason_and_can_only_get_harder() {
        let mut orders = Orders::default();
        orders.stop(stop("Cancelled", 30, false));
        orders.stop(stop("Evicted", 60, true));
        orders.stop(stop("Evicted", 10, false));
        assert_eq!(orders.stop, Some(stop("Cancelled", 10, true)));
    }

    #[tokio::test(start_paused = true)]
    async fn finally_goes_on_through_a_stop_but_not_through_force() {
        let (sender, mut control) = control(None);
        sender.send_modify(|o| o.stop(stop("Cancelled", 5, false)));
        let halt = control.halt(None).unwrap();
        assert_eq!((halt.cause, halt.grace), (Cause::Stop, Duration::from_secs(5)));
        control.enter(Part::Finally, Duration::from_secs(300));
        assert_eq!(control.halt(None), None);
        sender.send_modify(|o| o.stop(stop("Cancelled", 5, true)));
        assert!(control.halt(None).unwrap().ends_all());
    }

    #[tokio::test(start_paused = true)]
    async fn the_nearer_limit_ends_the_step() {
        let (_sender, control) = control(None);
        let own = Instant::now() + Duration::from_secs(10);
        assert_eq!(control.halted(Some(own)).await.cause, Cause::StepTimeout);
        assert_eq!(control.halted(None).await.cause, Cause::PartTimeout);
    }

    #[test]
    fn the_ladder_begins_a_grace_before_the_fence() {
        let (sender, control) = control(Some(300));
        let ago = |s: u64| platform::boot_nanos() - Duration::from_secs(s).as_nanos() as u64;
        let at = |s: u64| {
            sender.send_modify(|o| o.renewed_at = ago(s));
            control.halt(None)
        };
        if platform::boot_nanos() < 400_000_000_000 {
            return; // the host has not been up for long enough to look back
        }
        assert_eq!(at(260), None);
        let halt = at(275).unwrap();
        assert_eq!((halt.reason.as_str(), halt.ends_all()), ("Fenced", true));
        assert!(halt.grace <= Duration::from_secs(25) && halt.grace > Duration::from_secs(20));
        assert_eq!(at(301).unwrap().grace, Duration::ZERO);
        assert_eq!(at(10), None, "a renewal lifts it");
    }

    #[test]
    fn a_short_fence_leaves_time_to_work() {
        let (_sender, control) = control(Some(20));
        assert_eq!(control.ladder(Duration::from_secs(20)), Duration::from_secs(10));
        assert_eq!(control.ladder(Duration::from_secs(300)), Duration::from_secs(270));
    }

    #[tokio::test(start_paused = true)]
    async fn a_grace_is_cut_short_by_force() {
        let (sender, control) = control(None);
        sender.send_modify(|o| o.stop(stop("Cancelled", 1000, false)));
        let begun = Instant::now();
        let over = control.grace_over(begun, Duration::from_secs(1000));
        tokio::pin!(over);
        assert!(
            tokio::time::timeout(Duration::from_secs(5), &mut over)
                .await
                .is_err()
        );
        sender.send_modify(|o| o.stop(stop("Cancelled", 1000, true)));
        over.await;
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
