//! `prow run`: run a command or script on nodes, now.

use crate::{
    ad_hoc::Choice,
    cli::Global,
    fleet::{Fleet, Standing},
    follow::{News, Part, follow_job},
    log_lines::Line,
    outcome::{Outcome, usage},
    printer::Printer,
    session::Session,
    summary::{self, Progress},
    terminal::{self, LiveLine, Tone, paint},
};
use anyhow::{Context, Result};
use api::{Job, JobSpec, Task, job::JobPhase};
use clap::Args;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

/// Run a command or script on nodes, now; shows what it prints and how it ended on each.
///
/// Exit code 0: it succeeded on every node; 1: it failed on some; 5: how it ended is not known for some.
#[derive(Args, Debug)]
pub struct Run {
    /// Nodes of this Target; `all` means every node
    #[arg(long, value_name = "NAME", help_heading = "Where")]
    target: Option<String>,
    /// Nodes with these labels, such as `role=web,tier!=test`
    #[arg(short = 'l', long, value_name = "LABELS", help_heading = "Where")]
    selector: Option<String>,
    /// These nodes
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Where")]
    nodes: Vec<String>,
    /// Not these nodes
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Where")]
    exclude: Vec<String>,
    /// A script to run in place of a command; `-` reads stdin
    #[arg(short, long, value_name = "SCRIPT", help_heading = "What")]
    file: Option<PathBuf>,
    /// What runs the script: powershell, pwsh, cmd, bash, sh, python. Default: by the file's ending, else the node's own
    #[arg(long, value_name = "NAME", help_heading = "What")]
    shell: Option<String>,
    /// On how many nodes at once: a number or a percentage
    #[arg(long, value_name = "AMOUNT", default_value = "10", help_heading = "How")]
    parallelism: String,
    /// Stop starting after more failures than this: a number or a percentage
    #[arg(long, value_name = "AMOUNT", default_value = "100%", help_heading = "How")]
    max_failures: String,
    /// How long it may take on a node, such as 90s or 1h
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = super::wait::duration,
        help_heading = "How"
    )]
    timeout: Option<Duration>,
    /// Show equal outputs once, with the nodes they came from
    #[arg(long, help_heading = "How")]
    fold: bool,
    /// Do not ask before running on more than 10 nodes
    #[arg(long, help_heading = "How")]
    yes: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// On more nodes than this it is asked for first.
const ASK_ABOVE: usize = 10;

impl Run {
    /// Makes the Job and stays with it to its end.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let spec = self.spec()?;
        let session = Session::open(global).await?;
        let typed: JobSpec =
            serde_json::from_value(spec.clone()).map_err(|error| usage(error.to_string()))?;
        let fleet = Fleet::load(&session, &session.namespace).await?;
        let judged = fleet.judge(&typed);
        let chosen = judged
            .iter()
            .filter(|(_, s)| matches!(s, Standing::Available | Standing::Unavailable(_)))
            .count();
        if chosen == 0 {
            for (node, standing) in &judged {
                let (word, why) = standing.describe();
                terminal::note(Tone::Plain, format!("{}: {word}: {why}", node.name()));
            }
            anyhow::bail!("no node is chosen");
        }
        if chosen > ASK_ABOVE && !self.yes {
            match terminal::ask(&format!("Run on {chosen} nodes?")) {
                Some(true) => {}
                Some(false) => anyhow::bail!("nothing was run"),
                None => {
                    return Err(usage(format!(
                        "this would run on {chosen} nodes: say --yes, nobody can be asked here"
                    )));
                }
            }
        }
        let path = format!("/apis/prow.windows/v1/namespaces/{}/jobs", session.namespace);
        let object = json!({
            "apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"generateName": "run-"}, "spec": spec,
        });
        let job: Job = serde_json::from_value(session.create(&path, &object).await?)
            .context("the server's Job cannot be read")?;
        terminal::note(Tone::Dim, format!("job {} on {chosen} nodes", job.name()));
        self.stay(&session, job).await
    }

    async fn stay(&self, session: &Session, job: Job) -> Result<Outcome> {
        let mut news = follow_job(session.clone(), session.namespace.clone(), &job, Part::default());
        let mut printer = Printer::new(false);
        let mut progress = Progress::new(job.clone());
        let mut outputs: BTreeMap<String, Vec<Line>> = BTreeMap::new();
        let mut live = LiveLine::new();
        loop {
            let next = tokio::select! {
                next = news.recv() => next,
                _ = tokio::signal::ctrl_c() => {
                    live.clear();
                    terminal::note(Tone::Wait, format!(
                        "The job goes on: `prow logs -f {0}` follows it, `prow cancel {0}` stops it.", job.name()));
                    return Ok(Outcome::Unknown);
                }
            };
            match next {
                None => break,
                Some(News::Broken(error)) => {
                    return Err(
                        error.context(format!("following job {} stopped; the job goes on", job.name()))
                    );
                }
                Some(News::Job(job)) => progress.job = *job,
                Some(News::Task(task)) => {
                    printer.know(&task);
                    progress
                        .tasks
                        .insert(task.metadata.name.clone().unwrap_or_default(), *task);
                }
                Some(News::Line { task, step, line }) => {
                    if self.fold {
                        outputs.entry(task).or_default().push(line);
                    } else {
                        live.clear();
                        printer.print(&task, &step, &line)?;
                    }
                }
            }
            live.show(&progress.line());
        }
        live.clear();
        if self.fold {
            fold(&progress, &outputs)?;
        }
        summary::print(&progress)?;
        Ok(match progress.job.phase() {
            JobPhase::Succeeded => Outcome::Done,
            JobPhase::Unknown => Outcome::Unknown,
            _ => Outcome::Failed,
        })
    }

    fn spec(&self) -> Result<Value> {
        let choice = Choice {
            target: self.target.as_deref(),
            selector: self.selector.as_deref(),
            nodes: &self.nodes,
            exclude: &self.exclude,
        };
        let mut spec = choice.fields()?;
        spec["steps"] = json!([self.step()?]);
        spec["parallelism"] = amount(&self.parallelism);
        spec["maxFailures"] = amount(&self.max_failures);
        if let Some(timeout) = self.timeout {
            spec["taskTimeoutSeconds"] = timeout.as_secs().max(1).into();
        }
        Ok(spec)
    }

    fn step(&self) -> Result<Value> {
        let mut step = json!({"name": "run"});
        match (&self.file, self.command.as_slice()) {
            (Some(_), [_, ..]) => return Err(usage("either -f SCRIPT or a command after --, not both")),
            (None, []) => return Err(usage("say what: a command after --, or -f SCRIPT")),
            (Some(file), []) => {
                step["script"] = read(file)?.into();
                if let Some(shell) = self.shell.as_deref().or_else(|| shell_of(file)) {
                    step["shell"] = shell.into();
                }
            }
            (None, command) => match &self.shell {
                Some(shell) => {
                    step["script"] = command.join(" ").into();
                    step["shell"] = shell.clone().into();
                }
                None => step["command"] = json!(command),
            },
        }
        Ok(step)
    }
}

fn read(file: &Path) -> Result<String> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .context("stdin cannot be read")?;
        return Ok(text);
    }
    std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))
}

fn shell_of(file: &Path) -> Option<&'static str> {
    match file.extension()?.to_str()? {
        "ps1" => Some("powershell"),
        "cmd" | "bat" => Some("cmd"),
        "sh" => Some("sh"),
        "bash" => Some("bash"),
        "py" => Some("python"),
        _ => None,
    }
}

/// `5` as a number, anything else as it is: the server judges it.
fn amount(text: &str) -> Value {
    text.parse::<i32>().map_or_else(|_| text.into(), Into::into)
}

/// Equal outputs once, behind the nodes they came from.
fn fold(progress: &Progress, outputs: &BTreeMap<String, Vec<Line>>) -> Result<()> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    let mut tasks: Vec<(&String, &Task)> = progress.tasks.iter().collect();
    tasks.sort_by_key(|(_, task)| &task.spec.node_name);
    for (name, task) in tasks {
        let text: Vec<&str> = outputs
            .get(name)
            .into_iter()
            .flatten()
            .map(|line| line.text.as_str())
            .collect();
        let text = text.join("\n");
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, nodes)) => nodes.push(&task.spec.node_name),
            None => groups.push((text, vec![&task.spec.node_name])),
        }
    }
    for (text, nodes) in groups {
        terminal::line(paint(
            Tone::Strong,
            format!("{} ({}):", nodes.join(", "), nodes.len()),
        ))?;
        terminal::line(if text.is_empty() {
            paint(Tone::Dim, "(nothing printed)")
        } else {
            text
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn spec(words: &str) -> Result<Value> {
        let cli = Cli::try_parse_from(words.split_whitespace()).map_err(anyhow::Error::from)?;
        match cli.command {
            Command::Run(run) => run.spec(),
            _ => unreachable!(),
        }
    }

    #[test]
    fn a_command_line_becomes_a_per_node_job() {
        let spec =
            spec("prow run --nodes a,b --exclude c --parallelism 25% --timeout 2m -- uname -a").unwrap();
        assert_eq!(spec["completionMode"], "PerNode");
        assert_eq!(spec["nodeNames"], json!(["a", "b"]));
        assert_eq!(spec["excludeNodes"], json!(["c"]));
        assert_eq!(
            spec["steps"],
            json!([{"name": "run", "command": ["uname", "-a"]}])
        );
        assert_eq!(
            (&spec["parallelism"], &spec["taskTimeoutSeconds"]),
            (&json!("25%"), &json!(120))
        );
        serde_json::from_value::<JobSpec>(spec).unwrap();
    }

    #[test]
    fn with_a_shell_the_words_are_a_script() {
        let spec = spec("prow run --target all --shell bash -- echo $HOME | wc").unwrap();
        assert_eq!(
            spec["steps"],
            json!([{"name": "run", "script": "echo $HOME | wc", "shell": "bash"}])
        );
    }

    #[test]
    fn where_and_what_must_be_said() {
        assert!(
            spec("prow run -- true")
                .unwrap_err()
                .to_string()
                .contains("say where")
        );
        assert!(
            spec("prow run --target all")
                .unwrap_err()
                .to_string()
                .contains("say what")
        );
    }
}
