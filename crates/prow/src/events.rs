//! Events about an object, in kubectl's layout.

use crate::{
    output::{Table, age, cell},
    select::with_query,
    session::Session,
    terminal,
};
use anyhow::Result;
use api::clock::{Clock, SystemClock};
use serde_json::Value;

/// The Events about an object, oldest first.
pub async fn about(session: &Session, object: &Value) -> Result<Vec<Value>> {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    // events about objects without a namespace lie in `default`
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let selector = format!("involvedObject.uid={uid}");
    let path = with_query(
        format!("/api/v1/namespaces/{namespace}/events"),
        [("fieldSelector", Some(selector.as_str()))],
    );
    let mut list = session.get(&path).await?;
    let mut events = match list["items"].take() {
        Value::Array(events) => events,
        _ => Vec::new(),
    };
    events.sort_by_key(|event| time(event).map(str::to_owned));
    Ok(events)
}

fn time(event: &Value) -> Option<&str> {
    let series = &event["series"]["lastObservedTime"];
    [
        series,
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["firstTimestamp"],
    ]
    .into_iter()
    .chain([&event["metadata"]["creationTimestamp"]])
    .find_map(Value::as_str)
}

/// Prints them as the last part of a description.
pub fn print(events: &[Value]) -> Result<()> {
    if events.is_empty() {
        terminal::line("Events:  <none>")?;
        return Ok(());
    }
    terminal::line("Events:")?;
    let mut table = Table::new(["  TYPE", "REASON", "AGE", "FROM", "MESSAGE"]);
    let now = SystemClock.now();
    for event in events {
        let count = event["series"]["count"]
            .as_i64()
            .or(event["count"].as_i64())
            .unwrap_or(1);
        let mut since = time(event)
            .and_then(|t| t.parse().ok())
            .map_or("<unknown>".into(), |t| age(t, now));
        if count > 1 {
            since = format!("{since} (x{count})");
        }
        let from = [&event["source"]["component"], &event["reportingComponent"]]
            .into_iter()
            .find_map(Value::as_str);
        table.row([
            format!("  {}", cell(&event["type"])),
            cell(&event["reason"]),
            since,
            from.unwrap_or_default().to_owned(),
            cell(&event["message"]),
        ]);
    }
    table.print(true)?;
    Ok(())
}
