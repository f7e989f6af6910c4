//! The work of a Job as its Tasks carry it: the JSON of the immutable spec, and its hash.
//!
//! A Task names the hash, and carries the JSON itself where it is short. The agent runs only work whose hash is the one its
//! Task names, so a Job re-created under the same name can never lend a Task other commands.

use crate::{job::JobSpec, names::sha256_hex};

/// Work up to this many bytes is put into the Task; the agent reads longer work from the Job.
pub const INLINE_LIMIT: usize = 8192;

/// A Job's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The JSON of the immutable spec.
    pub json: String,
    /// SHA-256 of `json`, in hex.
    pub hash: String,
}

/// Why a text is not the work a Task names.
#[derive(Debug, thiserror::Error)]
pub enum Mismatch {
    /// Another spec: the Job was re-created, or the text was damaged. A retry cannot help.
    #[error("the Job's work has the hash {found}, the Task names {wanted}")]
    Hash {
        /// Hash of the text at hand.
        found: String,
        /// Hash the Task names.
        wanted: String,
    },
    /// The text is no Job spec this version can read.
    #[error("the work cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl Work {
    /// The work of a Job.
    pub fn of(spec: &JobSpec) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_string(&spec.immutable())?;
        let hash = sha256_hex(&json);
        Ok(Self { json, hash })
    }

    /// The JSON, where it is short enough to be put into the Task.
    pub fn inline(&self) -> Option<String> {
        (self.json.len() <= INLINE_LIMIT).then(|| self.json.clone())
    }

    /// Reads work that must have the hash a Task names. Unknown fields are let pass: a newer server may know more.
    pub fn read(json: &str, wanted: &str) -> Result<JobSpec, Mismatch> {
        let found = sha256_hex(json);
        if found != wanted {
            return Err(Mismatch::Hash {
                found,
                wanted: wanted.to_owned(),
            });
        }
        Ok(serde_json::from_str(json)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{amount::Amount, step::Step};

    fn spec() -> JobSpec {
        JobSpec {
            steps: vec![Step {
                name: "a".into(),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    #[test]
    fn edits_that_are_allowed_leave_the_hash() {
        let mut edited = spec();
        edited.suspend = true;
        edited.priority = Some(7);
        edited.parallelism = Some(Amount::Count(9));
        assert_eq!(Work::of(&spec()).unwrap(), Work::of(&edited).unwrap());
    }

    #[test]
    fn other_commands_are_refused() {
        let work = Work::of(&spec()).unwrap();
        let mut other = spec();
        other.steps[0].name = "b".into();
        let other = Work::of(&other).unwrap();
        assert!(matches!(
            Work::read(&other.json, &work.hash),
            Err(Mismatch::Hash { .. })
        ));
        assert_eq!(Work::read(&work.json, &work.hash).unwrap(), spec());
    }
}
