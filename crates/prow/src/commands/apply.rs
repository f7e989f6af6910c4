//! `prow apply`: make or change objects as files say.

use crate::{
    apply::{annotated, last_applied, patch},
    cli::Global,
    kinds::Kinds,
    manifest::{Document, Files},
    outcome::{Outcome, report},
    output::{self, Format},
    select::with_query,
    session::Session,
    terminal,
};
use anyhow::Result;
use clap::{Args, ValueEnum};
use serde_json::Value;

/// Make or change objects as files say.
#[derive(Args, Debug)]
pub struct Apply {
    #[command(flatten)]
    files: Files,
    /// Only check and show what would happen: `server` lets the server check everything, `client` sends nothing
    #[arg(long, value_name = "WHERE", default_value = "none")]
    dry_run: DryRun,
    /// How results are printed: yaml, json, name, jsonpath={…}
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Format>,
}

/// Where a dry run ends.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum DryRun {
    /// Nowhere: things are done.
    None,
    /// Here.
    Client,
    /// At the server, before anything is stored.
    Server,
}

impl DryRun {
    /// The value of the query parameter `dryRun`.
    pub fn query(self) -> Option<&'static str> {
        (self == Self::Server).then_some("All")
    }

    /// What is added to the line of a result.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }
}

impl Apply {
    /// Applies document by document; one that is refused does not stop the others.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let documents = self.files.read()?;
        let session = Session::open(global).await?;
        let kinds = Kinds::discover(&session).await?;
        let mut outcome = Outcome::Done;
        let mut results = Vec::new();
        for document in &documents {
            match self.apply(&session, &kinds, document).await {
                Ok(object) => results.push(object),
                Err(error) => outcome = report(&error.context(context(document))),
            }
        }
        match &self.output {
            Some(format) if !format.is_table() && !matches!(format, Format::Name) => match results.as_slice()
            {
                [one] => format.print(None, one)?,
                _ => format.print(None, &output::list(results))?,
            },
            _ => {}
        }
        Ok(outcome)
    }

    async fn apply(&self, session: &Session, kinds: &Kinds, document: &Document) -> Result<Value> {
        let kind = kinds.of(&document.object)?;
        let name = document.name();
        anyhow::ensure!(
            !name.is_empty(),
            "has no metadata.name (apply needs one; objects with generateName are created with kubectl create)"
        );
        let namespace = document.object["metadata"]["namespace"]
            .as_str()
            .unwrap_or(&session.namespace);
        let mut manifest = document.object.clone();
        if kind.namespaced {
            manifest["metadata"]["namespace"] = namespace.into(); // as kubectl does, so that either may go on from the other
        }
        let wanted = annotated(&manifest);
        let path = kind.object_path(namespace, name);
        let live = session.find(&path).await?;
        let query = [
            ("dryRun", self.dry_run.query()),
            ("fieldManager", Some("prow-apply")),
            ("fieldValidation", Some("Strict")),
        ];
        let change = live
            .as_ref()
            .and_then(|live| patch(&last_applied(live), &wanted, live));
        let (verb, object) = match (live, change) {
            (None, _) if self.dry_run == DryRun::Client => ("created", wanted),
            (None, _) => (
                "created",
                session
                    .create(&with_query(kind.path(Some(namespace)), query), &wanted)
                    .await?,
            ),
            (Some(live), None) => ("unchanged", live),
            (Some(live), Some(_)) if self.dry_run == DryRun::Client => ("configured", live),
            (Some(live), Some(change)) => {
                let changed = session.merge(&with_query(path, query), &change).await?;
                // a server leaves an object alone that says already what the patch asks for
                let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
                (
                    if revision(&live) == revision(&changed) {
                        "unchanged"
                    } else {
                        "configured"
                    },
                    changed,
                )
            }
        };
        match &self.output {
            None | Some(Format::Table | Format::Wide) => {
                terminal::line(format!(
                    "{}/{name} {verb}{}",
                    kind.qualified(),
                    self.dry_run.suffix()
                ))?;
            }
            Some(Format::Name) => terminal::line(format!("{}/{name}", kind.qualified()))?,
            Some(_) => {}
        }
        Ok(object)
    }
}

fn context(document: &Document) -> String {
    let kind = document.object["kind"].as_str().unwrap_or("object");
    format!("{}: {kind} {}", document.source, document.name())
}
