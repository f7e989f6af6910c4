//! What the work of each `place-*` asks for.

use api::{
    JobSpec,
    job::OnUnknown,
    placement::{
        AntiAffinityTerm, LabelSelector, NodeSelectorTerm, Operator, Requirement, Resources,
        SpreadConstraint, Unsatisfiable,
    },
    quantity::Quantity,
};

/// The label of zones.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// How many zones there are.
pub const ZONES: usize = 3;
/// The label by which Jobs keep apart.
pub const COLOUR: &str = "colour";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Basic,
    Affinity,
    Taints,
    Spread,
    AntiAffinity,
    Preempt,
    Unschedulable,
    Churn,
}

impl Shape {
    /// Whether the measured runs are one Job: only its own Tasks count for a spread.
    pub fn one_job(self) -> bool {
        self == Self::Spread
    }

    /// Makes a spec that of the measured work.
    pub fn measured(self, spec: &mut JobSpec) {
        spec.resources = requests("100m", "500Mi");
        match self {
            Self::Basic | Self::Taints | Self::Unschedulable | Self::Churn => {}
            Self::Affinity => {
                let affinity = spec.affinity.get_or_insert_default();
                let nodes = affinity.node_affinity.get_or_insert_default();
                let required = nodes
                    .required_during_scheduling_ignored_during_execution
                    .get_or_insert_default();
                required.node_selector_terms = vec![NodeSelectorTerm {
                    match_expressions: vec![Requirement {
                        key: ZONE.into(),
                        operator: Operator::In,
                        values: vec!["zone-1".into()],
                    }],
                    match_fields: Vec::new(),
                }];
            }
            Self::Spread => {
                spec.topology_spread_constraints = vec![SpreadConstraint {
                    max_skew: 5,
                    topology_key: ZONE.into(),
                    when_unsatisfiable: Unsatisfiable::DoNotSchedule,
                }];
            }
            Self::AntiAffinity => {
                let affinity = spec.affinity.get_or_insert_default();
                let jobs = affinity.job_anti_affinity.get_or_insert_default();
                jobs.required_during_scheduling_ignored_during_execution = vec![AntiAffinityTerm {
                    label_selector: LabelSelector {
                        match_labels: [(COLOUR.into(), "green".into())].into(),
                        ..Default::default()
                    },
                    topology_key: "kubernetes.io/hostname".into(),
                }];
            }
            Self::Preempt => {
                spec.priority = Some(10);
                spec.resources = requests("1", "500Mi");
            }
        }
    }

    /// Makes a spec that of the work that runs before.
    pub fn initial(self, spec: &mut JobSpec) {
        match self {
            Self::AntiAffinity => self.measured(spec),
            Self::Preempt => {
                spec.on_unknown = OnUnknown::Rerun;
                spec.resources = requests("1", "500Mi");
            }
            _ => spec.resources = requests("100m", "500Mi"),
        }
    }
}

pub fn requests(cpu: &str, memory: &str) -> Option<Resources> {
    let list = [("cpu", cpu), ("memory", memory)];
    Some(Resources {
        requests: list.map(|(k, v)| (k.to_owned(), Quantity(v.to_owned()))).into(),
        ..Default::default()
    })
}
