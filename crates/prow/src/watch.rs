//! Watching a collection: events as lines of JSON, resumed where a connection ended.

use crate::{
    outcome::Error,
    session::{Session, TABLE, request},
};
use anyhow::{Context, Result};
use futures::{AsyncBufReadExt, TryStreamExt, io::AsyncBufRead};
use http::Method;
use http_body_util::BodyExt;
use kube::core::Status;
use serde_json::Value;
use std::time::Duration;

/// A change of an object, or of a row of a Table.
#[derive(Debug)]
pub struct Change {
    /// ADDED, MODIFIED or DELETED.
    pub type_: String,
    /// The object or Table.
    pub object: Value,
}

/// A watch of one collection, from one revision on.
pub struct Watch<'a> {
    session: &'a Session,
    path: String,
    accept: &'static str,
    revision: String,
    lines: Option<Lines>,
    /// Connections that failed in a row.
    failures: u32,
    /// Whether the last connection brought nothing.
    silent: bool,
}

/// Between two connections of which the first brought nothing.
const PAUSE: Duration = Duration::from_secs(1);
/// How many connections may fail in a row.
const PATIENCE: u32 = 60;

type Lines = futures::io::Lines<Box<dyn AsyncBufRead + Send + Unpin>>;

impl<'a> Watch<'a> {
    /// Watches `path`, which has its query already, after `revision`.
    pub fn new(session: &'a Session, path: &str, revision: &str) -> Self {
        Self {
            session,
            path: path.to_owned(),
            accept: crate::session::JSON,
            revision: revision.to_owned(),
            lines: None,
            failures: 0,
            silent: false,
        }
    }

    /// Asks for rows in place of objects.
    pub fn into_table(self) -> Self {
        Self {
            accept: TABLE,
            ..self
        }
    }

    /// The next change. Waits for it, over as many connections as it takes; an error that a new connection cannot cure ends it.
    pub async fn next(&mut self) -> Result<Change> {
        loop {
            let line = match &mut self.lines {
                None => {
                    match self.connect().await {
                        Ok(lines) => self.lines = Some(lines),
                        // a server that is restarted is back soon
                        Err(error) if is_unreached(&error) && self.failures < PATIENCE => {
                            self.failures += 1;
                            tokio::time::sleep(PAUSE).await;
                        }
                        Err(error) => return Err(error),
                    }
                    continue;
                }
                Some(lines) => lines.try_next().await,
            };
            let Ok(Some(line)) = line else {
                self.lines = None; // ended or broken: go on from the last revision seen
                if std::mem::replace(&mut self.silent, true) {
                    tokio::time::sleep(PAUSE).await;
                }
                continue;
            };
            (self.failures, self.silent) = (0, false);
            let mut event: Value =
                serde_json::from_str(&line).context("the server's watch event is no JSON")?;
            let type_ = event["type"].as_str().unwrap_or_default().to_owned();
            let object = event["object"].take();
            let metadata = match object["rows"][0]["object"]["metadata"].as_object() {
                Some(metadata) => metadata.get("resourceVersion"),
                None => object["metadata"].get("resourceVersion"),
            };
            if let Some(revision) = metadata.and_then(Value::as_str).filter(|r| !r.is_empty()) {
                self.revision = revision.to_owned();
            }
            match type_.as_str() {
                "BOOKMARK" => {}
                "ERROR" => {
                    let status: Status =
                        serde_json::from_value(object).context("the server's watch error is no Status")?;
                    return Err(Error::Refused(Box::new(status)).into());
                }
                _ => return Ok(Change { type_, object }),
            }
        }
    }

    async fn connect(&mut self) -> Result<Lines> {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        let path = format!(
            "{}{separator}watch=true&allowWatchBookmarks=true&resourceVersion={}",
            self.path, self.revision
        );
        let response = self
            .session
            .send(request(Method::GET, &path, self.accept, Vec::new())?)
            .await?;
        let body = response
            .into_body()
            .into_data_stream()
            .map_err(std::io::Error::other)
            .into_async_read();
        let body: Box<dyn AsyncBufRead + Send + Unpin> = Box::new(body);
        Ok(body.lines())
    }
}

/// Whether the server was not reached; a retry may help.
pub fn is_unreached(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause| matches!(cause.downcast_ref(), Some(Error::Unreached(_))))
}

/// Whether a watch ended because its revision is too old; list again.
pub fn is_expired(error: &anyhow::Error) -> bool {
    crate::session::refusal(error).is_some_and(|status| status.code == 410)
}

/// Percent-encodes a value of a query; source: RFC 3986, unreserved characters.
pub fn encode(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn selectors_survive_the_query() {
        assert_eq!(
            super::encode("role in (a,b),x!=y"),
            "role%20in%20%28a%2Cb%29%2Cx%21%3Dy"
        );
    }
}
