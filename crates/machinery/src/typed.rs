//! Strategies that go through a Rust type: JSON in, typed rules, JSON out.
//!
//! A kind brings [`Rules`]; [`Typed`] does the rest: strict decoding with hints, defaults, the checks its schema
//! states. [`kind`] makes the whole [`Kind`](crate::kind::Kind) of a type of ours out of its CRD.

mod crd;

pub use crd::kind;

use crate::{
    kind::{Context, Decoded, NameRule, Strategy},
    schema::{Schema, Step},
};
use api::field::{self, Errors, Kind as Mistake, Path};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// What is special about a typed kind.
pub trait Rules: Send + Sync + 'static {
    /// The type objects are decoded into.
    type Object: Serialize + DeserializeOwned;

    /// Fills in defaults that the type's own decoding does not.
    fn complete(&self, _object: &mut Self::Object) {}
    /// Resets what clients may not set on a new object, stamps who asked.
    fn prepare_create(&self, _object: &mut Self::Object, _context: &Context<'_>) {}
    /// Keeps what clients may not change.
    fn prepare_update(&self, _new: &mut Self::Object, _old: &Self::Object, _context: &Context<'_>) {}
    /// Keeps all that a write through a subresource may not change.
    fn prepare_subresource(
        &self,
        _subresource: &str,
        _new: &mut Self::Object,
        _old: &Self::Object,
        _context: &Context<'_>,
    ) {
    }
    /// All mistakes that the schema does not find.
    fn validate(&self, _object: &Self::Object) -> Errors {
        Errors::new()
    }
    /// All mistakes in how it changed.
    fn validate_update(&self, _new: &Self::Object, _old: &Self::Object) -> Errors {
        Errors::new()
    }
    /// All mistakes in how its status changed.
    fn validate_status(&self, _new: &Self::Object, _old: &Self::Object) -> Errors {
        Errors::new()
    }
    /// What the user should know though it is no mistake.
    fn warnings(&self, _object: &Self::Object) -> Vec<String> {
        Vec::new()
    }
    /// See [`Strategy::name_rule`].
    fn name_rule(&self) -> NameRule {
        NameRule::Subdomain
    }
    /// See [`Strategy::subresources`].
    fn subresources(&self) -> &'static [&'static str] {
        &[]
    }
    /// See [`Strategy::strategic_merge`].
    fn strategic_merge(&self) -> bool {
        false
    }
}

/// The strategy of a typed kind.
pub struct Typed<R> {
    rules: R,
    schema: Schema,
}

impl<R: Rules> Typed<R> {
    /// Rules and the schema of the whole object.
    pub fn new(rules: R, schema: Schema) -> Self {
        Self { rules, schema }
    }

    fn read(&self, object: &Value) -> Result<R::Object, field::Error> {
        R::Object::deserialize(object).map_err(|e| self.explain(object, &e))
    }

    /// Runs `f` on the typed objects and collects what it finds; what cannot be decoded is the only mistake then.
    fn check(&self, objects: &[&Value], f: impl FnOnce(&[R::Object]) -> Errors) -> Errors {
        match objects
            .iter()
            .map(|o| self.read(o))
            .collect::<Result<Vec<_>, _>>()
        {
            Ok(typed) => f(&typed),
            Err(error) => {
                let mut errors = Errors::new();
                errors.add(error);
                errors
            }
        }
    }

    /// Changes `object` through its type. Preparation runs on decoded objects only; were it to fail, validation,
    /// which follows, says why.
    fn change(&self, object: &mut Value, f: impl FnOnce(&mut R::Object)) {
        if let Ok(mut typed) = self.read(object) {
            f(&mut typed);
            if let Ok(value) = serde_json::to_value(typed) {
                *object = value;
            }
        }
    }

    /// Why the object does not decode: what the schema finds at the place where decoding stopped, else serde's words.
    fn explain(&self, object: &Value, error: &serde_json::Error) -> field::Error {
        let path = match serde_path_to_error::deserialize::<_, R::Object>(object) {
            Err(error) => self
                .schema
                .path_of(&error.path().iter().filter_map(step).collect::<Vec<_>>()),
            Ok(_) => Path::default(),
        };
        let decoding = [Mistake::TypeInvalid, Mistake::Required, Mistake::NotSupported];
        let here = |e: &field::Error| {
            let rest = e.path.as_str().strip_prefix(path.as_str());
            path == Path::default() || rest.is_some_and(|r| r.is_empty() || r.starts_with(['.', '[']))
        };
        let found = self.schema.check(object).into_vec().into_iter();
        found
            .into_iter()
            .find(|e| decoding.contains(&e.kind) && here(e))
            .unwrap_or_else(|| field::Error {
                path,
                kind: Mistake::TypeInvalid,
                message: format!("Invalid value: {error}"),
            })
    }

    /// `spec.steps[1].shel: unknown field, did you mean "shell"?`
    fn unknown(&self, place: &serde_ignored::Path<'_>) -> Option<String> {
        let mut steps = Vec::new();
        steps_of(place, &mut steps);
        let Some(Step::Field(name)) = steps.last() else {
            return None;
        };
        if steps.len() == 1 && (name == "apiVersion" || name == "kind") {
            return None;
        }
        let candidates = self.schema.fields_at(&steps[..steps.len() - 1]);
        let hint = field::nearest(name, candidates).map(|n| format!(", did you mean \"{n}\"?"));
        Some(format!(
            "{}: unknown field{}",
            self.schema.path_of(&steps),
            hint.unwrap_or_default()
        ))
    }
}

impl<R: Rules> Strategy for Typed<R> {
    fn decode(&self, mut object: Value) -> Result<Decoded, field::Error> {
        if let Some(object) = object.as_object_mut() {
            object.entry("metadata").or_insert_with(|| Map::new().into());
        }
        let mut unknown = Vec::new();
        let decoded: Result<R::Object, _> =
            serde_ignored::deserialize(&object, |place| unknown.extend(self.unknown(&place)));
        let mut typed = decoded.map_err(|e| self.explain(&object, &e))?;
        self.rules.complete(&mut typed);
        let object = serde_json::to_value(typed).map_err(|e| field::Error {
            path: Path::default(),
            kind: Mistake::Invalid,
            message: format!("Invalid value: {e}"),
        })?;
        Ok(Decoded { object, unknown })
    }

    fn prepare_create(&self, object: &mut Value, context: &Context<'_>) {
        self.change(object, |o| self.rules.prepare_create(o, context));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, context: &Context<'_>) {
        if let Ok(old) = self.read(old) {
            self.change(new, |new| self.rules.prepare_update(new, &old, context));
        }
    }

    fn prepare_subresource(&self, subresource: &str, new: &mut Value, old: &Value, context: &Context<'_>) {
        if let Ok(old) = self.read(old) {
            self.change(new, |new| {
                self.rules.prepare_subresource(subresource, new, &old, context)
            });
        }
    }

    fn validate_create(&self, object: &Value) -> Errors {
        let mut errors = self.schema.check(object);
        errors.extend(self.check(&[object], |typed| self.rules.validate(&typed[0])));
        errors
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.schema.check(new);
        errors.extend(self.check(&[new, old], |typed| {
            let mut errors = self.rules.validate(&typed[0]);
            errors.extend(self.rules.validate_update(&typed[0], &typed[1]));
            errors
        }));
        errors
    }

    fn validate_status(&self, new: &Value, old: &Value) -> Errors {
        let mut errors = self.schema.check_field(new, "status");
        errors.extend(self.check(&[new, old], |typed| {
            self.rules.validate_status(&typed[0], &typed[1])
        }));
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        self.read(object)
            .map(|o| self.rules.warnings(&o))
            .unwrap_or_default()
    }

    fn name_rule(&self) -> NameRule {
        self.rules.name_rule()
    }

    fn subresources(&self) -> &'static [&'static str] {
        self.rules.subresources()
    }

    fn strategic_merge(&self) -> bool {
        self.rules.strategic_merge()
    }
}

fn step(segment: &serde_path_to_error::Segment) -> Option<Step> {
    match segment {
        serde_path_to_error::Segment::Seq { index } => Some(Step::Item(*index)),
        serde_path_to_error::Segment::Map { key } => Some(Step::Field(key.clone())),
        _ => None,
    }
}

fn steps_of(place: &serde_ignored::Path<'_>, steps: &mut Vec<Step>) {
    use serde_ignored::Path::*;
    match place {
        Root => {}
        Seq { parent, index } => {
            steps_of(parent, steps);
            steps.push(Step::Item(*index));
        }
        Map { parent, key } => {
            steps_of(parent, steps);
            steps.push(Step::Field(key.clone()));
        }
        Some { parent } | NewtypeStruct { parent } | NewtypeVariant { parent } => steps_of(parent, steps),
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod tests_support;
