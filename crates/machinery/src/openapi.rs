//! OpenAPI v3: the index and one document a group version, as `kubectl explain` and editors read them. Descriptions
//! are the doc comments of the types.
//!
//! What kubectl looks for: `x-kubernetes-group-version-kind` on operations and on components, and the query parameter
//! `fieldValidation` on patches, which tells it to leave validation to the server.

mod paths;

use crate::{kind::Kind, schema::REFERENCE};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// All documents, made once at start.
#[derive(Debug, Default)]
pub struct OpenApi {
    documents: Vec<Document>,
}

/// The document of one group version.
#[derive(Debug)]
pub struct Document {
    /// Path below `/openapi/v3/`: `api/v1`, `apis/prow.windows/v1`.
    pub path: String,
    /// Hash of the content, upper-case hex; the `hash` query parameter and the ETag.
    pub hash: String,
    /// The document as JSON.
    pub body: bytes::Bytes,
}

impl OpenApi {
    /// Makes the documents of all `kinds`.
    pub fn new(kinds: &[Kind]) -> Self {
        let mut bases: Vec<String> = kinds.iter().map(base_path).collect();
        bases.sort();
        bases.dedup();
        let documents = bases.into_iter().map(|base| {
            let body = document(kinds.iter().filter(|k| base_path(k) == base)).to_string();
            let hash = Sha256::digest(&body)
                .iter()
                .map(|byte| format!("{byte:02X}"))
                .collect();
            Document {
                path: base,
                hash,
                body: body.into(),
            }
        });
        Self {
            documents: documents.collect(),
        }
    }

    /// `GET /openapi/v3`.
    pub fn index(&self) -> Value {
        let entry = |d: &Document| {
            (
                d.path.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{}?hash={}", d.path, d.hash)}),
            )
        };
        json!({"paths": self.documents.iter().map(entry).collect::<Map<_, _>>()})
    }

    /// The document at a path below `/openapi/v3/`.
    pub fn document(&self, path: &str) -> Option<&Document> {
        self.documents.iter().find(|d| d.path == path)
    }
}

/// `api/v1` or `apis/prow.windows/v1`.
fn base_path(kind: &Kind) -> String {
    if kind.group.is_empty() {
        format!("api/{}", kind.version)
    } else {
        format!("apis/{}/{}", kind.group, kind.version)
    }
}

/// The component's name: Kubernetes' own for its kinds, the reversed group for ours (`windows.prow.v1.Job`).
fn component(kind: &Kind) -> String {
    if let Some(name) = kind.schema["$ref"]
        .as_str()
        .and_then(|r| r.strip_prefix(REFERENCE))
    {
        return name.to_owned();
    }
    let group: Vec<_> = kind.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
}

fn gvk(kind: &Kind, name: &str) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": name})
}

fn document<'a>(kinds: impl Iterator<Item = &'a Kind>) -> Value {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for kind in kinds {
        paths.extend(paths::of(kind));
        schemas.extend(kind.definitions.iter().cloned());
        let name = component(kind);
        if kind.schema.get("$ref").is_none() {
            schemas.insert(name.clone(), kind.schema.clone());
        }
        if let Some(schema) = schemas.get_mut(&name) {
            schema["x-kubernetes-group-version-kind"] = json!([gvk(kind, &kind.kind)]);
        }
        schemas.insert(format!("{name}List"), list(kind, &name));
    }
    schemas.insert(
        "io.k8s.apimachinery.pkg.apis.meta.v1.Patch".into(),
        json!({"type": "object"}),
    );
    schemas.sort_keys();
    json!({"openapi": "3.0.0", "info": {"title": "Prow.Windows", "version": "v1"}, "paths": paths,
        "components": {"schemas": schemas}})
}

fn list(kind: &Kind, component: &str) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "type": "object",
        "description": format!("{} is a list of {}.", kind.list_kind, kind.plural),
        "required": ["items"],
        "properties": {
            "apiVersion": text("Group and version of the kind."),
            "kind": text("Name of the kind."),
            "metadata": {"type": "object", "description": "Standard list metadata.", "properties": {
                "resourceVersion": text("The state of the server the list shows."),
                "continue": text("Where the next part of the list begins."),
                "remainingItemCount": {"type": "integer", "format": "int64", "description": "How many more there are."},
            }},
            "items": {"type": "array", "description": format!("The {}.", kind.plural),
                "items": {"$ref": format!("{REFERENCE}{component}")}},
        },
        "x-kubernetes-group-version-kind": [gvk(kind, &kind.list_kind)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{core_kinds, typed::tests_support::widget};

    fn made(path: &str) -> Value {
        let mut kinds = core_kinds::all();
        kinds.push(widget());
        let all = OpenApi::new(&kinds);
        serde_json::from_slice(&all.document(path).unwrap().body).unwrap()
    }

    #[test]
    fn the_index_names_every_group_version_with_its_hash() {
        let kinds = core_kinds::all();
        let all = OpenApi::new(&kinds);
        let index = all.index();
        let url = index["paths"]["apis/scheduling.k8s.io/v1"]["serverRelativeURL"]
            .as_str()
            .unwrap();
        let document = all.document("apis/scheduling.k8s.io/v1").unwrap();
        assert_eq!(
            url,
            format!("/openapi/v3/apis/scheduling.k8s.io/v1?hash={}", document.hash)
        );
        assert_eq!(document.hash.len(), 64);
        assert!(index["paths"]["api/v1"].is_object() && all.document("api/v2").is_none());
    }

    #[test]
    fn the_hash_changes_with_the_content_only() {
        let of = |kinds: &[Kind]| {
            OpenApi::new(kinds)
                .document("apis/test.example/v1")
                .unwrap()
                .hash
                .clone()
        };
        let mut changed = widget();
        changed.schema["description"] = "other".into();
        assert_eq!(of(&[widget()]), of(&[widget()]));
        assert_ne!(of(&[widget()]), of(&[changed]));
    }

    #[test]
    fn every_reference_is_resolved_within_its_document() {
        let mut kinds = core_kinds::all();
        kinds.push(widget());
        for document in &OpenApi::new(&kinds).documents {
            let text = std::str::from_utf8(&document.body).unwrap();
            let value: Value = serde_json::from_str(text).unwrap();
            for part in text.split("\"$ref\":\"").skip(1) {
                let name = part.split('"').next().unwrap().strip_prefix(REFERENCE).unwrap();
                assert!(
                    value["components"]["schemas"][name].is_object(),
                    "{}: {name}",
                    document.path
                );
            }
        }
    }

    #[test]
    fn kubectl_finds_kinds_by_operation_and_validation_by_parameter() {
        let document = made("apis/test.example/v1");
        let gvk = json!({"group": "test.example", "version": "v1", "kind": "Widget"});
        let one = &document["paths"]["/apis/test.example/v1/namespaces/{namespace}/widgets/{name}"];
        assert_eq!(one["patch"]["x-kubernetes-group-version-kind"], gvk);
        let parameters = one["patch"]["parameters"].as_array().unwrap();
        assert!(
            parameters
                .iter()
                .any(|p| p["name"] == "fieldValidation" && p["in"] == "query")
        );
        assert_eq!(
            document["components"]["schemas"]["example.test.v1.Widget"]["x-kubernetes-group-version-kind"],
            json!([gvk])
        );
        assert!(
            document["paths"]["/apis/test.example/v1/namespaces/{namespace}/widgets/{name}/status"]
                .is_object()
        );
    }

    #[test]
    fn kubernetes_kinds_have_kubernetes_names() {
        let document = made("api/v1");
        let schemas = &document["components"]["schemas"];
        assert!(schemas["io.k8s.api.core.v1.Secret"]["properties"]["stringData"].is_object());
        assert!(schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].is_object());
        assert!(document["paths"]["/api/v1/namespaces/{name}"]["get"].is_object());
        assert!(
            document["paths"]["/api/v1/secrets"]["get"].is_object(),
            "lists over all namespaces"
        );
    }

    #[test]
    fn a_review_can_only_be_posted() {
        let paths = &made("apis/authentication.k8s.io/v1")["paths"];
        let paths = paths.as_object().unwrap();
        assert_eq!(
            paths.keys().collect::<Vec<_>>(),
            ["/apis/authentication.k8s.io/v1/selfsubjectreviews"]
        );
        assert!(
            paths
                .values()
                .all(|p| p.get("post").is_some() && p.get("get").is_none())
        );
    }
}
