//! Matching of labels, node terms and taints, by Kubernetes' rules.

use crate::placement::{
    Effect, LabelSelector, Labels, NodeSelector, NodeSelectorTerm, Operator, Requirement, Taint, Toleration,
    TolerationOperator,
};

impl Requirement {
    /// Whether a label with this value (or none) meets the requirement.
    pub fn met_by(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|v| self.values.iter().any(|w| w == v));
        let compare = |wanted: fn(i64, i64) -> bool| {
            let value = value.and_then(|v| v.parse::<i64>().ok());
            let limit = self.values.first().and_then(|v| v.parse::<i64>().ok());
            matches!((value, limit), (Some(v), Some(l)) if wanted(v, l))
        };
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => compare(|v, l| v > l),
            Operator::Lt => compare(|v, l| v < l),
        }
    }
}

impl LabelSelector {
    /// Whether these labels match; an empty selector matches all.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(k, v)| labels.get(k) == Some(v))
            && self
                .match_expressions
                .iter()
                .all(|r| r.met_by(labels.get(&r.key).map(String::as_str)))
    }
}

impl NodeSelectorTerm {
    /// Whether a node matches; an empty term matches nothing.
    pub fn matches(&self, node: &str, labels: &Labels) -> bool {
        (!self.match_expressions.is_empty() || !self.match_fields.is_empty())
            && self
                .match_expressions
                .iter()
                .all(|r| r.met_by(labels.get(&r.key).map(String::as_str)))
            && self
                .match_fields
                .iter()
                .all(|r| r.key == "metadata.name" && r.met_by(Some(node)))
    }
}

impl NodeSelector {
    /// Whether a node matches one of the terms.
    pub fn matches(&self, node: &str, labels: &Labels) -> bool {
        self.node_selector_terms.iter().any(|t| t.matches(node, labels))
    }
}

impl Toleration {
    /// Whether it tolerates this taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|e| e == taint.effect)
            && (self.key.is_empty() && self.operator == TolerationOperator::Exists || self.key == taint.key)
            && (self.operator == TolerationOperator::Exists || self.value == taint.value)
    }
}

/// The first taint that keeps new work away: NoSchedule or NoExecute, not tolerated.
pub fn repelling<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    taints
        .iter()
        .filter(|t| t.effect != Effect::PreferNoSchedule)
        .find(|t| !tolerations.iter().any(|toleration| toleration.tolerates(t)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    fn requirement(key: &str, operator: Operator, values: &[&str]) -> Requirement {
        Requirement {
            key: key.into(),
            operator,
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        }
    }

    #[test]
    fn operators_mean_what_kubernetes_means() {
        use Operator::*;
        let l = labels(&[("role", "web"), ("build", "20348")]);
        for (key, operator, values, expected) in [
            ("role", In, &["web", "db"][..], true),
            ("role", In, &["db"], false),
            ("role", NotIn, &["db"], true),
            ("absent", NotIn, &["x"], true),
            ("absent", Exists, &[], false),
            ("absent", DoesNotExist, &[], true),
            ("build", Gt, &["17763"], true),
            ("build", Lt, &["17763"], false),
            ("role", Gt, &["1"], false),
            ("absent", Lt, &["1"], false),
        ] {
            let r = requirement(key, operator, values);
            assert_eq!(r.met_by(l.get(key).map(String::as_str)), expected, "{r:?}");
        }
    }

    #[test]
    fn an_empty_selector_matches_all_and_an_empty_node_term_nothing() {
        assert!(LabelSelector::default().matches(&labels(&[("a", "b")])));
        assert!(!NodeSelectorTerm::default().matches("web01", &labels(&[("a", "b")])));
    }

    #[test]
    fn only_metadata_name_is_a_node_field() {
        let by = |key: &str| NodeSelectorTerm {
            match_fields: vec![requirement(key, Operator::In, &["web01"])],
            ..Default::default()
        };
        assert!(by("metadata.name").matches("web01", &Labels::new()));
        assert!(!by("spec.nodeName").matches("web01", &Labels::new()));
    }

    #[test]
    fn taints_keep_away_what_does_not_tolerate_them() {
        let taint = |effect| Taint {
            key: "signing".into(),
            value: "yes".into(),
            effect,
            time_added: None,
        };
        let all = Toleration {
            operator: TolerationOperator::Exists,
            ..Default::default()
        };
        let equal = Toleration {
            key: "signing".into(),
            value: "yes".into(),
            ..Default::default()
        };
        let other = Toleration {
            key: "signing".into(),
            value: "no".into(),
            ..Default::default()
        };
        let hard = [taint(Effect::NoSchedule)];
        assert!(repelling(&hard, &[]).is_some());
        assert!(repelling(&hard, &[other]).is_some());
        assert!(repelling(&hard, &[equal]).is_none());
        assert!(repelling(&hard, &[all]).is_none());
        assert!(repelling(&[taint(Effect::PreferNoSchedule)], &[]).is_none());
    }
}
