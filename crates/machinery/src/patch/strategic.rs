//! Strategic merge patch: a merge patch that knows which lists are merged by a key, and takes directives.
//!
//! Lists are replaced unless the table says otherwise; it holds what Kubernetes' types of the kinds served here say.
//! Directives: `$patch: replace | delete | merge` in a map or list item, `$retainKeys`, `$deleteFromPrimitiveList/<field>`
//! and `$setElementOrder/<field>`.

use crate::status::Status;
use serde_json::{Map, Value};

/// How a list is merged.
#[derive(Clone, Copy)]
enum List {
    /// Items are maps with this key.
    By(&'static str),
    /// Items are scalars; the union.
    Set,
    /// The patch's list takes the place of the old one.
    Replaced,
}

fn list_at(kind: &str, path: &str) -> List {
    match (kind, path) {
        (_, "metadata.ownerReferences") => List::By("uid"),
        (_, "metadata.finalizers") => List::Set,
        ("ServiceAccount", "secrets") => List::By("name"),
        ("Namespace", "status.conditions") => List::By("type"),
        _ => List::Replaced,
    }
}

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// Applies a patch to an object of a kind.
pub(super) fn apply(kind: &str, patch: &Value, object: &mut Value) -> Result<(), Status> {
    Merge { kind }.value(object, patch, "")
}

struct Merge<'a> {
    kind: &'a str,
}

fn wrong(path: &str, why: &str) -> Status {
    let path = if path.is_empty() { "the top" } else { path };
    Status::bad_request(format!("the strategic merge patch is wrong at {path}: {why}"))
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// What the directive `$patch` says, if it is there.
fn directive<'p>(patch: &'p Map<String, Value>, path: &str) -> Result<Option<&'p str>, Status> {
    match patch.get(PATCH) {
        None => Ok(None),
        Some(Value::String(word)) if ["replace", "delete", "merge"].contains(&word.as_str()) => {
            Ok(Some(word))
        }
        Some(other) => Err(wrong(
            path,
            &format!("{PATCH}: {other} is none of replace, delete, merge"),
        )),
    }
}

impl Merge<'_> {
    fn value(&self, target: &mut Value, patch: &Value, path: &str) -> Result<(), Status> {
        match patch {
            Value::Object(patch) => self.map(target, patch, path),
            Value::Array(patch) => self.list(target, patch, path),
            scalar => {
                *target = scalar.clone();
                Ok(())
            }
        }
    }

    fn map(&self, target: &mut Value, patch: &Map<String, Value>, path: &str) -> Result<(), Status> {
        match directive(patch, path)? {
            Some("delete") => {
                *target = Value::Object(Map::new());
                return Ok(());
            }
            Some("replace") => *target = Value::Null,
            _ => {}
        }
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        let Some(map) = target.as_object_mut() else {
            return Ok(());
        };
        if let Some(keep) = patch.get(RETAIN) {
            let keep = keep
                .as_array()
                .ok_or_else(|| wrong(path, "$retainKeys must be a list"))?;
            map.retain(|key, _| keep.iter().any(|k| k == key));
        }
        for (name, list) in directives(patch, DELETE_FROM) {
            let gone = list
                .as_array()
                .ok_or_else(|| wrong(path, "$deleteFromPrimitiveList must be a list"))?;
            if let Some(items) = map.get_mut(name).and_then(Value::as_array_mut) {
                items.retain(|item| !gone.contains(item));
            }
        }
        for (name, change) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
            self.field(map, name, change, &below(path, name))?;
        }
        for (name, order) in directives(patch, ORDER) {
            let order = order
                .as_array()
                .ok_or_else(|| wrong(path, "$setElementOrder must be a list"))?;
            if let Some(items) = map.get_mut(name).and_then(Value::as_array_mut) {
                reorder(items, order, list_at(self.kind, &below(path, name)));
            }
        }
        match patch.keys().find(|k| k.starts_with('$') && !known(k)) {
            Some(unknown) => Err(wrong(path, &format!("{unknown} is no directive"))),
            None => Ok(()),
        }
    }

    fn field(
        &self,
        map: &mut Map<String, Value>,
        name: &str,
        change: &Value,
        path: &str,
    ) -> Result<(), Status> {
        let deleted = match change {
            Value::Null => true,
            Value::Object(patch) => directive(patch, path)? == Some("delete"),
            _ => false,
        };
        if deleted {
            map.shift_remove(name);
            return Ok(());
        }
        let target = map.entry(name).or_insert(Value::Null);
        self.value(target, change, path)
    }

    fn list(&self, target: &mut Value, patch: &[Value], path: &str) -> Result<(), Status> {
        let mode = list_at(self.kind, path);
        let replace = |item: &Value| {
            item.get(PATCH).is_some_and(|d| d == "replace") && item.as_object().is_some_and(|o| o.len() == 1)
        };
        if matches!(mode, List::Replaced) || patch.iter().any(replace) || !target.is_array() {
            *target = Value::Array(Vec::new());
        }
        let Some(items) = target.as_array_mut() else {
            return Ok(());
        };
        for (i, change) in patch.iter().enumerate().filter(|(_, item)| !replace(item)) {
            let path = format!("{path}[{i}]");
            match mode {
                List::Replaced => items.push(self.fresh(change, &path)?),
                List::Set if items.contains(change) => {}
                List::Set => items.push(change.clone()),
                List::By(key) => self.item(items, key, change, &path)?,
            }
        }
        Ok(())
    }

    /// Merges one item into a list of maps.
    fn item(&self, items: &mut Vec<Value>, key: &str, change: &Value, path: &str) -> Result<(), Status> {
        let wanted = change.get(key).ok_or_else(|| {
            wrong(
                path,
                &format!("the item has no \"{key}\", by which the list is merged"),
            )
        })?;
        let patch = change
            .as_object()
            .ok_or_else(|| wrong(path, "the item must be a map"))?;
        let place = items.iter().position(|item| item.get(key) == Some(wanted));
        match (directive(patch, path)?, place) {
            (Some("delete"), _) => items.retain(|item| item.get(key) != Some(wanted)),
            (_, Some(place)) => self.value(&mut items[place], change, path)?,
            (_, None) => items.push(self.fresh(change, path)?),
        }
        Ok(())
    }

    /// A value of the patch where nothing was: without directives and nulls.
    fn fresh(&self, change: &Value, path: &str) -> Result<Value, Status> {
        let mut value = Value::Null;
        self.value(&mut value, change, path)?;
        Ok(value)
    }
}

fn known(name: &str) -> bool {
    name == PATCH || name == RETAIN || name.starts_with(DELETE_FROM) || name.starts_with(ORDER)
}

/// The directives of one kind, by the field they are about.
fn directives<'p>(patch: &'p Map<String, Value>, prefix: &str) -> Vec<(&'p str, &'p Value)> {
    patch
        .iter()
        .filter_map(|(name, value)| Some((name.strip_prefix(prefix)?, value)))
        .collect()
}

/// Puts the items that `order` names in its order into the places they hold together; the others stay where they are.
fn reorder(items: &mut [Value], order: &[Value], mode: List) {
    let rank = |item: &Value| match mode {
        List::By(key) => order.iter().position(|o| o.get(key) == item.get(key)),
        _ => order.iter().position(|o| o == item),
    };
    let places: Vec<usize> = (0..items.len()).filter(|i| rank(&items[*i]).is_some()).collect();
    let mut ordered: Vec<Value> = places.iter().map(|i| items[*i].clone()).collect();
    ordered.sort_by_key(rank);
    for (place, item) in places.into_iter().zip(ordered) {
        items[place] = item;
    }
}
