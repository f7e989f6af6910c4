//! The rules that the data of Secrets and ConfigMaps share.

use api::field::{Errors, Path};

/// All values of an object together, in bytes, as in Kubernetes.
pub(super) const LIMIT: usize = 1024 * 1024;

/// A key must be usable as the name of a file.
pub(super) fn key(key: &str, path: &Path, errors: &mut Errors) {
    let word = key
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    if key.is_empty() || key.len() > 253 || !word || key == "." || key.starts_with("..") {
        let hint = "must be letters, digits, '-', '_' and '.', at most 253 of them, and not begin with '..'; it becomes a file name";
        errors.invalid(path, key, hint);
    }
}

/// The sum of all sizes is bounded.
pub(super) fn total(path: &Path, sizes: impl Iterator<Item = usize>, errors: &mut Errors) {
    let total = sizes.sum();
    if total > LIMIT {
        errors.too_long(path, total, LIMIT, "split it over several objects");
    }
}

/// An object once marked immutable stays so, with all its data. `fields` says which of them are the same as before.
pub(super) fn immutable(
    (old, new): (Option<bool>, Option<bool>),
    fields: &[(&str, bool)],
    errors: &mut Errors,
) {
    if old != Some(true) {
        return;
    }
    let hint = "field is immutable when `immutable` is set; delete the object and create it anew";
    if new != Some(true) {
        errors.forbidden(&Path::new("immutable"), hint);
    }
    for (field, _) in fields.iter().filter(|(_, same)| !same) {
        errors.forbidden(&Path::new(field), hint);
    }
}
