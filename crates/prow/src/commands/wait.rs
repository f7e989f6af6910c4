//! `prow wait`: wait until objects are as asked.

use super::delete::until_gone;
use crate::{
    cli::Global,
    jsonpath::Template,
    kinds::{Kind, Kinds},
    outcome::{Outcome, report, usage},
    select::{Selection, with_query},
    session::{Session, is_missing},
    terminal,
    watch::{Watch, is_expired},
};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde_json::Value;
use std::{str::FromStr, time::Duration};

/// Wait until objects are as asked.
#[derive(Args, Debug)]
pub struct Wait {
    #[command(flatten)]
    selection: Selection,
    /// What for: condition=NAME[=STATUS], delete, create, jsonpath={PATH}[=VALUE]
    #[arg(long = "for", value_name = "WHAT")]
    goal: Goal,
    /// How long, such as 30s or 1h
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    /// All objects of the kind in the namespace
    #[arg(long)]
    all: bool,
}

/// What an object must be.
#[derive(Clone, Debug)]
pub enum Goal {
    /// It has a condition with this status.
    Condition { type_: String, status: String },
    /// It is gone.
    Delete,
    /// It is there.
    Create,
    /// A path leads to this value, or to any.
    Path {
        template: Template,
        value: Option<String>,
    },
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(condition) = text.strip_prefix("condition=") {
            let (type_, status) = condition.split_once('=').unwrap_or((condition, "True"));
            return Ok(Self::Condition {
                type_: type_.into(),
                status: status.into(),
            });
        }
        if let Some(path) = text.strip_prefix("jsonpath=") {
            let path = path.trim_matches('\'');
            let (template, value) = match path.rfind('}') {
                Some(close) => (&path[..=close], path[close + 1..].strip_prefix('=')),
                None => path
                    .split_once('=')
                    .map_or((path, None), |(path, value)| (path, Some(value))),
            };
            let value = value.map(|value| value.trim_matches(['"', '\'']).to_owned());
            return Ok(Self::Path {
                template: template.trim_end_matches('\'').parse()?,
                value,
            });
        }
        match text {
            "delete" => Ok(Self::Delete),
            "create" => Ok(Self::Create),
            _ => Err("is none of condition=NAME[=STATUS], delete, create, jsonpath={PATH}[=VALUE]".into()),
        }
    }
}

impl Goal {
    /// Whether an object is as asked.
    pub fn is_met(&self, object: &Value) -> bool {
        match self {
            Self::Condition { type_, status } => object["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten()
                .any(|c| word_is(&c["type"], type_) && word_is(&c["status"], status)),
            Self::Delete => false,
            Self::Create => true,
            Self::Path { template, value } => match (template.fill(object), value) {
                (Ok(found), Some(value)) => found == *value,
                (Ok(found), None) => !found.is_empty(),
                (Err(_), _) => false,
            },
        }
    }
}

fn word_is(value: &Value, word: &str) -> bool {
    value.as_str().is_some_and(|v| v.eq_ignore_ascii_case(word))
}

impl Wait {
    /// Waits for all objects; the time limit holds for all of them together.
    pub async fn run(self, global: &Global) -> Result<Outcome> {
        let session = Session::open(global).await?;
        let kinds = Kinds::discover(&session).await?;
        let mut waiting = Vec::new();
        for choice in self.selection.chosen(&kinds)? {
            if !choice.names.is_empty() {
                waiting.extend(
                    choice
                        .names
                        .into_iter()
                        .map(|name| (choice.kind, session.namespace.clone(), name)),
                );
                continue;
            }
            if !self.all && self.selection.selector.is_none() && self.selection.field_selector.is_none() {
                return Err(usage("name the objects, select them with -l, or say --all"));
            }
            for object in self.selection.fetch(&session, &choice).await? {
                let field = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
                waiting.push((choice.kind, field("namespace"), field("name")));
            }
        }
        if waiting.is_empty() && !matches!(self.goal, Goal::Delete) {
            bail!("no matching resources found");
        }
        let deadline = tokio::time::Instant::now() + self.timeout;
        let mut outcome = Outcome::Done;
        for (kind, namespace, name) in waiting {
            let met = tokio::time::timeout_at(deadline, self.until(&session, kind, &namespace, &name)).await;
            match met.unwrap_or_else(|_| Err(anyhow!("timed out waiting for {}/{name}", kind.qualified()))) {
                Ok(()) => {
                    let verb = if matches!(self.goal, Goal::Delete) {
                        "deleted"
                    } else {
                        "condition met"
                    };
                    terminal::line(format!("{}/{name} {verb}", kind.qualified()))?;
                }
                Err(error) => outcome = report(&error),
            }
        }
        Ok(outcome)
    }

    async fn until(&self, session: &Session, kind: &Kind, namespace: &str, name: &str) -> Result<()> {
        if matches!(self.goal, Goal::Delete) {
            return match session.get(&kind.object_path(namespace, name)).await {
                Ok(object) => {
                    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
                    until_gone(session, kind, namespace, name, uid).await
                }
                Err(error) if is_missing(&error) => Ok(()),
                Err(error) => Err(error),
            };
        }
        if !matches!(self.goal, Goal::Create) {
            session.get(&kind.object_path(namespace, name)).await?; // an object that is not there is an error, as in kubectl
        }
        until_met(session, kind, namespace, name, &self.goal).await
    }
}

/// Waits until an object is as asked; an object that goes away meanwhile is an error.
pub async fn until_met(
    session: &Session,
    kind: &Kind,
    namespace: &str,
    name: &str,
    goal: &Goal,
) -> Result<()> {
    let selector = format!("metadata.name={name}");
    let path = with_query(
        kind.path(Some(namespace)),
        [("fieldSelector", Some(selector.as_str()))],
    );
    loop {
        let list = session.get(&path).await?;
        if list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|object| goal.is_met(object))
        {
            return Ok(());
        }
        let revision = list["metadata"]["resourceVersion"]
            .as_str()
            .ok_or_else(|| anyhow!("the list has no revision"))?;
        let mut watch = Watch::new(session, &path, revision);
        loop {
            match watch.next().await {
                Ok(change) if change.type_ == "DELETED" => {
                    bail!("{}/{name} was deleted while it was waited for", kind.qualified())
                }
                Ok(change) if goal.is_met(&change.object) => return Ok(()),
                Ok(_) => {}
                Err(error) if is_expired(&error) => break,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Runs `work`, at most for `limit`; zero means without limit.
pub async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T> {
    if limit.is_zero() {
        return Ok(work.await);
    }
    tokio::time::timeout(limit, work)
        .await
        .map_err(|_| anyhow!("timed out after {}", api::duration::format(limit)))
}

/// A duration as manifests have them; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => api::duration::parse(text).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn met(goal: &str) -> bool {
        let job = json!({"status": {"phase": "Failed", "conditions": [{"type": "Finished", "status": "True"}, {"type": "Complete", "status": "False"}]}});
        goal.parse::<Goal>().unwrap().is_met(&job)
    }

    #[test]
    fn conditions_and_paths_are_judged_like_kubectl_does() {
        assert!(met("condition=Finished"));
        assert!(met("condition=finished=true"));
        assert!(!met("condition=Complete"));
        assert!(met("condition=Complete=False"));
        assert!(!met("condition=Paused"));
        assert!(met("jsonpath={.status.phase}=Failed"));
        assert!(!met("jsonpath={.status.phase}=Succeeded"));
        assert!(met("jsonpath='{.status.phase}'"));
        assert!(!met("jsonpath={.status.completionTime}"));
    }

    #[test]
    fn an_unknown_goal_is_refused() {
        assert!("finished".parse::<Goal>().is_err());
    }
}
