//! Secrets and ConfigMaps of a step: which it needs, and what the agent sent. Held in memory only.

use crate::local::{Value, Values, Wanted, WantedKind};
use api::{JobSpec, data::KeyRef, step::Step};
use std::collections::BTreeMap;

/// What was fetched for a step.
#[derive(Default)]
pub(super) struct Fetched {
    pub secrets: Values,
    pub config_maps: Values,
}

impl Fetched {
    /// A key of an object; `None` where it, or the object, is not there.
    pub fn key(&self, kind: WantedKind, name: &str, key: &str) -> Option<&Value> {
        self.object(kind, name)?.get(key)
    }

    /// All keys of an object.
    pub fn object(&self, kind: WantedKind, name: &str) -> Option<&BTreeMap<String, Value>> {
        match kind {
            WantedKind::Secret => self.secrets.get(name),
            WantedKind::ConfigMap => self.config_maps.get(name),
        }
    }
}

/// The reason for the end of a step that cannot have one of these.
pub(super) fn unavailable(kind: WantedKind) -> &'static str {
    match kind {
        WantedKind::Secret => "SecretUnavailable",
        WantedKind::ConfigMap => "ConfigMapUnavailable",
    }
}

/// What a step needs of one kind, each object once.
pub(super) fn wanted(spec: &JobSpec, step: &Step, kind: WantedKind) -> Vec<Wanted> {
    let uses = uses(spec, step).into_iter().filter(|u| u.kind == kind);
    let mut found: BTreeMap<String, Wanted> = BTreeMap::new();
    for a_use in uses {
        let wanted = found.entry(a_use.name.to_owned()).or_insert_with(|| Wanted {
            kind,
            name: a_use.name.to_owned(),
            optional: true,
            keys: Vec::new(),
        });
        wanted.optional &= a_use.optional;
        if let Some(key) = a_use.key.filter(|_| !a_use.optional)
            && !wanted.keys.iter().any(|k| k == key)
        {
            wanted.keys.push(key.to_owned());
        }
    }
    found.into_values().collect()
}

/// The secret values a step gets to see: what its output must be masked with.
pub(super) fn secrets_seen<'a>(spec: &JobSpec, step: &Step, fetched: &'a Fetched) -> Vec<&'a [u8]> {
    let uses = uses(spec, step);
    let secrets = uses.iter().filter(|u| u.kind == WantedKind::Secret);
    secrets
        .flat_map(|u| {
            let object = fetched.secrets.get(u.name).into_iter().flatten();
            object.filter(|(key, _)| u.key.is_none_or(|k| k == key.as_str()))
        })
        .map(|(_, value)| value.reveal())
        .collect()
}

/// One place where a step uses a Secret or ConfigMap.
struct Use<'a> {
    kind: WantedKind,
    name: &'a str,
    /// `None`: all keys.
    key: Option<&'a str>,
    optional: bool,
}

fn uses<'a>(spec: &'a JobSpec, step: &'a Step) -> Vec<Use<'a>> {
    let of_key = |kind, key: &'a KeyRef| Use {
        kind,
        name: &key.name,
        key: Some(&key.key),
        optional: key.optional,
    };
    let mut found = Vec::new();
    let params = spec.params.iter().filter_map(|p| p.value_from.as_ref());
    found.extend(params.map(|f| of_key(WantedKind::Secret, &f.secret_key_ref)));
    for source in spec
        .env
        .iter()
        .chain(&step.env)
        .filter_map(|v| v.value_from.as_ref())
    {
        found.extend(
            source
                .secret_key_ref
                .iter()
                .map(|k| of_key(WantedKind::Secret, k)),
        );
        found.extend(
            source
                .config_map_key_ref
                .iter()
                .map(|k| of_key(WantedKind::ConfigMap, k)),
        );
    }
    for source in spec.env_from.iter().chain(&step.env_from) {
        let objects = [
            (WantedKind::Secret, &source.secret_ref),
            (WantedKind::ConfigMap, &source.config_map_ref),
        ];
        found.extend(objects.into_iter().filter_map(|(kind, object)| {
            let object = object.as_ref()?;
            Some(Use {
                kind,
                name: &object.name,
                key: None,
                optional: object.optional,
            })
        }));
    }
    if let Some(file) = &step.script_file
        && let Some(name) = &file.config_map
    {
        found.push(Use {
            kind: WantedKind::ConfigMap,
            name,
            key: Some(&file.path),
            optional: false,
        });
    }
    for mount in &step.mounts {
        let objects = [
            (WantedKind::Secret, &mount.secret),
            (WantedKind::ConfigMap, &mount.config_map),
        ];
        found.extend(objects.into_iter().filter_map(|(kind, name)| {
            Some(Use {
                kind,
                name: name.as_deref()?,
                key: None,
                optional: false,
            })
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_asked_for_once_and_must_be_there_if_any_use_says_so() {
        let step: Step = serde_json::from_value(serde_json::json!({
            "name": "s",
            "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "a", "optional": true}}},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "db", "key": "b"}}},
                {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "web", "key": "c"}}},
            ],
            "envFrom": [{"secretRef": {"name": "more", "optional": true}}],
            "mounts": [{"secret": "db", "path": "x"}],
        }))
        .unwrap();
        let of = |kind| wanted(&JobSpec::default(), &step, kind);
        let secret = |name: &str, optional, keys: &[&str]| Wanted {
            kind: WantedKind::Secret,
            name: name.into(),
            optional,
            keys: keys.iter().map(|k| (*k).to_owned()).collect(),
        };
        assert_eq!(
            of(WantedKind::Secret),
            [secret("db", false, &["b"]), secret("more", true, &[])]
        );
        assert_eq!(of(WantedKind::ConfigMap).len(), 1);
    }

    #[test]
    fn only_what_a_step_uses_is_masked() {
        let step: Step = serde_json::from_value(serde_json::json!({
            "name": "s",
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
        }))
        .unwrap();
        let data = [("user", "admin"), ("password", "p")].map(|(k, v)| (k.to_owned(), Value::new(v.into())));
        let fetched = Fetched {
            secrets: [("db".to_owned(), data.into())].into(),
            ..Fetched::default()
        };
        assert_eq!(secrets_seen(&JobSpec::default(), &step, &fetched), [b"p"]);
    }
}
