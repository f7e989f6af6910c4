//! `prow plan`: show what a manifest would do: which nodes, and what is missing.

use crate::{
    cli::Global,
    fleet::{Fleet, Standing},
    kinds::Kinds,
    manifest::{Document, Files},
    needs,
    outcome::Outcome,
    output::Table,
    select::with_query,
    session::Session,
    terminal::{self, Tone, paint},
};
use anyhow::{Context, Result};
use api::{
    JobSpec,
    amount::{Amount, Round},
};
use clap::Args;

/// Show what a manifest would do: which nodes, and what is missing.
#[derive(Args, Debug)]
pub struct Plan {
    #[command(flatten)]
    files: Files,
    /// Show the nodes that are not chosen too, and why
    #[arg(long)]
    all_nodes: bool,
}

impl Plan {
    /// Plans every Job of the files. Exit code 1 if one of them could not run as things are.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let documents = self.files.read()?;
        let session = Session::open(global).await?;
        let kinds = Kinds::discover(&session).await?;
        let mut outcome = Outcome::Done;
        let mut jobs = 0;
        for document in &documents {
            if document.object["kind"] != "Job" || kinds.of(&document.object)?.group != api::GROUP {
                continue;
            }
            if jobs > 0 {
                terminal::line("")?;
            }
            jobs += 1;
            let sound = self
                .plan(&session, document)
                .await
                .with_context(|| format!("{}: Job {}", document.source, document.name()))?;
            if !sound {
                outcome = Outcome::Failed;
            }
        }
        anyhow::ensure!(jobs > 0, "the files hold no Job of {}", api::GROUP);
        Ok(outcome)
    }

    async fn plan(&self, session: &Session, document: &Document) -> Result<bool> {
        let namespace = document.object["metadata"]["namespace"]
            .as_str()
            .unwrap_or(&session.namespace);
        // the server judges first: its errors, warnings and defaults are what would happen
        let mut trial = document.object.clone();
        if let Some(metadata) = trial["metadata"].as_object_mut() {
            metadata.remove("name");
            metadata.insert("generateName".into(), "plan-".into()); // the name may be taken by the Job of an earlier apply
        }
        let path = format!("/apis/prow.windows/v1/namespaces/{namespace}/jobs");
        let query = [("dryRun", Some("All")), ("fieldValidation", Some("Strict"))];
        let job = session.create(&with_query(path, query), &trial).await?;
        let spec: JobSpec =
            serde_json::from_value(job["spec"].clone()).context("the server's Job cannot be read")?;

        let fleet = Fleet::load(session, namespace).await?;
        let judged = fleet.judge(&spec);
        let count = |f: fn(&Standing) -> bool| judged.iter().filter(|(_, standing)| f(standing)).count();
        let available = count(|s| *s == Standing::Available);
        let unavailable = count(|s| matches!(s, Standing::Unavailable(_)));
        let denied = count(|s| matches!(s, Standing::Denied(_)));
        let missing = needs::missing(session, namespace, &needs::of(&spec)).await?;

        terminal::line(paint(
            Tone::Strong,
            format!("Job {} in namespace {namespace}", document.name()),
        ))?;
        let chosen = available + unavailable;
        let base = u32::try_from(if spec.is_per_node() {
            chosen
        } else {
            usize::try_from(spec.completions.unwrap_or(1)).unwrap_or(0)
        })?;
        let parallelism = spec
            .parallelism
            .clone()
            .unwrap_or(Amount::Count(1))
            .of(base, Round::Up);
        let runs = if spec.is_per_node() {
            format!("once on each of {chosen} nodes, {parallelism} at a time")
        } else {
            format!("{base} times on any of {chosen} nodes, {parallelism} at a time")
        };
        terminal::line(format!("Runs:     {runs}"))?;
        let failures = spec
            .max_failures
            .clone()
            .unwrap_or(Amount::Count(0))
            .of(base, Round::Down);
        terminal::line(format!("Stops:    after more than {failures} failures"))?;
        terminal::line(format!("Queue:    {}", spec.queue_name))?;
        let steps: Vec<&str> = spec.all_steps().map(|(_, _, step)| step.name.as_str()).collect();
        terminal::line(format!("Steps:    {}", steps.join(", ")))?;
        for name in fleet.strangers(&spec) {
            terminal::line(paint(Tone::Wait, format!("Warning:  {name} is no node")))?;
        }
        for what in &missing {
            terminal::line(paint(Tone::Bad, format!("Missing:  {what}")))?;
        }
        let mut table = Table::new(["NODE", "STANDING", "WHY"]);
        for (node, standing) in &judged {
            if self.all_nodes || !matches!(standing, Standing::NotChosen(_)) {
                let (word, why) = standing.describe();
                table.row([node.name().to_owned(), word.to_owned(), why.to_owned()]);
            }
        }
        if !table.is_empty() {
            table.print(true)?;
        }
        if chosen == 0 {
            let hint = if denied > 0 {
                "No node: an administrator must grant the namespace access in a Target."
            } else {
                "No node is chosen: --all-nodes says why."
            };
            terminal::line(paint(Tone::Bad, hint))?;
        }
        Ok(missing.is_empty() && chosen > 0)
    }
}
