//! The runner's end of the local endpoint: takes orders, asks for values, tells of progress. Goes on while no agent is there.

use super::control::Orders;
use crate::{
    layout::TaskDir,
    local::{FromAgent, FromRunner, Listener, Receiver, Sender, Stop, Values, Wanted},
};
use std::{io, sync::Arc};
use tokio::sync::{Notify, mpsc, oneshot, watch};

/// Version of the messages.
const VERSION: u32 = 1;

/// What a step needs, or why it cannot have it.
pub(super) enum Answer {
    Values { secrets: Values, config_maps: Values },
    Missing { reason: String, message: String },
}

struct Question {
    step: String,
    wanted: Vec<Wanted>,
    answer: oneshot::Sender<Answer>,
}

/// A handle on the connection to the agent.
#[derive(Clone)]
pub(super) struct Link {
    questions: mpsc::UnboundedSender<Question>,
    progress: Arc<Notify>,
}

impl Link {
    /// Listens; orders come out of the returned receiver.
    pub fn open(task: &TaskDir, renewed_at: u64) -> io::Result<(Self, watch::Receiver<Orders>)> {
        let listener = Listener::bind(task)?;
        let (questions, asked) = mpsc::unbounded_channel();
        let (orders, ordered) = watch::channel(Orders {
            stop: None,
            renewed_at,
        });
        let progress = Arc::new(Notify::new());
        interrupt_on_shutdown(orders.clone())?;
        let serving = Serving {
            uid: task.uid().to_owned(),
            orders,
            asked,
            progress: progress.clone(),
            open: Vec::new(),
            next: 0,
        };
        tokio::spawn(serving.serve(listener));
        Ok((Self { questions, progress }, ordered))
    }

    /// Asks the agent; waits for as long as none is there.
    pub async fn ask(&self, step: &str, wanted: Vec<Wanted>) -> Answer {
        let (answer, answered) = oneshot::channel();
        let question = Question {
            step: step.to_owned(),
            wanted,
            answer,
        };
        let gone = || Answer::Missing {
            reason: "SecretUnavailable".into(),
            message: "the endpoint is closed".into(),
        };
        match self.questions.send(question) {
            Ok(()) => answered.await.unwrap_or_else(|_| gone()),
            Err(_) => gone(),
        }
    }

    /// Tells the agent that the journal or a log has grown.
    pub fn progress(&self) {
        self.progress.notify_one();
    }
}

struct Serving {
    uid: String,
    orders: watch::Sender<Orders>,
    asked: mpsc::UnboundedReceiver<Question>,
    progress: Arc<Notify>,
    /// Questions without an answer yet, by number.
    open: Vec<(u64, Question)>,
    next: u64,
}

impl Serving {
    async fn serve(mut self, listener: Listener) {
        let mut agent = None;
        loop {
            let talk = async {
                match &mut agent {
                    Some((sender, receiver)) => self.talk(sender, receiver).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                new = listener.accept() => match new {
                    Ok(new) => agent = Some(new),
                    Err(error) => {
                        tracing::error!(%error, "the local endpoint failed");
                        return; // the runner goes on; a new agent finds no endpoint and waits for the journal
                    }
                },
                ended = talk => {
                    if let Err(error) = ended {
                        tracing::warn!(%error, "the connection to the agent broke");
                    }
                    agent = None;
                }
            }
        }
    }

    /// Talks with one agent until it leaves.
    async fn talk(
        &mut self,
        sender: &mut Sender<FromRunner>,
        receiver: &mut Receiver<FromAgent>,
    ) -> io::Result<()> {
        let uid = self.uid.clone();
        sender.send(&FromRunner::Hello { v: VERSION, uid }).await?;
        for (id, question) in &self.open {
            sender.send(&need(*id, question)).await?;
        }
        loop {
            tokio::select! {
                message = receiver.recv() => match message? {
                    Some(message) => self.take(message),
                    None => return Ok(()),
                },
                Some(question) = self.asked.recv() => {
                    self.next += 1;
                    self.open.retain(|(_, q)| !q.answer.is_closed()); // nobody waits for those any more
                    self.open.push((self.next, question));
                    if let Some((id, question)) = self.open.last() {
                        sender.send(&need(*id, question)).await?;
                    }
                }
                () = self.progress.notified() => sender.send(&FromRunner::Progress).await?,
            }
        }
    }

    fn take(&mut self, message: FromAgent) {
        match message {
            FromAgent::Renewed { sent_at } => self
                .orders
                .send_modify(|o| o.renewed_at = o.renewed_at.max(sent_at)),
            FromAgent::Stop(stop) => self.orders.send_modify(|o| o.stop(stop)),
            FromAgent::Values {
                id,
                secrets,
                config_maps,
            } => {
                self.answer(id, Answer::Values { secrets, config_maps });
            }
            FromAgent::Missing { id, reason, message } => {
                self.answer(id, Answer::Missing { reason, message })
            }
            FromAgent::RebootAllowed | FromAgent::Other => {}
        }
    }

    fn answer(&mut self, id: u64, answer: Answer) {
        if let Some(at) = self.open.iter().position(|(open, _)| *open == id) {
            let (_, question) = self.open.remove(at);
            let _ = question.answer.send(answer); // nobody waits any more: the step was stopped
        }
    }
}

fn need(id: u64, question: &Question) -> FromRunner {
    FromRunner::NeedValues {
        id,
        step: question.step.clone(),
        wanted: question.wanted.clone(),
    }
}

/// A runner that is itself asked to end takes it for the end of the host: the work is interrupted, and that is on disk before it ends.
fn interrupt_on_shutdown(orders: watch::Sender<Orders>) -> io::Result<()> {
    let mut asked = crate::platform::end_requests()?;
    tokio::spawn(async move {
        while asked.recv().await.is_some() {
            orders.send_modify(|o| {
                o.stop(Stop {
                    reason: "Interrupted".into(),
                    message: "the runner was asked to end, as at a shutdown of the host".into(),
                    grace_seconds: 10,
                    force: false,
                });
            });
        }
    });
    Ok(())
}
