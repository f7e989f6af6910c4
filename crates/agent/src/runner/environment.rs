//! The environment of a step, and texts that draw on it.
//!
//! Later wins: the host's, params, the Job's envFrom and env, the step's envFrom and env, and last what is always set (`PROW_…`, `CI`).
//! In values `$(NAME)` stands for a variable set before, in commands and arguments for any; once, as in Kubernetes: `$$` is a dollar
//! sign, an unknown name stays as it is. `${{ … }}` is evaluated first, and what it gives is not expanded again.

use super::values::{Fetched, unavailable};
use crate::{local::WantedKind, platform};
use api::{
    data::{EnvFrom, EnvVar, Param},
    expr::{Scope, Template},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
};

/// Why a step cannot have its environment: a reason and a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unusable {
    pub reason: &'static str,
    pub message: String,
}

fn start_failed(message: String) -> Unusable {
    Unusable {
        reason: "StartFailed",
        message,
    }
}

/// Which values are at hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrets {
    /// All.
    With,
    /// Not yet: variables that need a secret are left out.
    Without,
}

/// A step's variables while they are put together.
pub(super) struct Environment<'a> {
    vars: BTreeMap<String, OsString>,
    /// Names whose value holds a secret.
    secret: BTreeSet<String>,
    fetched: &'a Fetched,
    secrets: Secrets,
    fields: &'a BTreeMap<&'static str, String>,
    scope: &'a Scope,
}

impl<'a> Environment<'a> {
    /// Begins with the host's variables. `fields` are those that `fieldRef` may name.
    pub fn new(
        base: BTreeMap<String, OsString>,
        fetched: &'a Fetched,
        secrets: Secrets,
        fields: &'a BTreeMap<&'static str, String>,
        scope: &'a Scope,
    ) -> Self {
        Self {
            vars: base,
            secret: BTreeSet::new(),
            fetched,
            secrets,
            fields,
            scope,
        }
    }

    pub fn params(&mut self, params: &[Param]) -> Result<(), Unusable> {
        for param in params {
            let name = format!("PROW_PARAM_{}", param.name.to_uppercase().replace('-', "_"));
            match &param.value_from {
                Some(from) => {
                    let key = &from.secret_key_ref;
                    self.key(&name, WantedKind::Secret, &key.name, &key.key, key.optional)?;
                }
                None => self.set(&name, param.value.clone().unwrap_or_default().into(), false),
            }
        }
        Ok(())
    }

    pub fn from(&mut self, sources: &[EnvFrom]) -> Result<(), Unusable> {
        for source in sources {
            for (kind, object) in [
                (WantedKind::Secret, &source.secret_ref),
                (WantedKind::ConfigMap, &source.config_map_ref),
            ] {
                let Some(object) = object else { continue };
                if kind == WantedKind::Secret && self.secrets == Secrets::Without {
                    continue;
                }
                match self.fetched.object(kind, &object.name) {
                    Some(data) => {
                        for (key, value) in data {
                            let name = format!("{}{key}", source.prefix);
                            self.bytes(&name, kind, value.reveal())?;
                        }
                    }
                    None if object.optional => {}
                    None => return Err(missing(kind, &object.name, None)),
                }
            }
        }
        Ok(())
    }

    pub fn variables(&mut self, variables: &[EnvVar]) -> Result<(), Unusable> {
        for variable in variables {
            let name = &variable.name;
            let Some(source) = &variable.value_from else {
                let text = variable.value.as_deref().unwrap_or_default();
                let (value, secret) = self
                    .render(text)
                    .map_err(|e| start_failed(format!("env {name}: {e}")))?;
                self.set(name, value, secret);
                continue;
            };
            if let Some(key) = &source.secret_key_ref {
                self.key(name, WantedKind::Secret, &key.name, &key.key, key.optional)?;
            } else if let Some(key) = &source.config_map_key_ref {
                self.key(name, WantedKind::ConfigMap, &key.name, &key.key, key.optional)?;
            } else if let Some(field) = &source.field_ref {
                let path = field.field_path.as_str();
                let value = self.fields.get(path);
                let value = value.ok_or_else(|| start_failed(format!("env {name}: unknown field {path}")))?;
                self.set(name, value.into(), false);
            } else {
                return Err(start_failed(format!("env {name}: storeRef is not supported yet")));
            }
        }
        Ok(())
    }

    /// Sets what users cannot.
    pub fn always(&mut self, vars: impl IntoIterator<Item = (&'static str, OsString)>) {
        for (name, value) in vars {
            self.set(name, value, false);
        }
    }

    /// A command's word or argument, which other processes of the host can read: a secret in it is an error.
    pub fn argument(&self, text: &str) -> Result<OsString, String> {
        match self.render(text)? {
            (value, false) => Ok(value),
            (_, true) => Err(format!(
                "\"{text}\" would put a secret on a command line, which every process of the host can read; let the program read the variable"
            )),
        }
    }

    pub fn path(&self) -> Option<&OsStr> {
        self.get("PATH").map(|(_, value)| value.as_os_str())
    }

    /// A variable by its name, which on Windows may be written in another case.
    fn get(&self, name: &str) -> Option<(&String, &OsString)> {
        let same = || self.vars.iter().find(|(n, _)| platform::same_variable(n, name));
        self.vars.get_key_value(name).or_else(same)
    }

    /// The variables.
    pub fn into_vars(self) -> BTreeMap<String, OsString> {
        self.vars
    }

    fn key(
        &mut self,
        name: &str,
        kind: WantedKind,
        object: &str,
        key: &str,
        optional: bool,
    ) -> Result<(), Unusable> {
        if kind == WantedKind::Secret && self.secrets == Secrets::Without {
            return Ok(());
        }
        match self.fetched.key(kind, object, key) {
            Some(value) => self.bytes(name, kind, value.reveal()),
            None if optional => Ok(()),
            None => Err(missing(kind, object, Some(key))),
        }
    }

    fn bytes(&mut self, name: &str, kind: WantedKind, bytes: &[u8]) -> Result<(), Unusable> {
        let value = platform::variable(bytes).ok_or_else(|| {
            start_failed(format!(
                "env {name}: the value holds bytes no variable can; mount it as a file"
            ))
        })?;
        self.set(name, value, kind == WantedKind::Secret);
        Ok(())
    }

    /// The last one to set a variable also says how its name is written.
    fn set(&mut self, name: &str, value: OsString, secret: bool) {
        self.vars.retain(|n, _| !platform::same_variable(n, name));
        self.secret.retain(|n| !platform::same_variable(n, name));
        self.vars.insert(name.to_owned(), value);
        if secret {
            self.secret.insert(name.to_owned());
        }
    }

    /// The text with values in place, and whether a secret is among them.
    fn render(&self, text: &str) -> Result<(OsString, bool), String> {
        let template = Template::parse(text).map_err(|e| format!("{text}: {e}"))?;
        let mut value = OsString::new();
        let mut secret = false;
        template
            .render_parts(self.scope, |part, evaluated| {
                if evaluated {
                    value.push(part);
                } else {
                    secret |= self.expand(part, &mut value);
                }
            })
            .map_err(|e| format!("{text}: {e}"))?;
        Ok((value, secret))
    }

    /// Appends `text` with `$(NAME)` replaced; tells whether a secret was put in.
    fn expand(&self, text: &str, out: &mut OsString) -> bool {
        let mut secret = false;
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some(tail) = after.strip_prefix('$') {
                out.push("$");
                rest = tail;
                continue;
            }
            let name = after.strip_prefix('(').and_then(|a| Some(&a[..a.find(')')?]));
            match name.and_then(|name| self.get(name)) {
                Some((name, value)) => {
                    out.push(value);
                    secret |= self.secret.contains(name);
                    rest = &after[name.len() + 2..];
                }
                None => {
                    out.push("$");
                    rest = after;
                }
            }
        }
        out.push(rest);
        secret
    }
}

fn missing(kind: WantedKind, object: &str, key: Option<&str>) -> Unusable {
    let what = match kind {
        WantedKind::Secret => "Secret",
        WantedKind::ConfigMap => "ConfigMap",
    };
    let key = key.map(|k| format!(" has no key \"{k}\""));
    Unusable {
        reason: unavailable(kind),
        message: format!(
            "{what} \"{object}\"{}",
            key.as_deref().unwrap_or(" does not exist")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::{Value, Values};
    use serde_json::json;

    fn fetched() -> Fetched {
        let of = |key: &str, value: &str| [(key.to_owned(), Value::new(value.into()))].into();
        Fetched {
            secrets: Values::from([("db".to_owned(), of("password", "p$$w"))]),
            config_maps: Values::from([("web".to_owned(), of("color", "blue"))]),
        }
    }

    fn with<T>(
        variables: serde_json::Value,
        secrets: Secrets,
        ask: impl FnOnce(Result<(), Unusable>, Environment) -> T,
    ) -> T {
        let fetched = fetched();
        let fields = BTreeMap::from([("metadata.name", "t1".to_owned())]);
        let mut scope = Scope::new();
        scope.set("params", json!({"v": "$(HOME) $$"}));
        let base = BTreeMap::from([("HOME".to_owned(), "/root".into())]);
        let mut env = Environment::new(base, &fetched, secrets, &fields, &scope);
        let variables: Vec<EnvVar> = serde_json::from_value(variables).unwrap();
        let result = env.variables(&variables);
        ask(result, env)
    }

    fn value(variables: serde_json::Value, name: &str) -> Option<String> {
        with(variables, Secrets::With, |result, env| {
            assert_eq!(result, Ok(()));
            env.into_vars().remove(name)?.into_string().ok()
        })
    }

    #[test]
    fn references_are_expanded_once_and_only_in_what_the_author_wrote() {
        let a = |text: &str| {
            value(
                json!([{"name": "X", "value": "1"}, {"name": "A", "value": text}]),
                "A",
            )
            .unwrap()
        };
        assert_eq!(
            a("$(HOME)/$(X)/$(UNKNOWN) $$(X) $X $"),
            "/root/1/$(UNKNOWN) $(X) $X $"
        );
        assert_eq!(
            a("${{ params.v }}|$(X)"),
            "$(HOME) $$|1",
            "a value is data, not text to expand"
        );
    }

    #[test]
    fn values_come_from_secrets_config_maps_and_fields() {
        let env = json!([
            {"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
            {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "web", "key": "color"}}},
            {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "O", "valueFrom": {"secretKeyRef": {"name": "none", "key": "x", "optional": true}}},
        ]);
        for (name, expected) in [
            ("P", Some("p$$w")),
            ("C", Some("blue")),
            ("N", Some("t1")),
            ("O", None),
        ] {
            assert_eq!(value(env.clone(), name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn one_variable_stays_one_however_its_name_is_written() {
        let secret = json!({"secretKeyRef": {"name": "db", "key": "password"}});
        let env = json!([{"name": "Path", "value": "old"}, {"name": "PATH", "valueFrom": secret}]);
        with(env, Secrets::With, |_, env| {
            assert_eq!(env.path(), Some(OsStr::new("p$$w")));
            assert_eq!(
                env.argument("$(Path)").is_err(),
                cfg!(windows),
                "it is the secret one there"
            );
            let vars = env.into_vars();
            let names = vars.keys().filter(|n| n.eq_ignore_ascii_case("path"));
            assert_eq!(names.count(), if cfg!(windows) { 1 } else { 2 });
        });
    }

    #[test]
    fn a_missing_secret_is_named() {
        let env = json!([{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "nope"}}}]);
        let error = with(env.clone(), Secrets::With, |result, _| result).unwrap_err();
        assert_eq!(error.reason, "SecretUnavailable");
        assert_eq!(error.message, "Secret \"db\" has no key \"nope\"");
        with(env, Secrets::Without, |result, _| assert_eq!(result, Ok(())));
    }

    /// SE-06.
    #[test]
    fn a_secret_never_gets_onto_a_command_line() {
        let env = json!([
            {"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}},
            {"name": "URL", "value": "db://u:$(P)@host"},
            {"name": "P2", "value": "$(HOME)"},
        ]);
        with(env, Secrets::With, |_, env| {
            assert!(env.argument("--token=$(P)").is_err());
            assert!(env.argument("$(URL)").is_err(), "also by way of another variable");
            assert_eq!(env.argument("$(P2)").unwrap(), "/root");
            assert_eq!(env.argument("$$(P)").unwrap(), "$(P)");
        });
    }
}
