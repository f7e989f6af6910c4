//! Validation errors that name the field: Kubernetes' `field.Error`, with a hint.
//!
//! A validator walks the object with a [`Path`] and pushes what it finds into [`Errors`]; nothing stops at the
//! first mistake, so a user sees all of them at once.

use std::fmt;

/// Where in an object something is, written as Kubernetes writes it: `spec.steps[1].shell`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(String);

impl Path {
    /// A path that starts at the named top-level field.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The field `name` below this one.
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() {
            Self::new(name)
        } else {
            Self(format!("{}.{name}", self.0))
        }
    }

    /// Element `i` of this list.
    pub fn index(&self, i: usize) -> Self {
        Self(format!("{}[{i}]", self.0))
    }

    /// The entry `key` of this map.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What kind of mistake it is; the names are the `reason`s of a Kubernetes status cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The field must be there and is not.
    Required,
    /// The value has a wrong form or value.
    Invalid,
    /// The value is none of the ones that are allowed.
    NotSupported,
    /// Two entries have the same key.
    Duplicate,
    /// The value would be right, but may not be set here or now.
    Forbidden,
    /// The value is longer than its limit in bytes.
    TooLong,
    /// The list or map has more entries than its limit.
    TooMany,
    /// The value has a wrong JSON type.
    TypeInvalid,
}

impl Kind {
    /// The `reason` of a status cause.
    pub fn reason(self) -> &'static str {
        match self {
            Kind::Required => "FieldValueRequired",
            Kind::Invalid | Kind::TooLong | Kind::TooMany => "FieldValueInvalid",
            Kind::NotSupported => "FieldValueNotSupported",
            Kind::Duplicate => "FieldValueDuplicate",
            Kind::Forbidden => "FieldValueForbidden",
            Kind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where it is.
    pub path: Path,
    /// What kind of mistake it is.
    pub kind: Kind,
    /// What is wrong and what to do, without the path: `Invalid value: "x": must be …`.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// All mistakes found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Errors(Vec<Error>);

impl Errors {
    /// No mistake yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, path: &Path, kind: Kind, message: String) {
        self.0.push(Error {
            path: path.clone(),
            kind,
            message,
        });
    }

    /// The field is missing; `hint` says what it is for or what to write.
    pub fn required(&mut self, path: &Path, hint: impl fmt::Display) {
        self.push(path, Kind::Required, format!("Required value: {hint}"));
    }

    /// The value is wrong; `hint` says what it must be.
    pub fn invalid(&mut self, path: &Path, value: impl fmt::Display, hint: impl fmt::Display) {
        self.push(
            path,
            Kind::Invalid,
            format!("Invalid value: \"{}\": {hint}", shorten(&value.to_string())),
        );
    }

    /// The value is none of the allowed ones; a near miss is suggested.
    pub fn not_supported(&mut self, path: &Path, value: &str, allowed: &[&str]) {
        let list = allowed
            .iter()
            .map(|a| format!("\"{a}\""))
            .collect::<Vec<_>>()
            .join(", ");
        let hint = nearest(value, allowed.iter().copied())
            .map(|n| format!(", did you mean \"{n}\"?"))
            .unwrap_or_default();
        self.push(
            path,
            Kind::NotSupported,
            format!(
                "Unsupported value: \"{}\": supported values: {list}{hint}",
                shorten(value)
            ),
        );
    }

    /// The same key was used before.
    pub fn duplicate(&mut self, path: &Path, value: impl fmt::Display) {
        self.push(
            path,
            Kind::Duplicate,
            format!("Duplicate value: \"{}\"", shorten(&value.to_string())),
        );
    }

    /// The field may not be set (or changed); `hint` says why and what to do instead.
    pub fn forbidden(&mut self, path: &Path, hint: impl fmt::Display) {
        self.push(path, Kind::Forbidden, format!("Forbidden: {hint}"));
    }

    /// The value has more bytes than `limit`; `hint` says what to do instead, or is empty.
    pub fn too_long(&mut self, path: &Path, length: usize, limit: usize, hint: &str) {
        let hint = if hint.is_empty() {
            String::new()
        } else {
            format!("; {hint}")
        };
        self.push(
            path,
            Kind::TooLong,
            format!("Too long: {length} bytes, may not be more than {limit}{hint}"),
        );
    }

    /// The list or map has more entries than `limit`.
    pub fn too_many(&mut self, path: &Path, count: usize, limit: usize) {
        self.push(
            path,
            Kind::TooMany,
            format!("Too many: {count}: must have at most {limit} items"),
        );
    }

    /// A feature that exists in the API but not in this version; never silently ignored.
    pub fn not_supported_yet(&mut self, path: &Path) {
        self.forbidden(
            path,
            "not supported yet: this version would ignore it; remove the field",
        );
    }

    /// Adds one mistake.
    pub fn add(&mut self, error: Error) {
        self.0.push(error);
    }

    /// Adds what another validator found.
    pub fn extend(&mut self, other: Errors) {
        self.0.extend(other.0);
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mistakes in the order they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Error> {
        self.0.iter()
    }

    /// The mistakes, by value.
    pub fn into_vec(self) -> Vec<Error> {
        self.0
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "{one}"),
            all => write!(
                f,
                "[{}]",
                all.iter().map(Error::to_string).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

/// The candidate a misspelt word was most likely meant to be, if one is near enough to be worth saying.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word, &c.to_lowercase()), c))
        .filter(|(distance, c)| *distance <= 2 && *distance * 2 < c.len().max(2))
        .min()
        .map(|(_, c)| c)
}

/// Values in messages are cut at 200 characters: a 64 KiB script in an error helps nobody.
fn shorten(value: &str) -> String {
    match value.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
