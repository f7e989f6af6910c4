//! `prow delete`: delete objects, and wait until they are gone.

use super::apply::DryRun;
use crate::{
    cli::Global,
    kinds::{Kind, Kinds},
    manifest::Files,
    outcome::{Outcome, report, usage},
    select::{Selection, with_query},
    session::{Session, is_missing},
    terminal,
    watch::Watch,
};
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::time::Duration;

/// Delete objects. A Job that runs is cancelled; it goes once its processes are gone and its `finally` steps ran.
#[derive(Args, Debug)]
pub struct Delete {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    files: Files,
    /// All objects of the kind in the namespace
    #[arg(long)]
    all: bool,
    /// What happens to objects that belong to it
    #[arg(long, value_name = "HOW", default_value = "background")]
    cascade: Cascade,
    /// Seconds to end gracefully; 0 with --force ends steps at once
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u32>,
    /// Do not wait for a graceful end; steps are killed
    #[arg(long)]
    force: bool,
    /// Wait until it is gone
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    wait: bool,
    /// How long to wait, such as 30s; 0s means without limit
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = super::wait::duration)]
    timeout: Duration,
    /// An object that does not exist is no error
    #[arg(long)]
    ignore_not_found: bool,
    /// Only check and show what would happen
    #[arg(long, value_name = "WHERE", default_value = "none")]
    dry_run: DryRun,
}

/// What happens to objects that belong to a deleted one.
#[derive(ValueEnum, Debug, Clone, Copy)]
enum Cascade {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

struct Victim<'a> {
    kind: &'a Kind,
    namespace: String,
    name: String,
}

impl Delete {
    /// Deletes all, then waits for all.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let kinds = Kinds::discover(&session).await?;
        let mut outcome = Outcome::Done;
        let mut going = Vec::new();
        for victim in self.victims(&session, &kinds).await? {
            match self.delete(&session, &victim).await {
                Ok(uid) => going.push((victim, uid)),
                Err(error) if self.ignore_not_found && is_missing(&error) => {}
                Err(error) => outcome = report(&error),
            }
        }
        if self.wait && self.dry_run == DryRun::None {
            let all = async {
                for (victim, uid) in &going {
                    until_gone(&session, victim.kind, &victim.namespace, &victim.name, uid).await?;
                }
                anyhow::Ok(())
            };
            super::wait::within(self.timeout, all).await??;
        }
        Ok(outcome)
    }

    async fn victims<'a>(&self, session: &Session, kinds: &'a Kinds) -> Result<Vec<Victim<'a>>> {
        let mut victims = Vec::new();
        if !self.files.files.is_empty() {
            for document in self.files.read()? {
                let namespace = document.object["metadata"]["namespace"]
                    .as_str()
                    .unwrap_or(&session.namespace);
                victims.push(Victim {
                    kind: kinds.of(&document.object)?,
                    namespace: namespace.to_owned(),
                    name: document.name().to_owned(),
                });
            }
            return Ok(victims);
        }
        for choice in self.selection.chosen(kinds)? {
            let selected =
                self.all || self.selection.selector.is_some() || self.selection.field_selector.is_some();
            if choice.names.is_empty() && !selected {
                return Err(usage("name the objects, select them with -l, or say --all"));
            }
            if choice.names.is_empty() {
                for object in self.selection.fetch(session, &choice).await? {
                    let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
                    victims.push(Victim {
                        kind: choice.kind,
                        namespace: field("namespace"),
                        name: field("name"),
                    });
                }
            }
            for name in choice.names {
                victims.push(Victim {
                    kind: choice.kind,
                    namespace: session.namespace.clone(),
                    name,
                });
            }
        }
        Ok(victims)
    }

    /// Deletes one and answers its uid.
    async fn delete(&self, session: &Session, victim: &Victim<'_>) -> Result<String> {
        let path = victim.kind.object_path(&victim.namespace, &victim.name);
        let line = |verb: &str| {
            terminal::line(format!(
                "{} \"{}\" {verb}{}",
                victim.kind.qualified(),
                victim.name,
                self.dry_run.suffix()
            ))
        };
        if self.dry_run == DryRun::Client {
            session.get(&path).await?;
            line("deleted")?;
            return Ok(String::new());
        }
        let policy = match self.cascade {
            Cascade::Background => "Background",
            Cascade::Foreground => "Foreground",
            Cascade::Orphan => "Orphan",
        };
        let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        let grace = if self.force { Some(0) } else { self.grace_period };
        if let Some(grace) = grace {
            options["gracePeriodSeconds"] = grace.into();
        }
        let answer = session
            .delete(&with_query(path, [("dryRun", self.dry_run.query())]), &options)
            .await?;
        line(if self.force { "force deleted" } else { "deleted" })?;
        let uid = |value: &Value| value.as_str().map(str::to_owned);
        Ok(uid(&answer["metadata"]["uid"])
            .or_else(|| uid(&answer["details"]["uid"]))
            .unwrap_or_default())
    }
}

/// Waits until an object is gone or another one has its name.
pub async fn until_gone(
    session: &Session,
    kind: &Kind,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Result<()> {
    let other = |object: &Value| !uid.is_empty() && object["metadata"]["uid"] != uid;
    let selector = format!("metadata.name={name}");
    let path = with_query(
        kind.path(Some(namespace)),
        [("fieldSelector", Some(selector.as_str()))],
    );
    loop {
        let list = session.get(&path).await?;
        match list["items"].as_array().and_then(|items| items.first()) {
            Some(object) if !other(object) => {}
            _ => return Ok(()),
        }
        let revision = list["metadata"]["resourceVersion"]
            .as_str()
            .ok_or_else(|| anyhow!("the list has no revision"))?;
        let mut watch = Watch::new(session, &path, revision);
        loop {
            match watch.next().await {
                Ok(change) if change.type_ == "DELETED" || other(&change.object) => return Ok(()),
                Ok(_) => {}
                Err(error) if crate::watch::is_expired(&error) => break,
                Err(error) => return Err(error),
            }
        }
    }
}
