//! `prow logs`: show what the steps of a Job or Task printed.

use crate::{
    cli::Global,
    follow::{self, News, Part},
    outcome::{Error, Outcome},
    printer::Printer,
    session::Session,
    terminal::{self, Tone},
};
use anyhow::{Context, Result};
use api::{
    Job, Task,
    task::{StepPhase, TaskPhase},
};
use clap::Args;

/// Show what the steps of a Job or Task printed.
#[derive(Args, Debug)]
pub struct Logs {
    /// `JOB`, `job/JOB`, `TASK` or `task/TASK`
    #[arg(value_name = "JOB|TASK")]
    what: String,
    /// Only this step
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    /// Go on until the end
    #[arg(short, long)]
    follow: bool,
    /// Only Tasks on this node
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Only failed steps of failed Tasks
    #[arg(long, conflicts_with = "follow")]
    failed: bool,
    /// Only so many last lines of each step
    #[arg(long, value_name = "LINES")]
    tail: Option<u64>,
    /// When each line was written
    #[arg(long)]
    timestamps: bool,
}

impl Logs {
    /// Shows them.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let (job, task) = self.find(&session).await?;
        let part = Part {
            task,
            node: self.node.clone(),
            step: self.step.clone(),
            tail: self.tail,
            failed: self.failed,
        };
        let mut printer = Printer::new(self.timestamps);
        if self.follow {
            let mut news = follow::follow_job(session.clone(), session.namespace.clone(), &job, part);
            while let Some(news) = news.recv().await {
                match news {
                    News::Task(task) => printer.know(&task),
                    News::Line { task, step, line } => printer.print(&task, &step, &line)?,
                    News::Job(_) => {}
                    News::Broken(error) => return Err(error),
                }
            }
            return Ok(Outcome::Done);
        }
        let (tasks, _) = follow::tasks(&session, &session.namespace, job.name(), job.uid()).await?;
        let tasks: Vec<Task> = tasks.into_iter().filter(|task| part.has_task(task)).collect();
        tasks.iter().for_each(|task| printer.know(task));
        let mut printed = false;
        for task in &tasks {
            let name = task.metadata.name.as_deref().unwrap_or_default();
            let failed = task
                .status
                .as_ref()
                .is_some_and(|s| matches!(s.phase, TaskPhase::Failed | TaskPhase::Unknown));
            if part.failed && !failed {
                continue;
            }
            for step in task
                .status
                .iter()
                .flat_map(|status| &status.steps)
                .filter(|step| part.has_step(step))
            {
                for line in
                    follow::read_step(&session, &session.namespace, name, &step.name, part.tail).await?
                {
                    printer.print(name, &step.name, &line)?;
                    printed = true;
                }
            }
        }
        if !printed {
            terminal::note(Tone::Plain, self.why_nothing(&job, &tasks));
        }
        Ok(Outcome::Done)
    }

    fn why_nothing(&self, job: &Job, tasks: &[Task]) -> String {
        let steps = || {
            tasks
                .iter()
                .filter_map(|task| task.status.as_ref())
                .flat_map(|status| &status.steps)
        };
        if tasks.is_empty() {
            return format!(
                "No Task of job {0} was made yet: `prow why {0}` says what it waits for.",
                job.name()
            );
        }
        if steps().all(|step| step.phase == StepPhase::Pending) {
            return "No step has started yet; -f waits for it.".into();
        }
        "Nothing was printed by the steps asked for.".into()
    }

    /// The Job, and the Task if one is meant.
    async fn find(&self, session: &Session) -> Result<(Job, Option<String>)> {
        let (kind, name) = self.what.split_once('/').unwrap_or(("", &self.what));
        let is_task = matches!(
            kind,
            "task" | "tasks" | "pt" | "task.prow.windows" | "tasks.prow.windows"
        );
        if !is_task && let Some(job) = follow::find(session, "jobs", name).await? {
            return Ok((serde_json::from_value(job)?, None));
        }
        if (kind.is_empty() || is_task)
            && let Some(task) = follow::find(session, "tasks", name).await?
        {
            let task: Task = serde_json::from_value(task)?;
            let job = follow::find(session, "jobs", &task.spec.job_ref.name).await?;
            let job =
                job.with_context(|| format!("the Job {} of this Task is gone", task.spec.job_ref.name))?;
            return Ok((serde_json::from_value(job)?, Some(name.to_owned())));
        }
        let what = if is_task { "Task" } else { "Job or Task" };
        let message = format!("no {what} \"{name}\" in namespace {}", session.namespace);
        Err(Error::Refused(Box::new(
            kube::core::Status::failure(&message, "NotFound").with_code(404),
        ))
        .into())
    }
}
