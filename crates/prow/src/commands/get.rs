//! `prow get`: show objects.

use crate::{
    cli::Global,
    kinds::Kinds,
    outcome::{Outcome, report},
    output::{self, Format, ServerTable},
    select::{Chosen, Selection, with_query},
    session::{Session, is_missing},
    terminal::{self, Tone},
    watch::Watch,
};
use anyhow::{Result, ensure};
use clap::Args;
use serde_json::Value;

/// Show objects.
#[derive(Args, Debug)]
pub struct Get {
    #[command(flatten)]
    selection: Selection,
    /// In which form: wide, yaml, json, name, jsonpath={…}. Default: a table
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "",
        hide_default_value = true
    )]
    output: Format,
    /// Go on showing changes
    #[arg(short, long)]
    watch: bool,
    /// Show changes only, not what is there now
    #[arg(long)]
    watch_only: bool,
    /// No headings
    #[arg(long)]
    no_headers: bool,
    /// A last column with the labels
    #[arg(long)]
    show_labels: bool,
    /// A named object that does not exist is no error
    #[arg(long)]
    ignore_not_found: bool,
    /// Show metadata.managedFields in yaml and json
    #[arg(long)]
    show_managed_fields: bool,
}

impl Get {
    /// Shows what was asked for.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let kinds = Kinds::discover(&session).await?;
        let chosen = self.selection.chosen(&kinds)?;
        if self.watch || self.watch_only {
            return self.follow(&session, &chosen).await;
        }
        if self.output.is_table() {
            self.tables(&session, &chosen).await
        } else {
            self.texts(&session, &chosen).await
        }
    }

    /// One table a kind.
    async fn tables(&self, session: &Session, chosen: &[Chosen<'_>]) -> Result<Outcome> {
        let mut outcome = Outcome::Done;
        let mut printed = false;
        for choice in chosen {
            let mut paths: Vec<String> = choice
                .names
                .iter()
                .map(|name| choice.kind.object_path(&session.namespace, name))
                .collect();
            if paths.is_empty() {
                paths.push(self.selection.path(session, choice.kind));
            }
            let mut table: Option<ServerTable> = None;
            for path in paths {
                let answer = match session.table(&path).await {
                    Ok(answer) => answer,
                    Err(error) if self.ignore_not_found && is_missing(&error) => continue,
                    Err(error) => {
                        outcome = report(&error);
                        continue;
                    }
                };
                let prefix = if chosen.len() > 1 {
                    format!("{}/", choice.kind.qualified())
                } else {
                    String::new()
                };
                match &mut table {
                    Some(table) => table.add(&answer, &prefix),
                    None => {
                        let mut new = self.table(&answer, choice)?;
                        new.add(&answer, &prefix);
                        table = Some(new);
                    }
                }
            }
            if let Some(mut table) = table.filter(|table| !table.is_empty()) {
                if printed {
                    terminal::line("")?;
                }
                table.print(!self.no_headers)?;
                printed = true;
            }
        }
        if !printed && outcome == Outcome::Done && !self.ignore_not_found {
            let place = match self.selection.namespace(session) {
                Some(namespace) if chosen.iter().any(|c| c.kind.namespaced) => {
                    format!(" in {namespace} namespace")
                }
                _ => String::new(),
            };
            terminal::note(Tone::Plain, format!("No resources found{place}."));
        }
        Ok(outcome)
    }

    fn table(&self, answer: &Value, choice: &Chosen<'_>) -> Result<ServerTable> {
        let namespaces = self.selection.all_namespaces && choice.kind.namespaced;
        ServerTable::new(
            answer,
            matches!(self.output, Format::Wide),
            namespaces,
            self.show_labels,
        )
    }

    /// YAML, JSON, names, JSONPath: one object alone, several as a List.
    async fn texts(&self, session: &Session, chosen: &[Chosen<'_>]) -> Result<Outcome> {
        let mut outcome = Outcome::Done;
        let mut found = Vec::new();
        for choice in chosen {
            match self.selection.fetch(session, choice).await {
                Ok(objects) => found.extend(
                    objects
                        .into_iter()
                        .map(|object| (choice.kind, self.cleaned(object))),
                ),
                Err(error) if self.ignore_not_found && is_missing(&error) => {}
                Err(error) => outcome = report(&error),
            }
        }
        let single = matches!(chosen, [one] if one.names.len() == 1);
        if matches!(self.output, Format::Name) {
            for (kind, object) in &found {
                self.output.print(Some(kind), object)?;
            }
        } else if single {
            if let [(kind, object)] = found.as_slice() {
                self.output.print(Some(kind), object)?;
            }
        } else {
            self.output.print(
                None,
                &output::list(found.into_iter().map(|(_, object)| object).collect()),
            )?;
        }
        Ok(outcome)
    }

    fn cleaned(&self, mut object: Value) -> Value {
        if !self.show_managed_fields
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("managedFields");
        }
        object
    }

    /// What is there, then every change, until the command is ended.
    async fn follow(&self, session: &Session, chosen: &[Chosen<'_>]) -> Result<Outcome> {
        let [choice] = chosen else {
            return Err(crate::outcome::usage("only one kind can be watched at a time"));
        };
        let path = match choice.names.as_slice() {
            [] => self.selection.path(session, choice.kind),
            [name] => with_query(
                choice.kind.path(Some(&session.namespace)),
                [("fieldSelector", Some(format!("metadata.name={name}").as_str()))],
            ),
            _ => {
                return Err(crate::outcome::usage(
                    "watch one object, or a kind with selectors",
                ));
            }
        };
        let list = if self.output.is_table() {
            session.table(&path).await?
        } else {
            session.get(&path).await?
        };
        let revision = list["metadata"]["resourceVersion"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let watch = Watch::new(session, &path, &revision);
        if self.output.is_table() {
            let mut table = self.table(&list, choice)?;
            if !self.watch_only {
                ensure!(
                    choice.names.is_empty() || list["rows"].as_array().is_some_and(|rows| !rows.is_empty()),
                    "{} \"{}\" not found",
                    choice.kind.qualified(),
                    choice.names.join("")
                );
                table.add(&list, "");
            }
            let mut with_headings = !self.no_headers;
            let mut watch = watch.into_table();
            loop {
                if !table.is_empty() {
                    table.print(std::mem::take(&mut with_headings))?;
                }
                table.add(&watch.next().await?.object, "");
            }
        }
        if !self.watch_only {
            for item in list["items"].as_array().into_iter().flatten() {
                self.output
                    .print(Some(choice.kind), &self.cleaned(item.clone()))?;
            }
        }
        let mut watch = watch;
        loop {
            let change = watch.next().await?;
            self.output
                .print(Some(choice.kind), &self.cleaned(change.object))?;
        }
    }
}
