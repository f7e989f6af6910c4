//! Attending a living runner: values for its steps, stop orders, renewals, and its journal for the reports.

use super::{host::Host, orders::Orders, recovery::Local, report::Reporter, ship::Shipper, values};
use crate::{
    journal::{RunRecord, Tail},
    layout::TaskDir,
    local::{self, FromAgent, FromRunner, Receiver, Sender},
    platform,
    runner::{Identity, status_from_journal},
};
use std::{io, process::ExitStatus, time::Duration};
use tokio::{
    task::{JoinHandle, JoinSet},
    time::{MissedTickBehavior, interval},
};

/// Between looks at what nobody tells of.
const TICK: Duration = Duration::from_secs(1);
/// How long after the fence a runner may take before it counts as unresponsive.
const FENCE_MARGIN: Duration = Duration::from_secs(5);

/// How it came that there is no runner any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// It ended, well or not: the journal tells.
    Gone,
    /// It did not keep the fence and was ended.
    Fenced,
}

/// All that is needed to attend a runner.
pub struct Attendance<'a> {
    /// The agent.
    pub host: &'a Host,
    /// The task's folder.
    pub dir: &'a TaskDir,
    /// The task's namespace.
    pub namespace: &'a str,
    /// `spec.fenceSeconds`.
    pub fence: Option<Duration>,
    /// The journals; the runner's grows meanwhile.
    pub local: &'a mut Local,
    /// When to stop.
    pub orders: &'a mut Orders,
    /// Whom to tell.
    pub reporter: &'a Reporter,
    /// Who ships the logs.
    pub shipper: &'a Shipper,
}

type Link = (Sender<FromAgent>, Receiver<FromRunner>);

impl Attendance<'_> {
    /// Stays until the runner has ended. `exited` resolves when a runner started by this process does.
    pub async fn run(
        mut self,
        runner: &Identity,
        exited: Option<JoinHandle<io::Result<ExitStatus>>>,
    ) -> Over {
        let mut tail = Tail::new(&self.dir.run_journal());
        self.local.run.clear(); // read anew, from the beginning
        let mut link: Option<Link> = None;
        let mut answers: JoinSet<FromAgent> = JoinSet::new();
        let mut renewals = self.host.renewals.clone();
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut exited = exited.map(|handle| Box::pin(async move { handle.await.map(|_| ()).unwrap_or(()) }));
        let over = loop {
            tokio::select! {
                made = reach(self.dir, runner), if link.is_none() => match made {
                    Some(made) => link = self.greet(made).await,
                    None => break Over::Gone,
                },
                message = receive(&mut link) => match message {
                    Some(FromRunner::NeedValues { id, wanted, .. }) => {
                        let client = self.host.client.clone();
                        answers.spawn(values::answer(client, self.namespace.to_owned(), id, wanted));
                    }
                    Some(FromRunner::Progress) => self.read(&mut tail),
                    Some(FromRunner::Hello { .. } | FromRunner::Other) => {}
                    None => link = None,
                },
                () = wait(&mut exited) => break Over::Gone,
                Some(Ok(answer)) = answers.join_next() => send(&mut link, &answer).await,
                Ok(()) = self.orders.stop.changed() => {
                    let stop = self.orders.stop.borrow_and_update().clone();
                    if let Some(stop) = stop {
                        send(&mut link, &FromAgent::Stop(stop)).await;
                    }
                }
                Ok(()) = renewals.changed() => {
                    let sent_at = renewals.borrow_and_update().sent_at;
                    send(&mut link, &FromAgent::Renewed { sent_at }).await;
                }
                _ = tick.tick() => {
                    self.read(&mut tail);
                    if !runner.is_alive() {
                        break Over::Gone;
                    }
                    if self.is_past_the_fence() {
                        tracing::warn!(task = self.dir.uid(), "the runner did not keep the fence; ending it");
                        platform::end_process(runner);
                        break Over::Fenced;
                    }
                }
            }
        };
        self.read(&mut tail);
        over
    }

    /// The first words on a new connection.
    async fn greet(&mut self, link: Link) -> Option<Link> {
        let mut link = Some(link);
        let sent_at = self.host.renewals.borrow().sent_at;
        send(&mut link, &FromAgent::Renewed { sent_at }).await;
        let stop = self.orders.stop.borrow_and_update().clone();
        if let Some(stop) = stop {
            send(&mut link, &FromAgent::Stop(stop)).await;
        }
        link
    }

    fn read(&mut self, tail: &mut Tail<RunRecord>) {
        match tail.read() {
            Ok(new) if new.is_empty() => {}
            Ok(new) => {
                self.local.run.extend(new);
                let status = status_from_journal(&self.local.run);
                // The end is told by whoever sees the runner gone.
                if !status.phase.is_terminal() {
                    self.reporter.set(status);
                }
            }
            Err(error) => tracing::warn!(task = self.dir.uid(), %error, "cannot read the runner's journal"),
        }
        self.shipper.wake();
    }

    fn is_past_the_fence(&self) -> bool {
        let Some(fence) = self.fence else { return false };
        let sent_at = self.host.renewals.borrow().sent_at;
        let since = Duration::from_nanos(platform::boot_nanos().saturating_sub(sent_at));
        since >= fence + FENCE_MARGIN
    }
}

/// Connects as soon as the runner listens; `None` once it is gone.
async fn reach(dir: &TaskDir, runner: &Identity) -> Option<Link> {
    let mut wait = Duration::from_millis(5);
    loop {
        if let Ok(link) = local::connect(dir).await {
            return Some(link);
        }
        if !runner.is_alive() {
            return None;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(TICK);
    }
}

async fn receive(link: &mut Option<Link>) -> Option<FromRunner> {
    match link {
        Some((_, receiver)) => receiver.recv().await.ok().flatten(),
        None => std::future::pending().await,
    }
}

async fn send(link: &mut Option<Link>, message: &FromAgent) {
    if let Some((sender, _)) = link
        && sender.send(message).await.is_err()
    {
        *link = None; // said again on the next connection: stop and renewal by us, questions by the runner
    }
}

async fn wait<F: Future<Output = ()> + Unpin>(exited: &mut Option<F>) {
    match exited {
        Some(exited) => exited.await,
        None => std::future::pending().await,
    }
}
