//! Objects by the values of their selectable fields.

use crate::object::Object;
use machinery::kind::Kind;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Objects by namespace and name.
type Sorted = BTreeMap<(Arc<str>, Arc<str>), Arc<Object>>;

/// See the module.
#[derive(Debug)]
pub struct Having(Vec<HashMap<Box<str>, Sorted>>);

impl Having {
    /// No objects.
    pub fn new(kind: &Kind) -> Self {
        Self(kind.selectable.iter().map(|_| HashMap::new()).collect())
    }

    /// Puts `now` in the place of `before`.
    pub fn change(&mut self, before: Option<&Object>, now: Option<&Arc<Object>>) {
        for (i, values) in self.0.iter_mut().enumerate() {
            if let Some(before) = before
                && now.is_none_or(|now| now.field(i) != before.field(i))
                && let Some(sorted) = values.get_mut(before.field(i))
            {
                sorted.remove(&key(before));
                if sorted.is_empty() {
                    values.remove(before.field(i));
                }
            }
            if let Some(now) = now {
                match values.get_mut(now.field(i)) {
                    Some(sorted) => {
                        sorted.insert(key(now), now.clone());
                    }
                    None => {
                        values.insert(now.field(i).into(), Sorted::from([(key(now), now.clone())]));
                    }
                }
            }
        }
    }

    /// The objects whose field number `i` has `value`, by namespace and name.
    pub fn objects(&self, i: usize, value: &str) -> Vec<Arc<Object>> {
        self.0
            .get(i)
            .and_then(|values| values.get(value))
            .map(|sorted| sorted.values().cloned().collect())
            .unwrap_or_default()
    }
}

fn key(object: &Object) -> (Arc<str>, Arc<str>) {
    (object.namespace.clone(), object.name.clone())
}
