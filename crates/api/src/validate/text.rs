//! Expressions in texts: `when` and `${{ … }}`, and the steps they speak of.

use crate::{
    JobSpec, expr,
    field::{Errors, Path, nearest},
};
use std::collections::BTreeSet;

/// The names of all steps, as expressions may write them.
pub(super) struct Steps(BTreeSet<String>);

impl Steps {
    pub(super) fn of(spec: &JobSpec) -> Self {
        Self(spec.all_steps().map(|(_, _, s)| s.name.clone()).collect())
    }

    /// Reports steps an expression names that do not exist.
    fn check(&self, expression: &str, path: &Path, errors: &mut Errors) {
        for name in named(expression) {
            let known = self.0.iter().any(|s| *s == name || s.replace('-', "_") == name);
            if !known {
                let hint = nearest(&name, self.0.iter().map(String::as_str))
                    .map(|n| format!(", did you mean \"{n}\"?"))
                    .unwrap_or_default();
                errors.invalid(
                    path,
                    expression,
                    format_args!("there is no step \"{name}\"{hint}"),
                );
            }
        }
    }
}

/// The words after `steps.` and in `steps['…']`.
fn named(expression: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in expression.match_indices("steps") {
        let inside_word = expression[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || "_.".contains(c));
        let rest = &expression[at + "steps".len()..];
        if inside_word {
            continue;
        }
        if let Some(rest) = rest.strip_prefix('.') {
            names.push(
                rest.chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect(),
            );
        } else if let Some(rest) = rest.strip_prefix("['").or_else(|| rest.strip_prefix("[\"")) {
            names.push(rest.chars().take_while(|c| !"'\"".contains(*c)).collect());
        }
    }
    names
}

/// A `when`.
pub(super) fn condition(text: &str, path: &Path, steps: &Steps, errors: &mut Errors) {
    let bare = text.trim();
    if let Some(inner) = bare.strip_prefix("${{").and_then(|t| t.strip_suffix("}}")) {
        return errors.invalid(
            path,
            text,
            format_args!("is an expression by itself; write {}", inner.trim()),
        );
    }
    match expr::check(text) {
        Ok(()) => steps.check(text, path, errors),
        Err(error) => errors.invalid(path, text, error),
    }
}

/// A text that may hold `${{ … }}`.
pub(super) fn template(text: &str, path: &Path, steps: &Steps, errors: &mut Errors) {
    match expr::Template::parse(text) {
        Ok(template) => template.expressions().for_each(|e| steps.check(e, path, errors)),
        Err(error) => errors.invalid(path, text, error),
    }
}
