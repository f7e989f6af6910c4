//! Bodies in `application/vnd.kubernetes.protobuf`, which kubectl sends for core kinds and does not fall back from: the
//! four bytes `k8s\0` and a `runtime.Unknown` message around the object.

mod messages;
mod wire;

use serde_json::{Map, Value};

/// Why bytes are no object. A retry with the same bytes cannot help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The four bytes `k8s\0` are missing.
    #[error("it does not begin with the four bytes \"k8s\\0\"")]
    Magic,
    /// A length says there is more than the body has.
    #[error("it ends in the middle of a field")]
    CutShort,
    /// The wire format is broken.
    #[error("{0}")]
    Wire(#[from] prost::DecodeError),
    /// A field has a value its type does not have.
    #[error("field \"{0}\" has a wrong wire type or value")]
    Field(&'static str),
    /// A text is not UTF-8.
    #[error("field \"{0}\" is not UTF-8 text")]
    Text(&'static str),
    /// The kind is not one that comes in protobuf here.
    #[error("kind \"{kind}\" in \"{api_version}\" is not known in this format; send it as JSON")]
    Kind {
        /// As the body says.
        api_version: String,
        /// As the body says.
        kind: String,
    },
    /// The object inside is compressed or in another format.
    #[error("content encoding \"{0}\" is not supported")]
    Content(String),
}

/// Decodes a body into the JSON form of the object.
pub fn decode(body: &[u8]) -> Result<Value, Error> {
    let unknown = body.strip_prefix(b"k8s\0").ok_or(Error::Magic)?;
    let type_meta = wire::bytes_field(unknown, 1)?.unwrap_or_default();
    let raw = wire::bytes_field(unknown, 2)?.unwrap_or_default();
    let encoding = text(wire::bytes_field(unknown, 3)?);
    if !encoding.is_empty() {
        return Err(Error::Content(encoding));
    }
    let api_version = text(wire::bytes_field(type_meta, 1)?);
    let kind = text(wire::bytes_field(type_meta, 2)?);
    let Some(message) = messages::message(&api_version, &kind) else {
        return Err(Error::Kind { api_version, kind });
    };
    let mut object = Map::new();
    object.insert("apiVersion".into(), api_version.into());
    object.insert("kind".into(), kind.into());
    object.extend(message.decode(raw)?);
    Ok(object.into())
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;
