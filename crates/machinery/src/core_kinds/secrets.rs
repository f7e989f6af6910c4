//! `secrets`.

use super::{Shape, columns, data, kind as core};
use crate::{
    kind::{Kind, Scope, Storage},
    typed::Rules,
};
use api::field::{Errors, Path};
use k8s_openapi::{ByteString, api::core::v1::Secret};

/// What a Secret is when it does not say.
const OPAQUE: &str = "Opaque";

/// Types with a fixed form: the keys of which all, or at least one, must be there.
const FORMS: [(&str, bool, &[&str]); 5] = [
    ("kubernetes.io/tls", true, &["tls.crt", "tls.key"]),
    ("kubernetes.io/ssh-auth", true, &["ssh-privatekey"]),
    ("kubernetes.io/basic-auth", false, &["username", "password"]),
    ("kubernetes.io/dockerconfigjson", true, &[".dockerconfigjson"]),
    ("kubernetes.io/dockercfg", true, &[".dockercfg"]),
];

struct Secrets;

impl Rules for Secrets {
    type Object = Secret;

    /// `stringData` is for writing only: it ends up in `data`.
    fn complete(&self, object: &mut Secret) {
        object.type_.get_or_insert_with(|| OPAQUE.into());
        if let Some(texts) = object.string_data.take() {
            let data = object.data.get_or_insert_default();
            data.extend(
                texts
                    .into_iter()
                    .map(|(key, text)| (key, ByteString(text.into_bytes()))),
            );
        }
    }

    fn validate(&self, object: &Secret) -> Errors {
        let mut errors = Errors::new();
        let path = Path::new("data");
        let keys = || object.data.iter().flat_map(|d| d.keys());
        for key in keys() {
            data::key(key, &path.key(key), &mut errors);
        }
        data::total(
            &path,
            object.data.iter().flat_map(|d| d.values()).map(|v| v.0.len()),
            &mut errors,
        );
        let type_ = object.type_.as_deref().unwrap_or_default();
        if let Some((_, all, wanted)) = FORMS.iter().find(|(name, ..)| *name == type_) {
            let missing = |key: &&&str| !keys().any(|k| k == **key);
            let gaps: Vec<_> = wanted.iter().filter(missing).collect();
            if *all {
                for key in gaps {
                    errors.required(
                        &path.key(key),
                        format_args!("a Secret of type {type_} must have it"),
                    );
                }
            } else if gaps.len() == wanted.len() {
                errors.required(
                    &path,
                    format_args!("a Secret of type {type_} needs {}", wanted.join(" or ")),
                );
            }
        }
        errors
    }

    fn validate_update(&self, new: &Secret, old: &Secret) -> Errors {
        let mut errors = Errors::new();
        data::immutable(
            (old.immutable, new.immutable),
            &[("data", old.data == new.data)],
            &mut errors,
        );
        if new.type_ != old.type_ {
            let hint = format!(
                "field is immutable; it is \"{}\"",
                old.type_.as_deref().unwrap_or_default()
            );
            errors.invalid(&Path::new("type"), new.type_.as_deref().unwrap_or_default(), hint);
        }
        errors
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

pub(super) fn kind() -> Kind {
    core(
        Secrets,
        Shape {
            plural: "secrets",
            short_names: &[],
            scope: Scope::Namespaced,
            columns: vec![
                columns::field("Type", "string", ".type", "What the data is for"),
                columns::computed("Data", "integer", "How many entries it has", |object, _| {
                    columns::count(object, &["data"])
                }),
                columns::age(),
            ],
            selectable: &["type"],
            status_subresource: false,
            storage: Storage::Durable,
        },
    )
}
