//! Whether work may go to a node: one file a filter, in the order they are asked and named in explanations.
//!
//! Each filter says which changes could clear its rejection; work that was rejected everywhere sleeps until one of them comes.

mod access;
mod affinity;
mod apart;
mod choice;
mod features;
mod ready;
mod resources;
mod selector;
mod spread;
mod taints;

pub(crate) use features::SHELL_PREFIX;

use super::{
    signature::Signature,
    world::{NodeState, World},
};
use std::{fmt, ops::BitOrAssign};

/// Kinds of changes that can clear a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clears(u8);

impl Clears {
    pub const NOTHING: Self = Self(0);
    /// A Node was added or changed.
    pub const NODE: Self = Self(1);
    /// A Task on the node ended.
    pub const CAPACITY: Self = Self(2);
    /// A Target was added or changed, or a node joined one.
    pub const TARGET: Self = Self(4);
    /// A Namespace's labels changed.
    pub const NAMESPACE: Self = Self(8);

    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOrAssign for Clears {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.or(other);
    }
}

/// One reason why work may not go to a node.
pub(crate) trait Filter: Sync {
    /// Which changes could clear its rejection.
    fn cleared_by(&self) -> Clears;

    /// Why this node will not do, if so.
    fn rejects<'a>(
        &self,
        work: &'a Signature,
        node: &'a NodeState,
        world: &'a World,
    ) -> Option<Rejection<'a>>;
}

pub(crate) const READY: &dyn Filter = &ready::Ready;
pub(crate) const RESOURCES: &dyn Filter = &resources::Resources;
pub(crate) const SPREAD: &dyn Filter = &spread::Spread;

/// Filters whose answers change with every Task.
pub(crate) static PASSING: [&dyn Filter; 3] = [RESOURCES, &apart::Apart, SPREAD];

/// Filters whose answers stand until a node, a Target or a Namespace changes.
pub(crate) static STANDING: [&dyn Filter; 7] = [
    &choice::Choice,
    &selector::Selector,
    &affinity::Affinity,
    &access::Access,
    READY,
    &features::Features,
    &taints::Taints,
];

/// Why a node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Rejection<'a> {
    NotNamed,
    NotInTarget(&'a str),
    NoSuchTarget(&'a str),
    Label(&'a str, &'a str),
    Affinity,
    NoAccess(&'a str),
    NoSuchNode,
    NotReady,
    Cordoned,
    Feature(&'a str),
    Taint(&'a str, &'a str),
    NoSlot,
    /// Number of the resource, and how much of it is missing.
    Resource(usize, u64),
    /// A Job to keep apart from runs at the same value of this label.
    Near(&'a str),
    /// One more would be too many at its value of this label.
    Skewed(&'a str),
    /// It lacks the label the Job is to be spread over.
    NoTopology(&'a str),
    /// It is kept free for work that has waited long.
    Kept,
}

impl Rejection<'_> {
    /// Whether `onUnavailable` decides what becomes of it.
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::NoSuchNode | Self::NotReady | Self::Cordoned | Self::Taint(..)
        )
    }

    /// As it is told of several nodes: `80 do not match role=web`.
    pub fn tell(&self, nodes: usize, names: &super::amounts::Names) -> String {
        let (does, is, has) = if nodes == 1 {
            ("does", "is", "has")
        } else {
            ("do", "are", "have")
        };
        let needs = if nodes == 1 { "needs" } else { "need" };
        let mut text = format!("{nodes} ");
        use fmt::Write as _;
        // writing to a String cannot fail
        let _ = match self {
            Self::NotNamed => write!(text, "{is} not named by the Job"),
            Self::NotInTarget(target) => write!(text, "{is} not in Target {target}"),
            Self::NoSuchTarget(target) => write!(text, "not chosen, there is no Target {target}"),
            Self::Label(key, value) => write!(text, "{does} not match {key}={value}"),
            Self::Affinity => write!(text, "{does} not match the affinity"),
            Self::NoAccess(namespace) => {
                write!(text, "{is} in no Target that lets namespace {namespace} in")
            }
            Self::NoSuchNode => write!(text, "{does} not exist"),
            Self::NotReady => write!(text, "not ready"),
            Self::Cordoned => write!(text, "cordoned"),
            Self::Feature(feature) => write!(text, "without {feature}"),
            Self::Taint(key, "") => write!(text, "tainted {key}"),
            Self::Taint(key, value) => write!(text, "tainted {key}={value}"),
            Self::NoSlot => write!(text, "{has} no free slot"),
            Self::Near("kubernetes.io/hostname") => write!(text, "{has} a Job that is kept apart"),
            Self::Near(key) => write!(text, "{has} a Job that is kept apart by {key}"),
            Self::Skewed(key) => write!(text, "{has} enough of this Job's Tasks by {key}"),
            Self::NoTopology(key) => write!(text, "without the label {key}"),
            Self::Kept => write!(text, "kept for work that waits longer"),
            Self::Resource(number, missing) => {
                let amount = names.show(*number, *missing);
                write!(text, "{needs} {amount} more {}", names.name(*number))
            }
        };
        text
    }
}
