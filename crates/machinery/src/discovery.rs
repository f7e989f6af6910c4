//! Discovery: which groups, versions and resources there are. Plain (`APIGroupList`, `APIResourceList`) for every
//! client, aggregated (`apidiscovery.k8s.io/v2`) for those that ask for it.

use crate::kind::{Kind, Scope, Storage};
use serde_json::{Value, json};

/// Verbs of a stored kind.
const STORED: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
/// Verbs of a kind that only answers.
const VIRTUAL: [&str; 1] = ["create"];
/// Verbs of a subresource such as `status`.
const SUBRESOURCE: [&str; 3] = ["get", "patch", "update"];

fn verbs(kind: &Kind) -> &'static [&'static str] {
    if kind.storage == Storage::Virtual {
        &VIRTUAL
    } else {
        &STORED
    }
}

fn subresources(kind: &Kind) -> impl Iterator<Item = &'static str> {
    let status = kind.status_subresource.then_some("status");
    kind.strategy.subresources().iter().copied().chain(status)
}

/// The groups with a name and their versions, in the order the kinds come in.
fn groups(kinds: &[Kind]) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for kind in kinds.iter().filter(|k| !k.group.is_empty()) {
        match groups.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, versions)) if versions.contains(&kind.version.as_str()) => {}
            Some((_, versions)) => versions.push(&kind.version),
            None => groups.push((&kind.group, vec![&kind.version])),
        }
    }
    groups
}

/// `GET /api`.
pub fn api_versions(server_address: &str) -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}]})
}

/// `GET /apis`.
pub fn group_list(kinds: &[Kind]) -> Value {
    let groups: Vec<_> = groups(kinds)
        .iter()
        .map(|(group, versions)| describe(group, versions))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `GET /apis/<group>`; `None` if there is no such group.
pub fn group(kinds: &[Kind], group: &str) -> Option<Value> {
    let groups = groups(kinds);
    let (group, versions) = groups.iter().find(|(g, _)| *g == group)?;
    let mut object = describe(group, versions);
    object["kind"] = "APIGroup".into();
    object["apiVersion"] = "v1".into();
    Some(object)
}

fn describe(group: &str, versions: &[&str]) -> Value {
    let entry = |version: &&str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
    let entries: Vec<_> = versions.iter().map(entry).collect();
    json!({"name": group, "versions": entries, "preferredVersion": entries[0]})
}

/// `GET /api/v1` (group empty) and `GET /apis/<group>/<version>`; `None` if there is no such version.
pub fn resource_list(kinds: &[Kind], group: &str, version: &str) -> Option<Value> {
    let resources: Vec<_> = in_version(kinds, group, version).flat_map(plain).collect();
    if resources.is_empty() {
        return None;
    }
    let name = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": name, "resources": resources}))
}

fn in_version<'a>(kinds: &'a [Kind], group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Kind> {
    kinds
        .iter()
        .filter(move |k| k.group == group && k.version == version)
}

fn plain(kind: &Kind) -> Vec<Value> {
    let namespaced = kind.scope == Scope::Namespaced;
    let mut main = json!({"name": kind.plural, "singularName": kind.singular, "namespaced": namespaced,
        "kind": kind.kind, "verbs": verbs(kind)});
    names(kind, &mut main);
    let subresource = |name| {
        json!({"name": format!("{}/{name}", kind.plural), "singularName": "", "namespaced": namespaced,
            "kind": kind.kind, "verbs": SUBRESOURCE})
    };
    std::iter::once(main)
        .chain(subresources(kind).map(subresource))
        .collect()
}

/// Short names and categories, where there are any.
fn names(kind: &Kind, entry: &mut Value) {
    if !kind.short_names.is_empty() {
        entry["shortNames"] = kind.short_names.clone().into();
    }
    if !kind.categories.is_empty() {
        entry["categories"] = kind.categories.clone().into();
    }
}

/// The aggregated form of `GET /api` (`core`) or `GET /apis`.
pub fn aggregated(kinds: &[Kind], core: bool) -> Value {
    let groups = if core {
        vec![("", vec!["v1"])]
    } else {
        groups(kinds)
    };
    let items: Vec<_> = groups
        .iter()
        .map(|(group, versions)| {
            let versions: Vec<_> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<_> = in_version(kinds, group, version).map(aggregate).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let name = if group.is_empty() {
                json!({})
            } else {
                json!({"name": group})
            };
            json!({"metadata": name, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregate(kind: &Kind) -> Value {
    let response = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let mut entry = json!({"resource": kind.plural, "responseKind": response,
        "scope": if kind.scope == Scope::Namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": verbs(kind)});
    names(kind, &mut entry);
    let subresources: Vec<_> = subresources(kind)
        .map(|name| json!({"subresource": name, "responseKind": response, "verbs": SUBRESOURCE}))
        .collect();
    if !subresources.is_empty() {
        entry["subresources"] = subresources.into();
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core_kinds;

    #[test]
    fn the_core_group_is_served_under_api_and_the_others_under_apis() {
        let kinds = core_kinds::all();
        let core = resource_list(&kinds, "", "v1").unwrap();
        assert_eq!(core["groupVersion"], "v1");
        let names: Vec<_> = core["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["name"].as_str().unwrap())
            .collect();
        assert!(
            names.contains(&"secrets") && names.contains(&"namespaces/status"),
            "{names:?}"
        );
        assert!(!names.contains(&"leases"));
        assert!(resource_list(&kinds, "coordination.k8s.io", "v1").is_some());
        assert!(resource_list(&kinds, "coordination.k8s.io", "v2").is_none());
        assert!(group(&kinds, "coordination.k8s.io").is_some() && group(&kinds, "").is_none());
    }

    #[test]
    fn plain_and_aggregated_discovery_tell_the_same() {
        let kinds = core_kinds::all();
        for (core, root) in [(true, vec![String::new()]), (false, group_names(&kinds))] {
            let aggregated = aggregated(&kinds, core);
            let items = aggregated["items"].as_array().unwrap();
            assert_eq!(items.len(), root.len());
            for (item, group) in items.iter().zip(root) {
                let version = item["versions"][0]["version"].as_str().unwrap();
                let plain = resource_list(&kinds, &group, version).unwrap();
                let plain: Vec<_> = plain["resources"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|r| {
                        (
                            r["name"].as_str().unwrap().to_owned(),
                            r["verbs"].clone(),
                            r["shortNames"].clone(),
                        )
                    })
                    .collect();
                let mut flat = Vec::new();
                for r in item["versions"][0]["resources"].as_array().unwrap() {
                    let name = r["resource"].as_str().unwrap();
                    flat.push((name.to_owned(), r["verbs"].clone(), r["shortNames"].clone()));
                    for s in r["subresources"].as_array().into_iter().flatten() {
                        flat.push((
                            format!("{name}/{}", s["subresource"].as_str().unwrap()),
                            s["verbs"].clone(),
                            Value::Null,
                        ));
                    }
                }
                assert_eq!(flat, plain);
            }
        }
    }

    fn group_names(kinds: &[Kind]) -> Vec<String> {
        let list = group_list(kinds);
        list["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|g| g["name"].as_str().unwrap().into())
            .collect()
    }

    #[test]
    fn a_review_can_only_be_created() {
        let kinds = core_kinds::all();
        let list = resource_list(&kinds, "authentication.k8s.io", "v1").unwrap();
        assert_eq!(list["resources"][0]["verbs"], json!(["create"]));
    }
}
