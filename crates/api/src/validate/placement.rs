//! Selectors, tolerations and resources.

use crate::{
    JobSpec,
    field::{Errors, Path},
    placement::{
        AntiAffinityTerm, Effect, LabelSelector, Labels, NodeSelectorTerm, Operator, Requirement,
        ResourceList, SpreadConstraint, Taint, TolerationOperator,
    },
};

pub(super) fn validate(spec: &JobSpec, path: &Path, errors: &mut Errors) {
    labels(&spec.node_selector, &path.child("nodeSelector"), errors);
    if let Some(affinity) = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref()) {
        let path = path.child("affinity").child("nodeAffinity");
        let required = &affinity.required_during_scheduling_ignored_during_execution;
        for (i, one) in required.iter().flat_map(|r| &r.node_selector_terms).enumerate() {
            let path = path
                .child("requiredDuringSchedulingIgnoredDuringExecution")
                .child("nodeSelectorTerms")
                .index(i);
            term(one, &path, errors);
        }
        for (i, one) in affinity
            .preferred_during_scheduling_ignored_during_execution
            .iter()
            .enumerate()
        {
            let path = path
                .child("preferredDuringSchedulingIgnoredDuringExecution")
                .index(i)
                .child("preference");
            term(&one.preference, &path, errors);
        }
    }
    if let Some(anti) = spec.affinity.as_ref().and_then(|a| a.job_anti_affinity.as_ref()) {
        let path = path.child("affinity").child("jobAntiAffinity");
        let required = &anti.required_during_scheduling_ignored_during_execution;
        for (i, one) in required.iter().enumerate() {
            let path = path
                .child("requiredDuringSchedulingIgnoredDuringExecution")
                .index(i);
            apart(one, &path, errors);
        }
        let preferred = &anti.preferred_during_scheduling_ignored_during_execution;
        for (i, one) in preferred.iter().enumerate() {
            let path = path
                .child("preferredDuringSchedulingIgnoredDuringExecution")
                .index(i);
            apart(&one.job_affinity_term, &path.child("jobAffinityTerm"), errors);
        }
    }
    spread(spec, &path.child("topologySpreadConstraints"), errors);
    for (i, toleration) in spec.tolerations.iter().enumerate() {
        let path = path.child("tolerations").index(i);
        if toleration.toleration_seconds.is_some()
            && toleration
                .effect
                .is_some_and(|effect| effect != Effect::NoExecute)
        {
            errors.forbidden(
                &path.child("tolerationSeconds"),
                "only a toleration of NoExecute ends after a time; remove it or set effect: NoExecute",
            );
        }
        if toleration.key.is_empty() && toleration.operator == TolerationOperator::Equal {
            errors.required(
                &path.child("key"),
                "only operator Exists may leave the key empty, and then means every taint",
            );
        }
        if !toleration.value.is_empty() && toleration.operator == TolerationOperator::Exists {
            errors.forbidden(&path.child("value"), "operator Exists takes any value; remove it");
        }
    }
    if let Some(resources) = &spec.resources {
        let path = path.child("resources");
        quantities(&resources.requests, &path.child("requests"), errors);
        quantities(&resources.limits, &path.child("limits"), errors);
    }
}

pub(super) fn selector(selector: &LabelSelector, path: &Path, errors: &mut Errors) {
    labels(&selector.match_labels, &path.child("matchLabels"), errors);
    for (i, one) in selector.match_expressions.iter().enumerate() {
        let path = path.child("matchExpressions").index(i);
        if matches!(one.operator, Operator::Gt | Operator::Lt) {
            errors.invalid(
                &path.child("operator"),
                format_args!("{:?}", one.operator),
                "compare numbers in node affinity only",
            );
        }
        requirement(one, &path, errors);
    }
}

fn apart(term: &AntiAffinityTerm, path: &Path, errors: &mut Errors) {
    label_key(&term.topology_key, &path.child("topologyKey"), errors);
    selector(&term.label_selector, &path.child("labelSelector"), errors);
}

fn spread(spec: &JobSpec, path: &Path, errors: &mut Errors) {
    let constraints = &spec.topology_spread_constraints;
    if spec.is_per_node() && !constraints.is_empty() {
        errors.forbidden(
            path,
            "a PerNode Job runs once on every chosen node, so there is nothing to spread; remove it",
        );
    }
    for (i, one) in constraints.iter().enumerate() {
        let path = path.index(i);
        label_key(&one.topology_key, &path.child("topologyKey"), errors);
        let same = |other: &SpreadConstraint| {
            other.topology_key == one.topology_key && other.when_unsatisfiable == one.when_unsatisfiable
        };
        if constraints[..i].iter().any(same) {
            errors.duplicate(
                &path,
                format_args!("{} {:?}", one.topology_key, one.when_unsatisfiable),
            );
        }
    }
}

fn term(term: &NodeSelectorTerm, path: &Path, errors: &mut Errors) {
    for (i, one) in term.match_expressions.iter().enumerate() {
        requirement(one, &path.child("matchExpressions").index(i), errors);
    }
    for (i, one) in term.match_fields.iter().enumerate() {
        let path = path.child("matchFields").index(i);
        if one.key != "metadata.name" {
            errors.not_supported(&path.child("key"), &one.key, &["metadata.name"]);
        }
        requirement(one, &path, errors);
    }
}

fn requirement(one: &Requirement, path: &Path, errors: &mut Errors) {
    label_key(&one.key, &path.child("key"), errors);
    let values = path.child("values");
    match one.operator {
        Operator::In | Operator::NotIn if one.values.is_empty() => {
            errors.required(&values, "In and NotIn need at least one value");
        }
        Operator::Exists | Operator::DoesNotExist if !one.values.is_empty() => {
            errors.forbidden(&values, "Exists and DoesNotExist take no values; remove them");
        }
        Operator::Gt | Operator::Lt
            if one.values.len() != 1 || one.values.iter().any(|v| v.parse::<i64>().is_err()) =>
        {
            errors.invalid(
                &values,
                one.values.join(", "),
                "Gt and Lt need exactly one integer",
            );
        }
        _ => {}
    }
}

pub(super) fn labels(labels: &Labels, path: &Path, errors: &mut Errors) {
    for (key, value) in labels {
        label_key(key, path, errors);
        if !is_label_value(value) {
            errors.invalid(
                &path.key(key),
                value,
                "a label's value is at most 63 letters, digits, \"-\", \"_\" and \".\", with a letter or digit at both ends",
            );
        }
    }
}

fn label_key(key: &str, path: &Path, errors: &mut Errors) {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(p, n)| (Some(p), n));
    let prefix_fits = prefix
        .is_none_or(|p| p.len() <= 253 && !p.is_empty() && p.split('.').all(crate::names::is_dns_label));
    if name.is_empty() || !is_label_value(name) || !prefix_fits {
        errors.invalid(
            path,
            key,
            "a label's name is at most 63 letters, digits, \"-\", \"_\" and \".\", with a DNS name and \"/\" before it if you like",
        );
    }
}

fn is_label_value(value: &str) -> bool {
    let edge = |c: Option<char>| c.is_none_or(|c| c.is_ascii_alphanumeric());
    value.len() <= 63
        && value
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && edge(value.chars().next())
        && edge(value.chars().last())
}

pub(super) fn taints(taints: &[Taint], path: &Path, errors: &mut Errors) {
    for (i, taint) in taints.iter().enumerate() {
        let path = path.index(i);
        label_key(&taint.key, &path.child("key"), errors);
        if taints[..i]
            .iter()
            .any(|t| t.key == taint.key && t.effect == taint.effect)
        {
            errors.duplicate(&path, format_args!("{} {:?}", taint.key, taint.effect));
        }
    }
}

pub(super) fn quantities(list: &ResourceList, path: &Path, errors: &mut Errors) {
    for (name, quantity) in list {
        if quantity.milli().is_none() {
            errors.invalid(
                &path.key(name),
                quantity,
                "must be an amount such as \"2\", \"100m\", \"64Mi\" or \"1.5Gi\"",
            );
        }
    }
}
