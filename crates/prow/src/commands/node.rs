//! `prow node token`: tokens with which new hosts join.

use crate::{
    cli::Global,
    enrolment,
    outcome::{Outcome, usage},
    output::Table,
    session::Session,
    terminal::{self, Tone},
};
use anyhow::{Context, Result};
use api::{
    clock::{Clock, SystemClock},
    placement::Labels,
};
use clap::{Args, Subcommand};
use std::time::Duration;

/// Look after nodes.
#[derive(Args, Debug)]
pub struct NodeCommand {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Enrolment tokens: each lets one host join once
    #[command(subcommand)]
    Token(Token),
}

#[derive(Subcommand, Debug)]
enum Token {
    /// Make a token and print it; it is shown only now
    Create {
        /// A label of the node, such as role=web; may be repeated
        #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
        labels: Vec<(String, String)>,
        /// Which names the host may take; `*` stands for anything
        #[arg(long, value_name = "PATTERN", default_value = "*")]
        name: String,
        /// How long it may be used, such as 30m or 24h
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = super::wait::duration)]
        ttl: Duration,
    },
    /// Show the tokens there are; a used or expired one goes by itself after an hour
    List,
}

impl NodeCommand {
    /// Does it.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let What::Token(token) = self.what;
        let session = Session::open(global).await?;
        match token {
            Token::Create { labels, name, ttl } => {
                let ca = session.ca.as_deref().context(
                    "the kubeconfig holds no CA certificate of the server: the token must carry its hash, so that hosts know the server",
                )?;
                let labels: Labels = labels.into_iter().collect();
                let expires = SystemClock.now()
                    + jiff::SignedDuration::try_from(ttl).map_err(|e| usage(e.to_string()))?;
                let token = enrolment::token(ca)?;
                session
                    .create(
                        enrolment::SECRETS,
                        &enrolment::secret(&token, &labels, &name, expires),
                    )
                    .await?;
                terminal::line(token)?;
                terminal::note(
                    Tone::Dim,
                    "On the host: prow-agent run --server URL --token TOKEN",
                );
            }
            Token::List => {
                let list = session
                    .get(&format!(
                        "{}?fieldSelector=type%3D{}",
                        enrolment::SECRETS,
                        api::enrolment::TYPE.replace('/', "%2F")
                    ))
                    .await?;
                let mut table = Table::new(["ID", "NAME PATTERN", "LABELS", "EXPIRES", "USED BY"]);
                for secret in list["items"].as_array().into_iter().flatten() {
                    table.row(enrolment::row(secret));
                }
                table.print(true)?;
            }
        }
        Ok(Outcome::Done)
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}
