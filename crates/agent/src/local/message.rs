//! What agent and runner tell each other.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;

pub use api::task::Stop;

/// A value of a Secret or ConfigMap: bytes without a printable form, overwritten when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(Vec<u8>);

impl Value {
    /// Takes the bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes; whoever asks must not write them anywhere unmasked.
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.0.fill(0);
        std::hint::black_box(&self.0); // keeps the compiler from leaving the overwriting out
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // the error must not quote the text
        BASE64_STANDARD
            .decode(text)
            .map(Self)
            .map_err(|_| serde::de::Error::custom("a value is not base64"))
    }
}

/// Data of Secrets or ConfigMaps: by name, then by key. One that does not exist is left out.
pub type Values = BTreeMap<String, BTreeMap<String, Value>>;

/// What a [`Wanted`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WantedKind {
    /// A Secret of the Task's namespace.
    Secret,
    /// A ConfigMap of the Task's namespace.
    ConfigMap,
}

/// A Secret or ConfigMap a step needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// Which kind.
    pub kind: WantedKind,
    /// Its name.
    pub name: String,
    /// Whether it may be missing; then nobody waits for it.
    pub optional: bool,
    /// Keys that must be there; the agent waits for them as for the object itself.
    pub keys: Vec<String>,
}

/// Runner to agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FromRunner {
    /// The first message of each connection.
    Hello {
        /// Version of these messages.
        v: u32,
        /// The task's uid.
        uid: String,
    },
    /// A step is about to run and needs these. The agent answers `Values` as soon as it has all that is not optional, or `Missing`
    /// after it has tried for 30 s. Asked again after a reconnect if no answer had come.
    NeedValues {
        /// Number of the question; the answer repeats it.
        id: u64,
        /// The step.
        step: String,
        /// What it needs.
        wanted: Vec<Wanted>,
    },
    /// The journal or a log has grown: worth a look at the files. At most one every 100 ms for logs.
    Progress,
    /// A message of a newer version.
    #[serde(other)]
    Other,
}

/// Agent to runner. No `Debug`: values must not be printable.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FromAgent {
    /// The node's Lease was renewed. Sent at once after connecting and after each renewal; the fence of Rerun work counts from it.
    Renewed {
        /// When the acknowledged renewal was *sent*: [`crate::platform::boot_nanos`].
        sent_at: u64,
    },
    /// The answer to `NeedValues`.
    Values {
        /// The question.
        id: u64,
        /// Secrets.
        secrets: Values,
        /// ConfigMaps.
        config_maps: Values,
    },
    /// Something that must be there is not.
    Missing {
        /// The question.
        id: u64,
        /// `SecretUnavailable` or `ConfigMapUnavailable`.
        reason: String,
        /// What is missing.
        message: String,
    },
    /// The work is to stop. May be repeated: the first reason stays, force may turn true, grace may shrink.
    Stop(Stop),
    /// The host may be restarted for this task.
    RebootAllowed,
    /// A message of a newer version.
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_way_and_are_not_told_by_errors() {
        let sent = FromAgent::Values {
            id: 3,
            secrets: [("db".into(), [("key".into(), Value::new(vec![0, 255, 10]))].into())].into(),
            config_maps: Values::new(),
        };
        let json = serde_json::to_string(&sent).unwrap();
        let Ok(FromAgent::Values { secrets, .. }) = serde_json::from_str(&json) else {
            panic!("not read back")
        };
        assert_eq!(secrets["db"]["key"].reveal(), [0, 255, 10]);

        let broken = json.replace("AP8K", "canary!");
        let error = serde_json::from_str::<FromAgent>(&broken)
            .err()
            .unwrap()
            .to_string();
        assert!(!error.contains("canary"), "{error}");
    }

    #[test]
    fn a_message_of_a_newer_version_is_no_error() {
        assert!(matches!(
            serde_json::from_str(r#"{"type":"invented","x":1}"#),
            Ok(FromAgent::Other)
        ));
    }
}
