//! How a command ends: exit codes, and errors in the words of kubectl.

use crate::terminal::{self, Tone};
use kube::core::Status;
use std::io;

/// How a command ended, as exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done; a Job that was waited for succeeded.
    Done,
    /// The Job failed, or the request was refused.
    Failed,
    /// Typed wrongly.
    Usage,
    /// The server was not reached.
    Unreached,
    /// The server knows the user but says no.
    Denied,
    /// How the work ended is not known.
    Unknown,
}

impl Outcome {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreached => 3,
            Self::Denied => 4,
            Self::Unknown => 5,
        }
    }
}

/// Errors this program itself raises with an exit code of their own.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was typed makes no sense. A retry does not help.
    #[error("{0}")]
    Usage(String),
    /// There is no server to talk to, or it did not answer. A retry may help.
    #[error("{0}")]
    Unreached(String),
    /// The server refused or does not have it, in its own words.
    #[error("{}", message(.0))]
    Refused(Box<Status>),
}

/// A usage error.
pub fn usage(message: impl Into<String>) -> anyhow::Error {
    Error::Usage(message.into()).into()
}

/// Prints an error and says how the command ended.
pub fn report(error: &anyhow::Error) -> Outcome {
    let outcome = of_error(error);
    if outcome != Outcome::Done {
        let text = format!("{error:#}");
        let text = if text.starts_with("Error from server") || text.starts_with("The ") {
            text
        } else {
            format!("error: {text}")
        };
        terminal::note(Tone::Bad, &text);
    }
    outcome
}

fn of_error(error: &anyhow::Error) -> Outcome {
    for cause in error.chain() {
        if let Some(e) = cause.downcast_ref::<io::Error>()
            && e.kind() == io::ErrorKind::BrokenPipe
        {
            return Outcome::Done; // whoever read our output has seen enough
        }
        match cause.downcast_ref::<Error>() {
            Some(Error::Usage(_)) => return Outcome::Usage,
            Some(Error::Unreached(_)) => return Outcome::Unreached,
            Some(Error::Refused(status)) if matches!(status.code, 401 | 403) => return Outcome::Denied,
            Some(Error::Refused(_)) => return Outcome::Failed,
            None => {}
        }
    }
    Outcome::Failed
}

/// A refusal in the words of kubectl: invalid objects with one mistake a line, everything else with its reason.
fn message(status: &Status) -> String {
    let details = status.details.as_ref();
    if status.reason == "Invalid"
        && let Some(details) = details.filter(|d| !d.causes.is_empty())
    {
        let kind = if details.kind.is_empty() {
            "object"
        } else {
            &details.kind
        };
        let mistakes: Vec<String> = details
            .causes
            .iter()
            .map(|c| {
                if c.field.is_empty() {
                    c.message.clone()
                } else {
                    format!("{}: {}", c.field, c.message)
                }
            })
            .collect();
        return match mistakes.as_slice() {
            [one] => format!("The {kind} \"{}\" is invalid: {one}", details.name),
            all => format!(
                "The {kind} \"{}\" is invalid:\n* {}",
                details.name,
                all.join("\n* ")
            ),
        };
    }
    let reason = if status.reason.is_empty() {
        "Unknown"
    } else {
        &status.reason
    };
    format!("Error from server ({reason}): {}", status.message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(status: serde_json::Value) -> anyhow::Error {
        Error::Refused(Box::new(serde_json::from_value(status).unwrap())).into()
    }

    #[test]
    fn every_way_to_end_has_the_documented_code() {
        assert_eq!(of_error(&usage("x")).code(), 2);
        assert_eq!(of_error(&Error::Unreached("x".into()).into()).code(), 3);
        assert_eq!(
            of_error(&refused(json!({"code": 403, "reason": "Forbidden"}))).code(),
            4
        );
        assert_eq!(
            of_error(&refused(json!({"code": 401, "reason": "Unauthorized"}))).code(),
            4
        );
        assert_eq!(
            of_error(&refused(json!({"code": 404, "reason": "NotFound"}))).code(),
            1
        );
        assert_eq!(
            of_error(&refused(json!({"code": 403})).context("while applying a.yaml")).code(),
            4
        );
        assert_eq!(Outcome::Unknown.code(), 5);
    }

    #[test]
    fn a_closed_pipe_is_no_error() {
        let closed = anyhow::Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(of_error(&closed), Outcome::Done);
    }

    #[test]
    fn all_mistakes_of_an_invalid_object_are_shown_with_their_paths() {
        let error = refused(
            json!({"code": 422, "reason": "Invalid", "message": "…", "details": {"kind": "Job", "name": "a", "causes": [
                {"reason": "FieldValueInvalid", "field": "spec.steps[0].shell", "message": "unknown shell"},
                {"reason": "FieldValueRequired", "field": "spec.steps[1].name", "message": "is required"},
            ]}}),
        );
        assert_eq!(
            error.to_string(),
            "The Job \"a\" is invalid:\n* spec.steps[0].shell: unknown shell\n* spec.steps[1].name: is required"
        );
    }
}
