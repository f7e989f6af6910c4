//! Short ways to write columns.

use crate::kind::{Cell, Column};
use jiff::Timestamp;
use serde_json::Value;

fn column(name: &str, type_: &str, description: &str, cell: Cell) -> Column {
    Column {
        name: name.into(),
        type_: type_.into(),
        format: String::new(),
        description: description.into(),
        priority: 0,
        cell,
    }
}

/// A column that shows a field.
pub(super) fn field(name: &str, type_: &str, path: &str, description: &str) -> Column {
    column(name, type_, description, Cell::Path(path.into()))
}

/// A column that is computed.
pub(super) fn computed(
    name: &str,
    type_: &str,
    description: &str,
    f: fn(&Value, Timestamp) -> Value,
) -> Column {
    column(name, type_, description, Cell::Computed(f))
}

/// The same column, shown with `-o wide` only.
pub(super) fn wide(column: Column) -> Column {
    Column {
        priority: 1,
        ..column
    }
}

/// Time since creation.
pub(super) fn age() -> Column {
    field(
        "Age",
        "date",
        ".metadata.creationTimestamp",
        "Time since the object was made",
    )
}

/// How many entries some maps or lists of an object have together.
pub(super) fn count(object: &Value, fields: &[&str]) -> Value {
    let size = |field: &&str| match &object[*field] {
        Value::Object(map) => map.len(),
        Value::Array(list) => list.len(),
        _ => 0,
    };
    fields.iter().map(size).sum::<usize>().into()
}
