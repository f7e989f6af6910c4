//! Environment variables, and `$(NAME)` in commands and arguments.

use super::text;
use crate::{
    JobSpec,
    data::{EnvFrom, EnvVar},
    field::{Errors, Path},
    step::Step,
};
use std::collections::BTreeSet;

/// Fields of a Task a variable may show.
const FIELDS: [&str; 4] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
];

/// Without these neither sockets, cryptography nor shells of Windows work, with errors that point elsewhere. An empty one is none there.
const FIXED: [&str; 7] = [
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "PROGRAMDATA",
    "TEMP",
];

pub(super) fn variables(env: &[EnvVar], path: &Path, steps: &text::Steps, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (i, variable) in env.iter().enumerate() {
        let path = path.index(i);
        let name = path.child("name");
        if variable.name.contains(['=', '\0']) || variable.name.trim().is_empty() {
            errors.invalid(
                &name,
                &variable.name,
                "a variable's name is not empty and has no \"=\"",
            );
        } else if variable.name.to_ascii_uppercase().starts_with("PROW_") {
            errors.forbidden(
                &name,
                "names that begin with PROW_ are set by the agent; choose another",
            );
        } else if !seen.insert(variable.name.to_ascii_uppercase()) {
            // Windows does not tell upper from lower case
            errors.duplicate(&name, &variable.name);
        }
        let empty = variable.value.as_deref().is_none_or(str::is_empty) && variable.value_from.is_none();
        if empty && FIXED.contains(&variable.name.to_ascii_uppercase().as_str()) {
            errors.forbidden(
                &path.child("value"),
                format_args!(
                    "{} cannot be removed: programs of Windows do not work without it",
                    variable.name
                ),
            );
        }
        match (&variable.value, &variable.value_from) {
            (Some(_), Some(_)) => errors.forbidden(
                &path.child("valueFrom"),
                "not beside value; remove one of the two",
            ),
            (Some(value), None) => text::template(value, &path.child("value"), steps, errors),
            (None, Some(source)) => {
                let path = path.child("valueFrom");
                let sources = [
                    source.secret_key_ref.is_some(),
                    source.config_map_key_ref.is_some(),
                    source.field_ref.is_some(),
                    source.store_ref.is_some(),
                ];
                if sources.iter().filter(|s| **s).count() != 1 {
                    errors.invalid(
                        &path,
                        "",
                        "needs exactly one of secretKeyRef, configMapKeyRef, fieldRef and storeRef",
                    );
                }
                if let Some(field) = &source.field_ref
                    && !FIELDS.contains(&field.field_path.as_str())
                {
                    errors.not_supported(
                        &path.child("fieldRef").child("fieldPath"),
                        &field.field_path,
                        &FIELDS,
                    );
                }
            }
            (None, None) => {} // an empty value, as in Kubernetes
        }
    }
}

pub(super) fn from(sources: &[EnvFrom], path: &Path, errors: &mut Errors) {
    for (i, source) in sources.iter().enumerate() {
        if source.secret_ref.is_some() == source.config_map_ref.is_some() {
            errors.invalid(
                &path.index(i),
                "",
                "needs exactly one of secretRef and configMapRef",
            );
        }
    }
}

/// Which variables come from secrets: those may not be pasted into a command line, which any process on the host can read.
pub(super) struct Scope {
    /// In upper case: Windows takes `$(token)` for TOKEN.
    secret: BTreeSet<String>,
}

impl Scope {
    pub(super) fn job(spec: &JobSpec) -> Self {
        let mut scope = Self {
            secret: BTreeSet::new(),
        };
        scope.add(&spec.env);
        scope
    }

    pub(super) fn with(&self, step: &Step) -> Self {
        let mut scope = Self {
            secret: self.secret.clone(),
        };
        for variable in &step.env {
            scope.secret.remove(&variable.name.to_ascii_uppercase());
        }
        scope.add(&step.env);
        scope
    }

    fn add(&mut self, env: &[EnvVar]) {
        let secret = |v: &&EnvVar| {
            v.value_from
                .as_ref()
                .is_some_and(|f| f.secret_key_ref.is_some() || f.store_ref.is_some())
        };
        self.secret
            .extend(env.iter().filter(secret).map(|v| v.name.to_ascii_uppercase()));
    }

    /// Refuses `$(NAME)` where NAME holds a secret.
    pub(super) fn expansion(&self, word: &str, path: &Path, errors: &mut Errors) {
        for (at, _) in word.match_indices("$(") {
            let Some(end) = word[at..].find(')') else { continue };
            let name = &word[at + 2..at + end];
            let escaped = word[..at].ends_with('$');
            if !escaped && self.secret.contains(&name.to_ascii_uppercase()) {
                errors.forbidden(
                    path,
                    format_args!(
                        "$({name}) would put a secret on a command line, which every process on the host can read; \
                         let the program read the variable {name}"
                    ),
                );
            }
        }
    }
}
