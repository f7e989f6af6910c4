//! `prow describe`: show an object, what happened to it, and what to do next.

mod job;
mod node;
mod object;
mod task;

use crate::{
    cli::Global,
    events,
    kinds::{Kind, Kinds},
    outcome::{Outcome, report},
    select::Selection,
    session::Session,
    terminal,
};
use anyhow::Result;
use clap::Args;
use serde_json::Value;

/// Show an object, what happened to it, and what to do next.
#[derive(Args, Debug)]
pub struct Describe {
    #[command(flatten)]
    selection: Selection,
}

impl Describe {
    /// Describes one after the other.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let kinds = Kinds::discover(&session).await?;
        let mut outcome = Outcome::Done;
        let mut first = true;
        for choice in self.selection.chosen(&kinds)? {
            let objects = match self.selection.fetch(&session, &choice).await {
                Ok(objects) => objects,
                Err(error) => {
                    outcome = report(&error);
                    continue;
                }
            };
            for object in objects {
                if !std::mem::take(&mut first) {
                    terminal::line("\n")?;
                }
                describe(&session, choice.kind, &object).await?;
            }
        }
        Ok(outcome)
    }
}

async fn describe(session: &Session, kind: &Kind, object: &Value) -> Result<()> {
    object::head(object)?;
    match kind.kind.as_str() {
        _ if kind.group != api::GROUP => object::body(object)?,
        "Job" => job::body(session, serde_json::from_value(object.clone())?).await?,
        "Task" => task::body(session, &serde_json::from_value(object.clone())?).await?,
        "Node" => node::body(session, &serde_json::from_value(object.clone())?).await?,
        _ => object::body(object)?,
    }
    events::print(&events::about(session, object).await?)
}
