//! Queues: in which order Jobs are tried, and what holds a queue back.
//!
//! Jobs of one signature form a lane; the queue looks at the heads of lanes only. A lane whose head fits nowhere is parked as a
//! whole and taken up again by an event, so neither costs anything by the number of Jobs that wait behind.

use super::{amounts::Amounts, signature::SignatureId};
use api::{
    QueueSpec,
    placement::Labels,
    queue::{Ordering, Preemption, StopPolicy},
};
use jiff::Timestamp;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// How many lanes are looked at for starved work.
const LOOKED_AT: usize = 16;

/// The place of a Job in its queue: priority, age, uid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Order {
    pub priority: Reverse<i32>,
    pub created: Timestamp,
    pub uid: Arc<str>,
}

/// Jobs that are tried together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LaneId {
    /// Jobs of one signature.
    Shared(SignatureId),
    /// A PerNode Job, whose items carry their nodes.
    Own(Arc<str>),
}

#[derive(Debug, Default)]
struct Lane {
    jobs: BTreeSet<Order>,
    parked: bool,
}

/// Why a queue starts nothing, or not this Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// There is no such Queue.
    Missing,
    /// Its stopPolicy.
    Stopped,
    /// Its maxRunning.
    Full(i32),
    /// It does not select the namespace.
    Closed,
}

/// A queue, which may be named by Jobs and not exist.
#[derive(Debug, Default)]
pub(crate) struct QueueState {
    pub spec: Option<QueueSpec>,
    lanes: BTreeMap<LaneId, Lane>,
    heads: BTreeSet<(Order, LaneId)>,
    parked: BTreeSet<(Order, LaneId)>,
    /// Share of the fleet it was given so far, by weight.
    pub served: f64,
    /// Tasks that have not ended.
    pub running: i32,
    /// Its quota, by the number of the resource.
    pub quota: Vec<(usize, u64)>,
    /// What its Tasks hold.
    pub used: Amounts,
    /// Lanes parked for lack of quota.
    short: BTreeSet<LaneId>,
}

impl QueueState {
    pub fn tier(&self) -> i32 {
        self.spec.as_ref().map_or(0, |s| s.priority)
    }

    /// Why nothing of this queue starts, if so.
    pub fn held(&self) -> Option<Held> {
        let Some(spec) = &self.spec else {
            return Some(Held::Missing);
        };
        if spec.stop_policy != StopPolicy::None {
            return Some(Held::Stopped);
        }
        spec.max_running
            .filter(|max| self.running >= *max)
            .map(Held::Full)
    }

    /// Whether it takes Jobs of a namespace with these labels.
    pub fn selects(&self, labels: &Labels) -> bool {
        let selector = self.spec.as_ref().and_then(|s| s.namespace_selector.as_ref());
        selector.is_none_or(|s| s.matches(labels))
    }

    /// The Job to be tried next.
    pub fn head(&self) -> Option<&(Order, LaneId)> {
        let head = self.heads.first()?;
        let strict = self
            .spec
            .as_ref()
            .is_some_and(|s| s.ordering == Ordering::StrictFifo);
        let behind = strict && self.parked.first().is_some_and(|parked| parked < head);
        (!behind).then_some(head)
    }

    /// Whether anything could be tried.
    pub fn has_heads(&self) -> bool {
        !self.heads.is_empty()
    }

    /// The first Jobs of all lanes, parked or not, in order.
    pub fn firsts(&self) -> impl Iterator<Item = &(Order, LaneId)> {
        let mut firsts: Vec<_> = self
            .heads
            .iter()
            .take(LOOKED_AT)
            .chain(self.parked.iter().take(LOOKED_AT))
            .collect();
        firsts.sort();
        firsts.into_iter()
    }

    pub fn insert(&mut self, order: Order, lane: LaneId) {
        self.edit(lane, |jobs| {
            jobs.insert(order);
        });
    }

    pub fn remove(&mut self, order: &Order, lane: LaneId) {
        self.edit(lane, |jobs| {
            jobs.remove(order);
        });
    }

    fn edit(&mut self, id: LaneId, edit: impl FnOnce(&mut BTreeSet<Order>)) {
        let mut lane = self.lanes.remove(&id).unwrap_or_default();
        let before = lane.jobs.first().cloned();
        edit(&mut lane.jobs);
        let after = lane.jobs.first().cloned();
        if before != after {
            let heads = if lane.parked {
                &mut self.parked
            } else {
                &mut self.heads
            };
            if let Some(order) = before {
                heads.remove(&(order, id.clone()));
            }
            if let Some(order) = after {
                heads.insert((order, id.clone()));
            }
        }
        if !lane.jobs.is_empty() {
            self.lanes.insert(id, lane);
        }
    }

    pub fn is_parked(&self, id: &LaneId) -> bool {
        self.lanes.get(id).is_some_and(|l| l.parked)
    }

    /// Parks a lane or takes it up again.
    pub fn park(&mut self, id: &LaneId, park: bool) {
        let Some(lane) = self.lanes.get_mut(id) else {
            return;
        };
        if lane.parked == park {
            return;
        }
        lane.parked = park;
        if let Some(order) = lane.jobs.first() {
            let head = (order.clone(), id.clone());
            let (from, to) = if park {
                (&mut self.heads, &mut self.parked)
            } else {
                (&mut self.parked, &mut self.heads)
            };
            from.remove(&head);
            to.insert(head);
        }
    }

    /// Parks a lane for lack of quota.
    pub fn park_short(&mut self, id: &LaneId) {
        self.park(id, true);
        self.short.insert(id.clone());
    }

    /// A Job came first in a parked lane: it may push out what the others could not.
    pub fn try_anew(&mut self, order: &Order, id: &LaneId) {
        let first = self.lanes.get(id).and_then(|lane| lane.jobs.first());
        if self.preempts() && first == Some(order) {
            self.park(id, false);
        }
    }

    /// Whether its work may push out lower work.
    pub fn preempts(&self) -> bool {
        let spec = self.spec.as_ref();
        spec.is_some_and(|s| s.preemption == Preemption::LowerPriority)
    }

    /// Whether a lane is parked for lack of quota.
    pub fn is_short(&self, id: &LaneId) -> bool {
        self.short.contains(id) && self.is_parked(id)
    }

    /// Takes up the lanes that lacked quota.
    pub fn wake_short(&mut self) {
        for id in std::mem::take(&mut self.short) {
            self.park(&id, false);
        }
    }

    /// Takes up all lanes again.
    pub fn wake_all(&mut self) {
        let ids: Vec<LaneId> = self.lanes.keys().cloned().collect();
        ids.iter().for_each(|id| self.park(id, false));
    }
}
