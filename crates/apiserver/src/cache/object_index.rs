//! Which values of selectable fields an event is about.

use super::ring::Event;
use crate::object::Object;

/// A value of an indexed field: 0 is the name, `i + 1` the kind's selectable field `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexKey<'a> {
    /// Number of the field.
    pub field: usize,
    /// Its value.
    pub value: &'a str,
}

/// The value of an indexed field.
fn value(object: &Object, field: usize) -> &str {
    if field == 0 {
        &object.name
    } else {
        object.field(field - 1)
    }
}

/// What the object has after the event, and what it had before where that differs. Each key comes once.
pub fn keys(event: &Event) -> impl Iterator<Item = IndexKey<'_>> {
    let (now, before) = (event.now.as_deref(), event.before.as_deref());
    let count = now.or(before).map_or(0, |object| object.field_count() + 1);
    (0..count).flat_map(move |field| {
        let now = now.map(|object| value(object, field));
        let before = before
            .map(|object| value(object, field))
            .filter(|before| Some(*before) != now);
        now.into_iter()
            .chain(before)
            .map(move |value| IndexKey { field, value })
    })
}
