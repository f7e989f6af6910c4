//! Builds a JSON value from any serde format, noting keys written twice and bounding the depth.

use super::MAX_DEPTH;
use api::field::Path;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// Where a value is, as a chain up the stack: rendered only for the rare path that is reported.
enum Place<'p> {
    Root,
    Field(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn path(&self) -> Path {
        match self {
            Place::Root => Path::default(),
            Place::Field(parent, name) => parent.path().child(name),
            Place::Item(parent, index) => parent.path().index(*index),
        }
    }
}

/// Deserializes one value at a place.
pub(super) struct Seed<'a> {
    place: &'a Place<'a>,
    depth: usize,
    duplicates: &'a mut Vec<String>,
}

impl<'a> Seed<'a> {
    /// For the body as a whole; every key written twice is pushed to `duplicates`.
    pub(super) fn root(duplicates: &'a mut Vec<String>) -> Self {
        Self {
            place: &Place::Root,
            depth: 0,
            duplicates,
        }
    }

    fn at<'b, E: Error>(&'b mut self, place: &'b Place<'b>) -> Result<Seed<'b>, E> {
        if self.depth >= MAX_DEPTH {
            return Err(E::custom(format_args!(
                "nested more than {MAX_DEPTH} levels deep"
            )));
        }
        Ok(Seed {
            place,
            depth: self.depth + 1,
            duplicates: self.duplicates,
        })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: Error>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<Value, E> {
        Number::from_f64(v)
            .map(Value::Number)
            .ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E: Error>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let place = Place::Item(self.place, items.len());
            match seq.next_element_seed(self.at(&place)?)? {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let place = Place::Field(self.place, &key);
            let value = map.next_value_seed(self.at(&place)?)?;
            if fields.contains_key(&key) {
                self.duplicates
                    .push(format!("duplicate field \"{}\"", place.path()));
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}
