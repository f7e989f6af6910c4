//! Facts that agents report, copied to labels, so that work can be selected by them. Hosts do not write labels themselves: one that was
//! taken over could make itself the target of other hosts' work.

use super::changed_nodes;
use crate::{context::Context, keyed, patch};
use api::{Node, placement::Labels};
use futures::StreamExt;
use kube::Api;
use serde_json::json;

/// How many nodes are worked on at once.
const AT_ONCE: usize = 8;

pub(super) async fn run(context: &Context) {
    keyed::work(
        "node labels",
        changed_nodes(context).boxed(),
        AT_ONCE,
        |name| async move {
            let Some(node) = context.shared.nodes.get("", &name) else {
                return Ok(None);
            };
            let old = node.metadata.labels.clone().unwrap_or_default();
            let wanted = labels(&node);
            let changed: Labels = wanted
                .into_iter()
                .filter(|(k, v)| old.get(k) != Some(v))
                .collect();
            if !changed.is_empty() {
                let api: Api<Node> = Api::all(context.client.clone());
                patch::main(&api, &node, json!({"metadata": {"labels": changed}})).await?;
            }
            Ok(None)
        },
    )
    .await;
}

/// The labels that follow from a node's facts. A fact that is no label value, such as one with blanks, is left out.
fn labels(node: &Node) -> Labels {
    let Some(status) = &node.status else {
        return Labels::new();
    };
    let info = &status.node_info;
    let facts = [
        ("os", &info.operating_system),
        ("arch", &info.architecture),
        ("domain", &info.domain),
        ("domain-role", &info.domain_role),
        ("agent-version", &info.agent_version),
        ("build", &info.kernel_version),
    ];
    let mut labels: Labels = facts
        .into_iter()
        .filter(|(_, value)| is_label_value(value))
        .map(|(name, value)| (format!("prow.windows/{name}"), value.clone()))
        .collect();
    if is_label_value(node.name()) {
        labels.insert("prow.windows/hostname".into(), node.name().to_owned());
    }
    labels
}

/// A label value of Kubernetes: up to 63 of letters, digits, dash, underscore and dot, with a letter or digit at both ends.
fn is_label_value(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.len() <= 63 && bytes.iter().copied().all(inner) && ends(bytes.first()) && ends(bytes.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_become_labels_where_they_can() {
        let mut node = Node::new("web01", Default::default());
        let info = &mut node.status.get_or_insert_default().node_info;
        info.operating_system = "windows".into();
        info.os_image = "Windows Server 2022".into();
        info.domain = "corp example".into();
        let labels = labels(&node);
        let found: Vec<_> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(found, ["prow.windows/hostname=web01", "prow.windows/os=windows"]);
    }
}
