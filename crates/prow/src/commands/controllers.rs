//! `prow controllers`: scheduler and controllers apart from the API server.

use crate::{
    cli::Global,
    outcome::Outcome,
    serve::{Tuning, control},
    session::Session,
    terminal,
};
use anyhow::Result;
use clap::Args;
use informer::Shared;

/// Run scheduler and controllers against a server elsewhere. Of several processes that do, the one that holds the Lease
/// `prow-control` in `prow-system` works and the others stand by.
#[derive(Args, Debug)]
pub struct Controllers {
    #[command(flatten)]
    tuning: Tuning,
}

impl Controllers {
    /// Runs until it is told to stop.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let shared = Shared::start(&session.client);
        let client = |_: &str| session.client.clone();
        let identity = control::random_identity()?;
        control::run(client, shared, identity, &self.tuning, terminal::interrupted()).await?;
        Ok(Outcome::Done)
    }
}
