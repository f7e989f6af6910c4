//! The paths of a kind with their operations.

use super::{base_path, component, gvk};
use crate::{
    kind::{Kind, Scope, Storage},
    schema::REFERENCE,
};
use serde_json::{Map, Value, json};

/// All paths of a kind.
pub(super) fn of(kind: &Kind) -> Map<String, Value> {
    let base = format!("/{}", base_path(kind));
    let plural = &kind.plural;
    let collection = match kind.scope {
        Scope::Namespaced => format!("{base}/namespaces/{{namespace}}/{plural}"),
        Scope::Cluster => format!("{base}/{plural}"),
    };
    let mut paths = Map::new();
    if kind.storage == Storage::Virtual {
        add(&mut paths, collection, json!({"post": write(kind, "post")}));
        return paths;
    }
    if kind.scope == Scope::Namespaced {
        add(&mut paths, format!("{base}/{plural}"), json!({"get": list(kind)}));
    }
    let one = format!("{collection}/{{name}}");
    let all =
        json!({"get": list(kind), "post": write(kind, "post"), "delete": delete(kind, "deletecollection")});
    add(&mut paths, collection, all);
    let named = json!({"get": get(kind), "put": write(kind, "put"), "patch": patch(kind)});
    let status = kind.status_subresource.then_some("status");
    for subresource in kind.strategy.subresources().iter().copied().chain(status) {
        add(&mut paths, format!("{one}/{subresource}"), named.clone());
    }
    let mut whole = named;
    whole["delete"] = delete(kind, "delete");
    add(&mut paths, one, whole);
    paths
}

/// Adds a path with the parameters its braces name.
fn add(paths: &mut Map<String, Value>, path: String, mut operations: Value) {
    let parameters: Vec<_> = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if !parameters.is_empty() {
        operations["parameters"] = parameters.into();
    }
    paths.insert(path, operations);
}

fn operation(kind: &Kind, action: &str, parameters: Vec<Value>, answer: &str) -> Value {
    let content = json!({"application/json": {"schema": {"$ref": format!("{REFERENCE}{answer}")}}});
    json!({
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk(kind, &kind.kind),
    })
}

fn query(name: &str, type_: &str, description: &str) -> Value {
    json!({"name": name, "in": "query", "description": description, "schema": {"type": type_}})
}

fn writing() -> Vec<Value> {
    vec![
        query("dryRun", "string", "All: do everything but store the result."),
        query("fieldManager", "string", "Who makes the change."),
        query(
            "fieldValidation",
            "string",
            "What happens to unknown and duplicate fields: Strict refuses them; Warn (default) and Ignore drop them with a warning.",
        ),
    ]
}

fn get(kind: &Kind) -> Value {
    operation(kind, "get", Vec::new(), &component(kind))
}

fn list(kind: &Kind) -> Value {
    let parameters = vec![
        query("labelSelector", "string", "Only objects whose labels match."),
        query("fieldSelector", "string", "Only objects whose fields match."),
        query(
            "limit",
            "integer",
            "At most so many; the answer says where to go on.",
        ),
        query("continue", "string", "Go on where an earlier list ended."),
        query("resourceVersion", "string", "How fresh the answer must be."),
        query("resourceVersionMatch", "string", "How resourceVersion is meant."),
        query("watch", "boolean", "Go on telling what changes."),
        query(
            "allowWatchBookmarks",
            "boolean",
            "Also tell how far the watch is.",
        ),
        query(
            "sendInitialEvents",
            "boolean",
            "Begin a watch with what is there.",
        ),
        query(
            "timeoutSeconds",
            "integer",
            "End the watch after so many seconds.",
        ),
    ];
    operation(kind, "list", parameters, &format!("{}List", component(kind)))
}

fn write(kind: &Kind, action: &str) -> Value {
    let name = component(kind);
    let mut operation = operation(kind, action, writing(), &name);
    operation["requestBody"] = body("application/json", &name);
    operation
}

fn patch(kind: &Kind) -> Value {
    let mut parameters = writing();
    parameters.push(query("force", "boolean", "Only for server-side apply."));
    let mut operation = operation(kind, "patch", parameters, &component(kind));
    let schema = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
    operation["requestBody"] = body("application/merge-patch+json", schema);
    operation
}

fn delete(kind: &Kind, action: &str) -> Value {
    let mut parameters = vec![
        query("dryRun", "string", "All: do everything but delete."),
        query("gracePeriodSeconds", "integer", "How long it may take to end."),
        query(
            "propagationPolicy",
            "string",
            "What becomes of dependents: Background, Foreground or Orphan.",
        ),
    ];
    if action == "deletecollection" {
        parameters.push(query(
            "labelSelector",
            "string",
            "Only objects whose labels match.",
        ));
        parameters.push(query(
            "fieldSelector",
            "string",
            "Only objects whose fields match.",
        ));
    }
    operation(kind, action, parameters, &component(kind))
}

fn body(media_type: &str, component: &str) -> Value {
    json!({"required": true, "content": {media_type: {"schema": {"$ref": format!("{REFERENCE}{component}")}}}})
}
