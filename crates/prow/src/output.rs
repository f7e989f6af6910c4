//! Printing objects: server-side tables, YAML, JSON, names, JSONPath.

use crate::{
    jsonpath::Template,
    kinds::Kind,
    outcome::usage,
    terminal::{self, Tone, paint},
};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::{io, str::FromStr};

/// How objects are printed.
#[derive(Clone, Debug, Default)]
pub enum Format {
    /// A table of the most useful columns.
    #[default]
    Table,
    /// A table of all columns.
    Wide,
    /// YAML.
    Yaml,
    /// JSON.
    Json,
    /// `job.prow.windows/name`.
    Name,
    /// What a JSONPath template picks.
    JsonPath(Template),
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "" => Self::Table,
            "wide" => Self::Wide,
            "yaml" => Self::Yaml,
            "json" => Self::Json,
            "name" => Self::Name,
            _ => match text.strip_prefix("jsonpath=") {
                Some(template) => Self::JsonPath(template.parse()?),
                None => return Err("is none of wide, yaml, json, name, jsonpath={…}".into()),
            },
        })
    }
}

impl Format {
    /// Whether the server makes the rows.
    pub fn is_table(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// Prints one object or List as text; not for tables.
    pub fn print(&self, kind: Option<&Kind>, object: &Value) -> Result<()> {
        match self {
            Self::Yaml => terminal::text(&yaml(object)?)?,
            Self::Json => terminal::line(serde_json::to_string_pretty(object)?)?,
            Self::Name => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                terminal::line(format!(
                    "{}/{name}",
                    kind.map(Kind::qualified).unwrap_or_default()
                ))?;
            }
            Self::JsonPath(template) => terminal::text(&template.fill(object).map_err(usage)?)?,
            Self::Table | Self::Wide => anyhow::bail!("tables are printed row by row"),
        }
        Ok(())
    }
}

/// An object as YAML.
pub fn yaml(object: &Value) -> Result<String> {
    let mut text = serde_saphyr::to_string(object).context("cannot be written as YAML")?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Objects as one List.
pub fn list(items: Vec<Value>) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {"resourceVersion": ""}})
}

/// Rows under headings, with columns as wide as their cells; later rows keep to the widths of the first.
#[derive(Default)]
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Table {
    /// A table with these headings.
    pub fn new<'a>(headings: impl IntoIterator<Item = &'a str>) -> Self {
        let headings: Vec<String> = headings.into_iter().map(str::to_owned).collect();
        Self {
            widths: vec![0; headings.len()],
            headings,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the headings, if asked to, and the rows added since the last call.
    pub fn print(&mut self, with_headings: bool) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        for cells in rows.iter().chain(with_headings.then_some(&self.headings)) {
            for (width, cell) in self.widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if with_headings {
            terminal::line(self.layout(&self.headings, |_| Tone::Strong))?;
        }
        for cells in &rows {
            terminal::line(self.layout(cells, Tone::of))?;
        }
        Ok(())
    }

    fn layout(&self, cells: &[String], tone: impl Fn(&str) -> Tone) -> String {
        let mut line = String::new();
        for (i, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            line.push_str(&paint(tone(cell), cell));
            if i + 1 < cells.len() {
                line.extend(std::iter::repeat_n(
                    ' ',
                    width - cell.chars().count().min(*width) + 3,
                ));
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// A `meta.k8s.io/v1` Table from the server, shown as kubectl shows it.
pub struct ServerTable {
    table: Table,
    columns: Vec<usize>,
    namespaces: bool,
    labels: bool,
}

impl ServerTable {
    /// Reads the headings. `namespaces` puts a column for them first, `labels` one last.
    pub fn new(answer: &Value, wide: bool, namespaces: bool, labels: bool) -> Result<Self> {
        let definitions = answer["columnDefinitions"]
            .as_array()
            .context("the server sent no table")?;
        let shown = |column: &Value| wide || column["priority"].as_i64().unwrap_or(0) == 0;
        let columns: Vec<usize> = (0..definitions.len())
            .filter(|i| shown(&definitions[*i]))
            .collect();
        let mut headings: Vec<String> = columns
            .iter()
            .map(|i| {
                definitions[*i]["name"]
                    .as_str()
                    .unwrap_or_default()
                    .to_uppercase()
            })
            .collect();
        if namespaces {
            headings.insert(0, "NAMESPACE".into());
        }
        if labels {
            headings.push("LABELS".into());
        }
        Ok(Self {
            table: Table::new(headings.iter().map(String::as_str)),
            columns,
            namespaces,
            labels,
        })
    }

    /// Adds the rows of a Table; `prefix` goes before each name.
    pub fn add(&mut self, answer: &Value, prefix: &str) {
        for row in answer["rows"].as_array().into_iter().flatten() {
            let mut cells: Vec<String> = self.columns.iter().map(|i| cell(&row["cells"][*i])).collect();
            if let Some(first) = cells.first_mut() {
                first.insert_str(0, prefix);
            }
            let metadata = &row["object"]["metadata"];
            if self.namespaces {
                cells.insert(0, cell(&metadata["namespace"]));
            }
            if self.labels {
                cells.push(labels(&metadata["labels"]));
            }
            self.table.row(cells);
        }
    }

    /// Whether there is no row to print.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Prints the rows added since the last call.
    pub fn print(&mut self, with_headings: bool) -> io::Result<()> {
        self.table.print(with_headings)
    }
}

/// A JSON value as a cell.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('\n', " "),
        other => other.to_string(),
    }
}

/// `a=1,b=2`, or `<none>`.
pub fn labels(labels: &Value) -> String {
    let pairs: Vec<String> = labels
        .as_object()
        .into_iter()
        .flatten()
        .map(|(k, v)| format!("{k}={}", cell(v)))
        .collect();
    if pairs.is_empty() {
        "<none>".into()
    } else {
        pairs.join(",")
    }
}

/// A time as its distance from now, as kubectl writes ages: `42s`, `5m3s`, `3h12m`, `9d`.
pub fn age(since: jiff::Timestamp, now: jiff::Timestamp) -> String {
    machinery::table::human_duration(now.duration_since(since).as_secs().max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_like_kubectls() {
        let now: jiff::Timestamp = "2026-01-10T00:00:00Z".parse().unwrap();
        for (seconds, text) in [
            (-5, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (300, "5m"),
            (3600, "60m"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (864_000, "10d"),
        ] {
            assert_eq!(age(now - jiff::SignedDuration::from_secs(seconds), now), text);
        }
    }

    #[test]
    fn the_wide_columns_stay_away_unless_asked_for() {
        let answer = json!({
            "columnDefinitions": [{"name": "Name"}, {"name": "Phase", "priority": 0}, {"name": "Message", "priority": 1}],
            "rows": [{"cells": ["a", "Running", "fine"], "object": {"metadata": {"namespace": "ops", "labels": {"k": "v"}}}}],
        });
        let rows = |wide| {
            let mut table = ServerTable::new(&answer, wide, true, true).unwrap();
            table.add(&answer, "job/");
            table.table.rows.remove(0)
        };
        assert_eq!(rows(false), ["ops", "job/a", "Running", "k=v"]);
        assert_eq!(rows(true), ["ops", "job/a", "Running", "fine", "k=v"]);
    }
}
