//! Protobuf's wire format to JSON, guided by tables.
//!
//! Go writes every field that is no pointer, also when it is zero; JSON leaves those out (`omitempty`). So zero is
//! absent here, except in a field marked [`Type::Always`]: a pointer in Go, which is on the wire only if it was set.

use super::Error;
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use serde_json::{Map, Value};

/// A message: field number, JSON name, type.
pub(super) struct Message(pub(super) &'static [(u32, &'static str, Type)]);

/// What a field holds.
pub(super) enum Type {
    /// UTF-8 text.
    Text,
    /// Boolean.
    Flag,
    /// Any integer.
    Number,
    /// Bytes; base64 in JSON.
    Bytes,
    /// `Time`: RFC 3339 in whole seconds.
    Time,
    /// `MicroTime`: RFC 3339 with six digits of a second.
    MicroTime,
    /// `Quantity`: a message around a text.
    Quantity,
    /// A message around a list of texts: `ExtraValue`.
    Texts,
    /// A message around JSON text: `FieldsV1`.
    Json,
    /// A message.
    Object(&'static Message),
    /// A repeated field.
    List(&'static Type),
    /// A map with text keys.
    Map(&'static Type),
    /// A scalar that is kept also when it is zero.
    Always(&'static Type),
}

/// One field on the wire.
enum Field<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
}

/// Calls `each` for every field of a message.
fn fields<'a>(
    mut bytes: &'a [u8],
    mut each: impl FnMut(u32, Field<'a>) -> Result<(), Error>,
) -> Result<(), Error> {
    while !bytes.is_empty() {
        let (number, wire) = decode_key(&mut bytes)?;
        match wire {
            WireType::Varint => each(number, Field::Varint(decode_varint(&mut bytes)?))?,
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut bytes)?).map_err(|_| Error::CutShort)?;
                let (field, rest) = bytes.split_at_checked(length).ok_or(Error::CutShort)?;
                bytes = rest;
                each(number, Field::Bytes(field))?;
            }
            other => skip_field(other, number, &mut bytes, DecodeContext::default())?,
        }
    }
    Ok(())
}

/// A message's bytes field; the last one counts.
pub(super) fn bytes_field(message: &[u8], wanted: u32) -> Result<Option<&[u8]>, Error> {
    let mut found = None;
    fields(message, |number, field| {
        if let (true, Field::Bytes(bytes)) = (number == wanted, field) {
            found = Some(bytes);
        }
        Ok(())
    })?;
    Ok(found)
}

impl Message {
    /// The JSON object of a message. Fields the table does not have are left out, as Kubernetes does.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Map<String, Value>, Error> {
        let mut object = Map::new();
        fields(bytes, |number, field| {
            let Some((_, name, type_)) = self.0.iter().find(|(n, ..)| *n == number) else {
                return Ok(());
            };
            match type_ {
                Type::List(item) => {
                    let list = object.entry(*name).or_insert_with(|| Value::Array(Vec::new()));
                    if let (Some(list), Some(value)) = (list.as_array_mut(), item.decode(name, field)?) {
                        list.push(value);
                    }
                }
                Type::Map(value) => {
                    let map = object.entry(*name).or_insert_with(|| Value::Object(Map::new()));
                    let (key, value) = entry(value, name, field)?;
                    if let Some(map) = map.as_object_mut() {
                        map.insert(key, value);
                    }
                }
                type_ => {
                    if let Some(value) = type_.decode(name, field)?.filter(|v| !type_.is_absent(v)) {
                        object.insert((*name).into(), value);
                    }
                }
            }
            Ok(())
        })?;
        Ok(object)
    }
}

/// An entry of a map: a message with the key in field 1 and the value in field 2.
fn entry(type_: &Type, name: &'static str, field: Field<'_>) -> Result<(String, Value), Error> {
    let Field::Bytes(bytes) = field else {
        return Err(Error::Field(name));
    };
    let key = bytes_field(bytes, 1)?.unwrap_or_default();
    let value = type_.decode(name, Field::Bytes(bytes_field(bytes, 2)?.unwrap_or_default()))?;
    Ok((text(name, key)?, value.unwrap_or_default()))
}

fn text(name: &'static str, bytes: &[u8]) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::Text(name))
}

impl Type {
    fn is_absent(&self, value: &Value) -> bool {
        match self {
            Type::Text | Type::Bytes => value == "",
            Type::Flag => value == false,
            Type::Number => value == 0,
            _ => false,
        }
    }

    /// The JSON value; `None` for the zero time.
    fn decode(&self, name: &'static str, field: Field<'_>) -> Result<Option<Value>, Error> {
        let wrong = || Error::Field(name);
        Ok(Some(match (self, field) {
            (Type::Always(type_), field) => return type_.decode(name, field),
            (Type::Flag, Field::Varint(v)) => (v != 0).into(),
            (Type::Number, Field::Varint(v)) => v.cast_signed().into(),
            (Type::Text, Field::Bytes(b)) => text(name, b)?.into(),
            (Type::Bytes, Field::Bytes(b)) => BASE64_STANDARD.encode(b).into(),
            (Type::Object(message), Field::Bytes(b)) => message.decode(b)?.into(),
            (Type::Quantity, Field::Bytes(b)) => text(name, bytes_field(b, 1)?.unwrap_or_default())?.into(),
            (Type::Json, Field::Bytes(b)) => {
                serde_json::from_slice(bytes_field(b, 1)?.unwrap_or(b"{}")).map_err(|_| wrong())?
            }
            (Type::Texts, Field::Bytes(b)) => {
                let mut list = Vec::new();
                fields(b, |number, field| {
                    if let (1, Field::Bytes(item)) = (number, field) {
                        list.push(Value::from(text(name, item)?));
                    }
                    Ok(())
                })?;
                list.into()
            }
            (Type::Time | Type::MicroTime, Field::Bytes([])) => return Ok(None),
            (Type::Time, Field::Bytes(b)) => {
                format!("{}", time(name, b)?.strftime("%Y-%m-%dT%H:%M:%SZ")).into()
            }
            (Type::MicroTime, Field::Bytes(b)) => {
                format!("{}", time(name, b)?.strftime("%Y-%m-%dT%H:%M:%S.%6fZ")).into()
            }
            _ => return Err(wrong()),
        }))
    }
}

/// `Timestamp {seconds, nanos}`.
fn time(name: &'static str, bytes: &[u8]) -> Result<Timestamp, Error> {
    let (mut seconds, mut nanos) = (0, 0);
    fields(bytes, |number, field| {
        match (number, field) {
            (1, Field::Varint(v)) => seconds = v.cast_signed(),
            (2, Field::Varint(v)) => {
                nanos = i32::try_from(v.cast_signed()).map_err(|_| Error::Field(name))?
            }
            _ => {}
        }
        Ok(())
    })?;
    Timestamp::new(seconds, nanos).map_err(|_| Error::Field(name))
}
