//! What a Job needs from its namespace: Secrets and ConfigMaps by name and key, and which of them are missing.

use crate::session::Session;
use anyhow::Result;
use api::{
    JobSpec,
    data::{EnvFrom, EnvVar},
};
use std::collections::{BTreeMap, BTreeSet};

/// A kind that holds values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl Holder {
    fn plural(self) -> &'static str {
        match self {
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
        }
    }
}

/// Objects that must be there, each with the keys that must be in it.
pub type Needs = BTreeMap<(Holder, String), BTreeSet<String>>;

/// What a Job needs; what it marks as optional, and names with an expression in them, are left out.
pub fn of(spec: &JobSpec) -> Needs {
    let mut needs = Needs::new();
    let mut need = |holder, name: &str, key: Option<&str>| {
        if !name.contains("${{") {
            needs
                .entry((holder, name.to_owned()))
                .or_default()
                .extend(key.map(str::to_owned));
        }
    };
    for param in &spec.params {
        if let Some(source) = &param.value_from {
            need(
                Holder::Secret,
                &source.secret_key_ref.name,
                Some(&source.secret_key_ref.key),
            );
        }
    }
    let env = |variables: &[EnvVar], from: &[EnvFrom], need: &mut dyn FnMut(Holder, &str, Option<&str>)| {
        for source in variables
            .iter()
            .filter_map(|variable| variable.value_from.as_ref())
        {
            for (holder, key) in [
                (Holder::Secret, &source.secret_key_ref),
                (Holder::ConfigMap, &source.config_map_key_ref),
            ] {
                if let Some(key) = key.as_ref().filter(|key| !key.optional) {
                    need(holder, &key.name, Some(&key.key));
                }
            }
        }
        for source in from {
            for (holder, object) in [
                (Holder::Secret, &source.secret_ref),
                (Holder::ConfigMap, &source.config_map_ref),
            ] {
                if let Some(object) = object.as_ref().filter(|object| !object.optional) {
                    need(holder, &object.name, None);
                }
            }
        }
    };
    env(&spec.env, &spec.env_from, &mut need);
    for (_, _, step) in spec.all_steps() {
        env(&step.env, &step.env_from, &mut need);
        if let Some(file) = &step.script_file
            && let Some(name) = &file.config_map
        {
            need(Holder::ConfigMap, name, Some(&file.path));
        }
        for mount in &step.mounts {
            for (holder, name) in [
                (Holder::Secret, &mount.secret),
                (Holder::ConfigMap, &mount.config_map),
            ] {
                if let Some(name) = name {
                    need(holder, name, None);
                }
            }
        }
    }
    needs
}

/// What of it is missing, in words.
pub async fn missing(session: &Session, namespace: &str, needs: &Needs) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for ((holder, name), keys) in needs {
        let object = session
            .find(&format!(
                "/api/v1/namespaces/{namespace}/{}/{name}",
                holder.plural()
            ))
            .await?;
        let Some(object) = object else {
            missing.push(format!(
                "{holder:?} {name} does not exist in namespace {namespace}"
            ));
            continue;
        };
        for key in keys {
            if object["data"].get(key).is_none() && object["binaryData"].get(key).is_none() {
                missing.push(format!("{holder:?} {name} has no key {key}"));
            }
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_references_are_found_and_optional_ones_are_not_needs() {
        let spec: JobSpec = serde_json::from_value(json!({
            "params": [{"name": "pw", "valueFrom": {"secretKeyRef": {"name": "p", "key": "k"}}}],
            "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "maybe", "optional": true}}],
            "steps": [{"name": "a", "scriptFile": {"configMap": "scripts", "path": "a.ps1"}, "mounts": [{"secret": "tls", "path": "tls"}], "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "p", "key": "k2"}}},
                {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": true}}},
                {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s-${{ node.name }}", "key": "k"}}},
            ]}],
        }))
        .unwrap();
        let needs = of(&spec);
        let names: Vec<_> = needs
            .keys()
            .map(|(holder, name)| format!("{holder:?} {name}"))
            .collect();
        assert_eq!(
            names,
            [
                "Secret p",
                "Secret tls",
                "ConfigMap scripts",
                "ConfigMap settings"
            ]
        );
        assert_eq!(
            needs[&(Holder::Secret, "p".into())],
            BTreeSet::from(["k".into(), "k2".into()])
        );
    }
}
