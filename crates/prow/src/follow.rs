//! Following Tasks: their logs, step after step, as they are written, and their state as it changes.

use crate::{
    log_lines::{Line, Reader},
    outcome::Error,
    select::with_query,
    session::{JSON, Session, is_missing, request},
    watch::{Watch, is_expired, is_unreached},
};
use anyhow::{Context, Result};
use api::{
    Job, Task,
    task::{StepPhase, StepStatus},
};
use futures::{AsyncReadExt, TryStreamExt};
use http::Method;
use http_body_util::BodyExt;
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

/// What a follower tells.
#[derive(Debug)]
pub enum News {
    /// A step printed a line.
    Line { task: String, step: String, line: Line },
    /// A Task was made or changed.
    Task(Box<Task>),
    /// The Job changed.
    Job(Box<Job>),
    /// Following failed for good.
    Broken(anyhow::Error),
}

/// Which Tasks, and which part of their logs.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// Only this Task.
    pub task: Option<String>,
    /// Only Tasks on this node.
    pub node: Option<String>,
    /// Only this step.
    pub step: Option<String>,
    /// Only so many last lines of each step.
    pub tail: Option<u64>,
    /// Only failed steps.
    pub failed: bool,
}

impl Part {
    /// Whether the Task is asked for.
    pub fn has_task(&self, task: &Task) -> bool {
        (self.task.is_none() || self.task == task.metadata.name)
            && self.node.as_ref().is_none_or(|node| *node == task.spec.node_name)
    }

    /// Whether the step is asked for, and can have printed something.
    pub fn has_step(&self, step: &StepStatus) -> bool {
        self.step.as_ref().is_none_or(|name| *name == step.name)
            && !matches!(step.phase, StepPhase::Pending | StepPhase::Skipped)
            && (!self.failed || step.phase == StepPhase::Failed)
    }
}

/// Path of a Task collection for one Job.
pub fn tasks_path(namespace: &str, job: &str) -> String {
    let selector = format!("spec.jobRef.name={job}");
    with_query(
        format!("/apis/prow.windows/v1/namespaces/{namespace}/tasks"),
        [("fieldSelector", Some(selector.as_str()))],
    )
}

/// The Tasks of a Job, by index and attempt.
pub async fn tasks(session: &Session, namespace: &str, job: &str, uid: &str) -> Result<(Vec<Task>, String)> {
    let mut list = session.get(&tasks_path(namespace, job)).await?;
    let revision = revision(&list);
    let mut tasks: Vec<Task> =
        serde_json::from_value(list["items"].take()).context("the server's Tasks cannot be read")?;
    tasks.retain(|task| task.spec.job_ref.uid == uid);
    tasks.sort_by_key(|task| (task.spec.index, task.spec.attempt));
    Ok((tasks, revision))
}

/// All that a step has printed so far.
pub async fn read_step(
    session: &Session,
    namespace: &str,
    task: &str,
    step: &str,
    tail: Option<u64>,
) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let log = Log {
        session,
        namespace,
        task,
        step,
    };
    log.read(tail, None, |line| lines.push(line)).await?;
    Ok(lines)
}

/// A step's log at the server.
struct Log<'a> {
    session: &'a Session,
    namespace: &'a str,
    task: &'a str,
    step: &'a str,
}

/// Connections that may fail in a row while a log is followed, and the pause between them.
const PATIENCE: u32 = 60;
const PAUSE: Duration = Duration::from_secs(1);

impl Log<'_> {
    /// Reads to the end, or from the last `tail` lines on. With the state of its Task it is followed until the step has ended and all
    /// it printed has come, over as many connections as that takes.
    async fn read(
        &self,
        tail: Option<u64>,
        mut state: Option<watch::Receiver<Task>>,
        mut tell: impl FnMut(Line),
    ) -> Result<()> {
        let mut reader = Reader::default();
        let mut offset: Option<u64> = None;
        let mut failures = 0;
        loop {
            let before = offset;
            match self
                .connection(tail, &mut offset, state.as_mut(), &mut reader, &mut tell)
                .await
            {
                Ok(()) => break,
                Err(error) if is_missing(&error) => break, // nothing was printed
                Err(error) if state.is_some() && is_unreached(&error) && failures < PATIENCE => {
                    failures = if offset == before { failures + 1 } else { 0 };
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        reader.finish().into_iter().for_each(tell);
        Ok(())
    }

    async fn connection(
        &self,
        tail: Option<u64>,
        offset: &mut Option<u64>,
        mut state: Option<&mut watch::Receiver<Task>>,
        reader: &mut Reader,
        tell: &mut impl FnMut(Line),
    ) -> Result<()> {
        let path = self.path(*offset, tail, state.is_some());
        let response = self
            .session
            .send(request(Method::GET, &path, JSON, Vec::new())?)
            .await?;
        let start = response
            .headers()
            .get("prow-log-start")
            .and_then(|start| start.to_str().ok()?.parse().ok());
        let mut at = offset.or(start).unwrap_or(0);
        *offset = Some(at);
        let mut body = response
            .into_body()
            .into_data_stream()
            .map_err(std::io::Error::other)
            .into_async_read();
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(tasks) = &state
                && length(&tasks.borrow(), self.step).is_some_and(|length| at >= length)
            {
                return Ok(());
            }
            let changed = async {
                match &mut state {
                    Some(tasks) => {
                        if tasks.changed().await.is_err() {
                            std::future::pending::<()>().await; // nothing will change any more
                        }
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                read = body.read(&mut buffer) => {
                    let server = &self.session.server;
                    let count = read.map_err(|error| Error::Unreached(format!("the log stream of {server} broke: {error}")))?;
                    if count == 0 {
                        return Ok(());
                    }
                    at = at.saturating_add(u64::try_from(count)?);
                    *offset = Some(at);
                    reader.push(&buffer[..count]).into_iter().for_each(&mut *tell);
                }
                () = changed => {}
            }
        }
    }

    fn path(&self, start: Option<u64>, tail: Option<u64>, follow: bool) -> String {
        let Self {
            namespace,
            task,
            step,
            ..
        } = self;
        let text = |number: Option<u64>| number.map(|number| number.to_string());
        let (start, tail) = (text(start), text(tail.filter(|_| start.is_none())));
        with_query(
            format!("/logs/v1/namespaces/{namespace}/tasks/{task}/steps/{step}"),
            [
                ("start", start.as_deref()),
                ("tail", tail.as_deref()),
                ("follow", follow.then_some("true")),
            ],
        )
    }
}

/// How long a step's log is, once the step has ended.
fn length(task: &Task, step: &str) -> Option<u64> {
    let step = task.status.as_ref()?.steps.iter().find(|s| s.name == step)?;
    let ended = !matches!(step.phase, StepPhase::Pending | StepPhase::Running);
    step.log_bytes
        .filter(|_| ended)
        .and_then(|bytes| bytes.try_into().ok())
}

/// Follows a Job's Tasks. The channel ends when the Job has, and everything its Tasks printed was told; or, where one Task is asked
/// for, when that Task has.
pub fn follow_job(session: Session, namespace: String, job: &Job, part: Part) -> mpsc::Receiver<News> {
    let (news, receiver) = mpsc::channel(1024);
    let follower = Follower {
        session,
        namespace,
        job: job.name().to_owned(),
        uid: job.uid().to_owned(),
        part,
        news,
        known: BTreeMap::new(),
        streams: JoinSet::new(),
    };
    tokio::spawn(async move {
        let news = follower.news.clone();
        if let Err(error) = follower.run().await {
            let _ = news.send(News::Broken(error)).await; // nobody listens any more
        }
    });
    receiver
}

/// What comes after a watch.
enum Next {
    /// Everything was told.
    End,
    /// List again.
    List,
}

struct Follower {
    session: Session,
    namespace: String,
    job: String,
    uid: String,
    part: Part,
    news: mpsc::Sender<News>,
    known: BTreeMap<String, watch::Sender<Task>>,
    streams: JoinSet<Result<()>>,
}

impl Follower {
    async fn run(mut self) -> Result<()> {
        let mut failures = 0;
        loop {
            match self.watch().await {
                Ok(Next::End) => return Ok(()),
                Ok(Next::List) => failures = 0,
                Err(error) if is_unreached(&error) && failures < PATIENCE => {
                    failures += 1; // a server that is restarted is back soon
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Lists Job and Tasks and tells every change after that, until all is told or must be listed again.
    async fn watch(&mut self) -> Result<Next> {
        let session = self.session.clone();
        let selector = format!("metadata.name={}", self.job);
        let job_path = with_query(
            format!("/apis/prow.windows/v1/namespaces/{}/jobs", self.namespace),
            [("fieldSelector", Some(selector.as_str()))],
        );
        let task_path = tasks_path(&self.namespace, &self.job);
        // the Job first: Tasks listed after its end are all there will ever be
        let mut list = session.get(&job_path).await?;
        let mut over = self.job_changed(list["items"][0].take()).await?;
        let job_revision = revision(&list);
        let (tasks, task_revision) = tasks(&session, &self.namespace, &self.job, &self.uid).await?;
        for task in tasks {
            self.task_changed(task).await;
        }
        over |= self.part.task.is_some();
        let mut jobs = Watch::new(&session, &job_path, &job_revision);
        let mut changes = Watch::new(&session, &task_path, &task_revision);
        loop {
            if over && self.streams.is_empty() {
                return Ok(Next::End);
            }
            let (change, of_job) = tokio::select! {
                biased;
                () = self.news.closed() => return Ok(Next::End),
                Some(end) = self.streams.join_next() => {
                    end.context("a log stream ended badly")??;
                    continue;
                }
                change = changes.next() => (change, false),
                change = jobs.next(), if !over => (change, true),
            };
            let change = match change {
                Ok(change) => change,
                Err(error) if is_expired(&error) => return Ok(Next::List),
                Err(error) => return Err(error),
            };
            let gone = change.type_ == "DELETED";
            if of_job {
                over = self
                    .job_changed(if gone { Value::Null } else { change.object })
                    .await?;
                if over {
                    return Ok(Next::List); // its last Tasks
                }
            } else if !gone {
                let task =
                    serde_json::from_value(change.object).context("the server's Task cannot be read")?;
                self.task_changed(task).await;
            }
        }
    }

    /// Tells of the Job and answers whether it is over.
    async fn job_changed(&self, job: Value) -> Result<bool> {
        if job["metadata"]["uid"] != self.uid {
            return Ok(true); // gone, or another one has its name
        }
        let job: Job = serde_json::from_value(job).context("the server's Job cannot be read")?;
        let over = job.phase().is_terminal();
        let _ = self.news.send(News::Job(Box::new(job))).await; // a closed channel ends the loop
        Ok(over)
    }

    async fn task_changed(&mut self, task: Task) {
        if task.spec.job_ref.uid != self.uid || !self.part.has_task(&task) {
            return;
        }
        let name = task.metadata.name.clone().unwrap_or_default();
        let _ = self.news.send(News::Task(Box::new(task.clone()))).await;
        if let Some(state) = self.known.get(&name) {
            state.send_replace(task);
            return;
        }
        let (sender, state) = watch::channel(task);
        self.known.insert(name.clone(), sender);
        let (session, namespace, part, news) = (
            self.session.clone(),
            self.namespace.clone(),
            self.part.clone(),
            self.news.clone(),
        );
        self.streams
            .spawn(async move { follow_steps(&session, &namespace, &name, state, &part, &news).await });
    }
}

fn revision(list: &Value) -> String {
    list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// One step after the other, as the Task comes to them.
async fn follow_steps(
    session: &Session,
    namespace: &str,
    task: &str,
    mut state: watch::Receiver<Task>,
    part: &Part,
    news: &mpsc::Sender<News>,
) -> Result<()> {
    let mut next = 0;
    loop {
        let (step, over) = {
            let task = state.borrow_and_update();
            let status = task.status.as_ref();
            let step = status
                .and_then(|s| s.steps.get(next))
                .filter(|s| s.phase != StepPhase::Pending)
                .cloned();
            (step, status.is_some_and(|s| s.phase.is_terminal()))
        };
        match step {
            Some(step) => {
                next += 1;
                if !part.has_step(&step) {
                    continue;
                }
                let mut lines = Vec::new();
                // lines are sent as they come; a full channel holds the stream back
                let (sender, mut receiver) = mpsc::unbounded_channel();
                let log = Log {
                    session,
                    namespace,
                    task,
                    step: &step.name,
                };
                let stream = log.read(part.tail, Some(state.clone()), move |line| {
                    let _ = sender.send(line); // whoever listened has gone
                });
                tokio::pin!(stream);
                loop {
                    tokio::select! {
                        biased;
                        Some(line) = receiver.recv() => lines.push(line),
                        end = &mut stream => {
                            end?;
                            while let Ok(line) = receiver.try_recv() {
                                lines.push(line);
                            }
                            send(news, task, &step.name, &mut lines).await;
                            break;
                        }
                    }
                    send(news, task, &step.name, &mut lines).await;
                }
            }
            None if over => return Ok(()),
            None => {
                if state.changed().await.is_err() {
                    return Ok(());
                }
            }
        }
    }
}

async fn send(news: &mpsc::Sender<News>, task: &str, step: &str, lines: &mut Vec<Line>) {
    for line in lines.drain(..) {
        let _ = news
            .send(News::Line {
                task: task.to_owned(),
                step: step.to_owned(),
                line,
            })
            .await;
    }
}

/// A Job or Task of the session's namespace by name, or `None`.
pub async fn find(session: &Session, plural: &str, name: &str) -> Result<Option<Value>> {
    session
        .find(&format!(
            "/apis/prow.windows/v1/namespaces/{}/{plural}/{name}",
            session.namespace
        ))
        .await
}
