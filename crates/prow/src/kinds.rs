//! The kinds a server serves, from its discovery, and the many names people have for them.

use crate::{
    outcome::usage,
    session::{Session, request},
};
use anyhow::{Context, Result};
use http::Method;
use serde_json::Value;

/// A kind of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// `Job`.
    pub kind: String,
    /// `jobs`.
    pub plural: String,
    /// `job`.
    pub singular: String,
    /// `pj`.
    pub short: Vec<String>,
    /// `all`, `prow`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether it can be listed.
    pub listable: bool,
}

impl Kind {
    /// `v1` or `prow.windows/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `configmap` or `job.prow.windows`: how objects of the kind are named in results.
    pub fn qualified(&self) -> String {
        let singular = if self.singular.is_empty() {
            self.kind.to_lowercase()
        } else {
            self.singular.clone()
        };
        if self.group.is_empty() {
            singular
        } else {
            format!("{singular}.{}", self.group)
        }
    }

    /// Path of the collection; all namespaces where none is given.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            "/api".to_owned()
        } else {
            format!("/apis/{}", self.group)
        };
        match namespace.filter(|_| self.namespaced) {
            Some(ns) => format!("{root}/{}/namespaces/{ns}/{}", self.version, self.plural),
            None => format!("{root}/{}/{}", self.version, self.plural),
        }
    }

    /// Path of one object.
    pub fn object_path(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.path(Some(namespace)))
    }

    /// Whether `name` means this kind: plural, singular, short name or kind, alone or with version and group.
    fn is_called(&self, name: &str) -> bool {
        let (word, rest) = name
            .split_once('.')
            .map_or((name, None), |(word, rest)| (word, Some(rest)));
        let word = word.to_lowercase();
        let known = word == self.plural
            || word == self.singular
            || word == self.kind.to_lowercase()
            || self.short.contains(&word);
        known
            && rest.is_none_or(|rest| {
                rest == self.group
                    || rest == self.version && self.group.is_empty()
                    || rest == format!("{}.{}", self.version, self.group)
            })
    }
}

/// All kinds of a server.
pub struct Kinds(Vec<Kind>);

const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;q=0.5";

impl Kinds {
    /// Asks the server.
    pub async fn discover(session: &Session) -> Result<Self> {
        let ask = async |path| {
            session
                .json(request(Method::GET, path, AGGREGATED, Vec::new())?)
                .await
        };
        let (core, groups) = tokio::try_join!(ask("/api"), ask("/apis"))?;
        let mut kinds = parse(&core);
        kinds.extend(parse(&groups));
        // on a cluster that has other kinds of these names, ours are meant
        kinds.sort_by_key(|kind| kind.group != api::GROUP);
        anyhow::ensure!(
            !kinds.is_empty(),
            "{} lists no kinds: it does not speak apidiscovery.k8s.io/v2",
            session.server
        );
        Ok(Self(kinds))
    }

    /// The kind people call `name`.
    pub fn named(&self, name: &str) -> Result<&Kind> {
        self.0.iter().find(|kind| kind.is_called(name)).ok_or_else(|| {
            crate::outcome::Error::Refused(Box::new(
                kube::core::Status::failure(
                    &format!("the server doesn't have a resource type \"{name}\""),
                    "NotFound",
                )
                .with_code(404),
            ))
            .into()
        })
    }

    /// The kinds meant by `jobs,nodes` or a category such as `prow`.
    pub fn listed(&self, names: &str) -> Result<Vec<&Kind>> {
        let mut found = Vec::new();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let category: Vec<&Kind> = self
                .0
                .iter()
                .filter(|kind| kind.listable && kind.categories.iter().any(|c| c == name))
                .collect();
            if category.is_empty() {
                found.push(self.named(name)?);
            } else {
                found.extend(category);
            }
        }
        if found.is_empty() {
            return Err(usage("name a kind, such as jobs or nodes"));
        }
        Ok(found)
    }

    /// The kind of a manifest.
    pub fn of(&self, object: &Value) -> Result<&Kind> {
        let api_version = object["apiVersion"].as_str().context("has no apiVersion")?;
        let kind = object["kind"].as_str().context("has no kind")?;
        self.0
            .iter()
            .find(|k| k.kind == kind && k.api_version() == api_version)
            .with_context(|| {
                format!(
                    "no matches for kind \"{kind}\" in version \"{api_version}\": the server does not have it"
                )
            })
    }
}

/// Reads an APIGroupDiscoveryList.
fn parse(list: &Value) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for group in items(&list["items"]) {
        // the first version is the preferred one
        for version in items(&group["versions"]).take(1) {
            for resource in items(&version["resources"]) {
                kinds.push(Kind {
                    group: text(&group["metadata"]["name"]),
                    version: text(&version["version"]),
                    kind: text(&resource["responseKind"]["kind"]),
                    plural: text(&resource["resource"]),
                    singular: text(&resource["singularResource"]),
                    short: items(&resource["shortNames"]).map(text).collect(),
                    categories: items(&resource["categories"]).map(text).collect(),
                    namespaced: resource["scope"] == "Namespaced",
                    listable: items(&resource["verbs"]).any(|verb| verb == "list"),
                });
            }
        }
    }
    kinds
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kinds() -> Kinds {
        Kinds(parse(&json!({"items": [
            {"metadata": {}, "versions": [{"version": "v1", "resources": [
                {"resource": "configmaps", "singularResource": "configmap", "shortNames": ["cm"], "scope": "Namespaced",
                 "responseKind": {"kind": "ConfigMap"}, "verbs": ["list"]}]}]},
            {"metadata": {"name": "prow.windows"}, "versions": [{"version": "v1", "resources": [
                {"resource": "jobs", "singularResource": "job", "shortNames": ["pj"], "scope": "Namespaced", "categories": ["prow", "all"],
                 "responseKind": {"kind": "Job"}, "verbs": ["list"]},
                {"resource": "nodes", "singularResource": "node", "scope": "Cluster", "categories": ["prow"],
                 "responseKind": {"kind": "Node"}, "verbs": ["list"]}]}]},
        ]})))
    }

    #[test]
    fn a_kind_answers_to_all_its_names() {
        let kinds = kinds();
        for name in [
            "job",
            "jobs",
            "pj",
            "Job",
            "jobs.prow.windows",
            "jobs.v1.prow.windows",
            "pj.prow.windows",
        ] {
            assert_eq!(kinds.named(name).unwrap().plural, "jobs", "{name}");
        }
        assert_eq!(kinds.named("cm").unwrap().kind, "ConfigMap");
        assert!(kinds.named("jobs.batch").is_err());
        assert!(kinds.named("pods").is_err());
    }

    #[test]
    fn lists_and_categories_name_several() {
        let kinds = kinds();
        let plurals = |names: &str| {
            kinds
                .listed(names)
                .unwrap()
                .iter()
                .map(|k| k.plural.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(plurals("cm,jobs"), ["configmaps", "jobs"]);
        assert_eq!(plurals("prow"), ["jobs", "nodes"]);
    }

    #[test]
    fn paths_follow_group_and_scope() {
        let kinds = kinds();
        assert_eq!(
            kinds.named("cm").unwrap().object_path("ops", "a"),
            "/api/v1/namespaces/ops/configmaps/a"
        );
        assert_eq!(
            kinds.named("job").unwrap().path(None),
            "/apis/prow.windows/v1/jobs"
        );
        assert_eq!(
            kinds.named("node").unwrap().object_path("ops", "web01"),
            "/apis/prow.windows/v1/nodes/web01"
        );
    }
}
