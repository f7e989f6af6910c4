//! `meta.k8s.io/v1` Tables: what `kubectl get` prints.

mod duration;
mod json_path;

pub use duration::{age_of, human_duration};
pub use json_path::JsonPath;

use crate::kind::{Cell, Kind};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// How much of each object goes into its row: the query parameter `includeObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Its metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
}

impl IncludeObject {
    /// Reads the query parameter; `None` if it is none of the three words.
    pub fn parse(parameter: Option<&str>) -> Option<Self> {
        match parameter.unwrap_or_default() {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// How the cells of a kind are made, worked out once.
struct Columns<'a> {
    kind: &'a Kind,
    paths: Vec<Option<JsonPath>>,
    /// Events have their name last, all others first.
    named: bool,
}

impl<'a> Columns<'a> {
    fn of(kind: &'a Kind) -> Self {
        let path = |cell: &Cell| match cell {
            Cell::Path(text) => JsonPath::parse(text),
            Cell::Computed(_) => None,
        };
        let paths = kind.columns.iter().map(|c| path(&c.cell)).collect();
        Self {
            kind,
            paths,
            named: kind.columns.iter().all(|c| c.name != "Name"),
        }
    }

    fn definitions(&self) -> Vec<Value> {
        let name = json!({"name": "Name", "type": "string", "format": "name",
            "description": "Name must be unique within a namespace.", "priority": 0});
        let columns = self.kind.columns.iter().map(|c| {
            let format = if c.name == "Name" { "name" } else { &c.format };
            // A date reaches the client as the age it has now.
            let type_ = if c.type_ == "date" { "string" } else { &c.type_ };
            json!({"name": c.name, "type": type_, "format": format, "description": c.description, "priority": c.priority})
        });
        self.named.then_some(name).into_iter().chain(columns).collect()
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let name = self.named.then(|| object["metadata"]["name"].clone());
        let cells =
            self.kind
                .columns
                .iter()
                .zip(&self.paths)
                .map(|(column, path)| match (&column.cell, path) {
                    (Cell::Computed(f), _) => f(object, now),
                    (Cell::Path(_), Some(path)) => cell(&column.type_, &path.find(object), now),
                    (Cell::Path(_), None) => Value::Null,
                });
        name.into_iter().chain(cells).collect()
    }
}

/// A cell of a type out of what its path found. A value of another type is left out rather than shown wrong.
fn cell(type_: &str, found: &[&Value], now: Timestamp) -> Value {
    let Some(first) = found.first() else {
        return if type_ == "date" {
            "<unknown>".into()
        } else {
            Value::Null
        };
    };
    match type_ {
        "string" => found
            .iter()
            .map(|v| plain(v))
            .collect::<Vec<_>>()
            .join(" ")
            .into(),
        "date" => age_of(first.as_str().unwrap_or_default(), now).into(),
        "integer" => first
            .as_i64()
            .or(first.as_f64().map(|f| f as i64))
            .map_or(Value::Null, Value::from),
        "number" if first.is_number() => (*first).clone(),
        "boolean" if first.is_boolean() => (*first).clone(),
        _ => Value::Null,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A Table under construction, written as JSON text as it grows.
pub struct Table<'a> {
    columns: Columns<'a>,
    include: IncludeObject,
    now: Timestamp,
    body: Vec<u8>,
    rows: usize,
}

impl<'a> Table<'a> {
    /// Begins a table. `metadata` is its `ListMeta`; without `headers` (all but the first table of a watch) there
    /// are no column definitions.
    pub fn new(
        kind: &'a Kind,
        include: IncludeObject,
        now: Timestamp,
        metadata: &Value,
        headers: bool,
    ) -> Self {
        let columns = Columns::of(kind);
        let definitions = if headers {
            Value::from(columns.definitions())
        } else {
            Value::Null
        };
        let head = format!(
            r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{metadata},"columnDefinitions":{definitions},"rows":["#
        );
        Self {
            columns,
            include,
            now,
            body: head.into_bytes(),
            rows: 0,
        }
    }

    /// Adds the row of an object.
    pub fn push(&mut self, object: &Value) {
        let whole = if self.include == IncludeObject::Object {
            object.to_string()
        } else {
            String::new()
        };
        self.row(object, whole.as_bytes());
    }

    /// Adds the row of an object given as JSON text; fails, adding nothing, if it is none.
    pub fn push_bytes(&mut self, object: &[u8]) -> Result<(), serde_json::Error> {
        let value: Value = serde_json::from_slice(object)?;
        self.row(&value, object);
        Ok(())
    }

    fn row(&mut self, object: &Value, whole: &[u8]) {
        if self.rows > 0 {
            self.body.push(b',');
        }
        self.rows += 1;
        let cells = Value::from(self.columns.cells(object, self.now));
        self.body
            .extend_from_slice(format!(r#"{{"cells":{cells}"#).as_bytes());
        match self.include {
            IncludeObject::None => {}
            IncludeObject::Metadata => {
                self.body.extend_from_slice(b",\"object\":");
                self.body
                    .extend_from_slice(metadata_only(object).to_string().as_bytes());
            }
            IncludeObject::Object => {
                self.body.extend_from_slice(b",\"object\":");
                self.body.extend_from_slice(whole);
            }
        }
        self.body.push(b'}');
    }

    /// The table as JSON text.
    pub fn finish(mut self) -> Vec<u8> {
        self.body.extend_from_slice(b"]}");
        self.body
    }
}

/// An object's `PartialObjectMetadata`.
pub fn metadata_only(object: &Value) -> Value {
    let mut partial = Map::new();
    partial.insert("kind".into(), "PartialObjectMetadata".into());
    partial.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    partial.insert("metadata".into(), object["metadata"].clone());
    partial.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_kinds::by_plural;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn table(plural: &str, include: IncludeObject, objects: &[Value]) -> Value {
        let kind = by_plural(plural).unwrap();
        let mut table = Table::new(&kind, include, NOW, &json!({"resourceVersion": "7"}), true);
        for (i, object) in objects.iter().enumerate() {
            if i % 2 == 0 {
                table.push(object)
            } else {
                table.push_bytes(object.to_string().as_bytes()).unwrap()
            }
        }
        serde_json::from_slice(&table.finish()).unwrap()
    }

    fn names(table: &Value, field: &str) -> Vec<String> {
        let all = table["columnDefinitions"].as_array().unwrap();
        all.iter()
            .map(|c| c[field].as_str().map_or(c[field].to_string(), str::to_owned))
            .collect()
    }

    #[test]
    fn a_list_of_secrets_as_kubectl_prints_it() {
        let secret = json!({"kind": "Secret", "metadata": {"name": "a", "creationTimestamp": "2027-01-15T07:00:00Z"}, "type": "Opaque",
            "data": {"x": "", "y": ""}});
        let bare = json!({"kind": "Secret", "metadata": {"name": "b"}});
        let table = table("secrets", IncludeObject::Metadata, &[secret.clone(), bare]);
        assert_eq!(names(&table, "name"), ["Name", "Type", "Data", "Age"]);
        assert_eq!(table["rows"][0]["cells"], json!(["a", "Opaque", 2, "60m"]));
        assert_eq!(table["rows"][1]["cells"], json!(["b", null, 0, "<unknown>"]));
        assert_eq!(table["metadata"]["resourceVersion"], "7");
        let object = &table["rows"][0]["object"];
        assert_eq!(
            (&object["kind"], &object["metadata"]),
            (&json!("PartialObjectMetadata"), &secret["metadata"])
        );
        assert!(object.get("data").is_none());
    }

    #[test]
    fn the_object_is_included_as_asked() {
        let secret = json!({"metadata": {"name": "a"}, "data": {"x": ""}});
        let objects = [secret.clone(), secret.clone()];
        let whole = table("secrets", IncludeObject::Object, &objects);
        assert_eq!(
            (&whole["rows"][0]["object"], &whole["rows"][1]["object"]),
            (&secret, &secret)
        );
        assert!(
            table("secrets", IncludeObject::None, &objects)["rows"][0]
                .get("object")
                .is_none()
        );
    }

    #[test]
    fn events_have_kubectls_columns_and_their_name_only_in_wide() {
        let event = json!({"metadata": {"name": "e1"}, "type": "Warning", "reason": "Failed", "message": "exit code 1603",
            "involvedObject": {"kind": "Job", "name": "patch"}, "eventTime": "2027-01-15T07:59:30.123456Z",
            "reportingComponent": "job-controller"});
        let table = table("events", IncludeObject::None, &[event]);
        assert_eq!(
            names(&table, "name"),
            [
                "Last Seen",
                "Type",
                "Reason",
                "Object",
                "Subobject",
                "Source",
                "Message",
                "First Seen",
                "Count",
                "Name"
            ]
        );
        let shown: Vec<_> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .zip(table["rows"][0]["cells"].as_array().unwrap())
            .filter(|(c, _)| c["priority"] == 0)
            .map(|(_, cell)| cell.as_str().unwrap())
            .collect();
        assert_eq!(shown, ["29s", "Warning", "Failed", "job/patch", "exit code 1603"]);
    }

    #[test]
    fn a_watch_sends_the_headings_once() {
        let kind = by_plural("secrets").unwrap();
        let table = Table::new(&kind, IncludeObject::None, NOW, &json!({}), false);
        assert!(serde_json::from_slice::<Value>(&table.finish()).unwrap()["columnDefinitions"].is_null());
    }

    #[test]
    fn what_is_no_json_adds_no_row() {
        let kind = by_plural("secrets").unwrap();
        let mut table = Table::new(&kind, IncludeObject::Object, NOW, &json!({}), true);
        assert!(table.push_bytes(b"{oops").is_err());
        assert_eq!(
            serde_json::from_slice::<Value>(&table.finish()).unwrap()["rows"],
            json!([])
        );
    }

    #[test]
    fn cells_of_a_wrong_type_stay_empty() {
        assert_eq!(cell("integer", &[&json!("x")], NOW), Value::Null);
        assert_eq!(cell("integer", &[&json!(2.0)], NOW), json!(2));
        assert_eq!(
            cell("string", &[&json!("a"), &json!(true), &json!({"x": 1})], NOW),
            json!("a true {\"x\":1}")
        );
        assert_eq!(cell("date", &[&json!("nonsense")], NOW), json!("<unknown>"));
    }
}
