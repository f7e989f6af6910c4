//! `prow cordon` and `prow uncordon`: keep new work away from nodes.

use crate::{
    cli::Global,
    outcome::{Outcome, report, usage},
    select::with_query,
    session::Session,
    terminal,
};
use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};

/// Keep new work away from nodes; what runs there goes on.
#[derive(Args, Debug)]
pub struct Cordon {
    #[command(flatten)]
    nodes: Nodes,
}

/// Let new work onto nodes again.
#[derive(Args, Debug)]
pub struct Uncordon {
    #[command(flatten)]
    nodes: Nodes,
}

#[derive(Args, Debug)]
struct Nodes {
    /// The nodes
    #[arg(value_name = "NODE")]
    names: Vec<String>,
    /// Nodes with these labels
    #[arg(
        short = 'l',
        long = "selector",
        value_name = "LABELS",
        conflicts_with = "names"
    )]
    selector: Option<String>,
}

impl Cordon {
    /// Cordons.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        self.nodes.set(global, true).await
    }
}

impl Uncordon {
    /// Uncordons.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        self.nodes.set(global, false).await
    }
}

impl Nodes {
    async fn set(self, global: &Global, unschedulable: bool) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let root = "/apis/prow.windows/v1/nodes";
        let mut names = self.names;
        if let Some(selector) = &self.selector {
            let list = session
                .get(&with_query(
                    root.into(),
                    [("labelSelector", Some(selector.as_str()))],
                ))
                .await?;
            let found = list["items"].as_array().into_iter().flatten();
            names.extend(
                found
                    .filter_map(|node| node["metadata"]["name"].as_str())
                    .map(str::to_owned),
            );
        }
        if names.is_empty() {
            return Err(usage("name nodes, or select them with -l"));
        }
        let mut outcome = Outcome::Done;
        for name in names {
            let path = format!("{root}/{name}");
            let patch = json!({"spec": {"unschedulable": if unschedulable { Value::Bool(true) } else { Value::Null }}});
            match session.merge(&path, &patch).await {
                Ok(_) => terminal::line(format!(
                    "node.prow.windows/{name} {}",
                    if unschedulable { "cordoned" } else { "uncordoned" }
                ))?,
                Err(error) => outcome = report(&error),
            }
        }
        Ok(outcome)
    }
}
