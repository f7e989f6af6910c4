//! Giving Jobs their signatures, and new ones when what keeps Jobs apart changes.

use super::{
    Core,
    apart::Apart,
    signature::{Signature, SignatureId},
};
use api::{Job, placement::AntiAffinityTerm};
use jiff::Timestamp;
use std::sync::Arc;

/// What a Task was counted into: its terms, and the signature of a spread Job.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub apart: Arc<Apart>,
    pub spread: Option<SignatureId>,
}

impl Core {
    /// The signature of a Job, which counts as one more user of it. A term that is new gives those it selects another signature.
    pub(super) fn sign(&mut self, job: &Job, now: Timestamp) -> SignatureId {
        let (apart, new_terms) = self.apart_of(job);
        let id = self.signatures.take(job, apart, &mut self.world);
        if new_terms {
            self.resign_selected(job.namespace(), now);
        }
        id
    }

    fn apart_of(&mut self, job: &Job) -> (Apart, bool) {
        let (namespace, mut new) = (job.namespace(), false);
        let anti = job
            .spec
            .affinity
            .as_ref()
            .and_then(|a| a.job_anti_affinity.as_ref());
        let mut intern = |term: &AntiAffinityTerm| {
            let column = self.world.column(&term.topology_key);
            let (id, is_new) = self.world.terms.intern(namespace, term, column);
            new |= is_new;
            id
        };
        let mut apart = Apart::default();
        if let Some(anti) = anti {
            let required = &anti.required_during_scheduling_ignored_during_execution;
            let preferred = &anti.preferred_during_scheduling_ignored_during_execution;
            apart.holds = required.iter().map(&mut intern).collect();
            apart.prefers = preferred
                .iter()
                .map(|p| (p.weight, intern(&p.job_affinity_term)))
                .collect();
        }
        let none = Default::default();
        let labels = job.metadata.labels.as_ref().unwrap_or(&none);
        apart.selected = self.world.terms.selecting(namespace, labels);
        (apart, new)
    }

    fn resign_selected(&mut self, namespace: &str, now: Timestamp) {
        let known = self.jobs.values().filter(|s| s.job.namespace() == namespace);
        let uids: Vec<_> = known.map(|s| s.uid().clone()).collect();
        for uid in uids {
            self.resign(&uid, now);
        }
    }

    /// Gives a Job another signature if other terms concern it now than before.
    pub(super) fn resign(&mut self, uid: &Arc<str>, now: Timestamp) {
        let Some(job) = self.jobs.get(uid).map(|s| s.job.clone()) else {
            return;
        };
        let (apart, _) = self.apart_of(&job); // its own terms are known already
        let old = self.jobs.get(uid).map(|s| s.signature);
        let Some(old) = old.filter(|id| self.signatures.get(*id).is_some_and(|s| *s.apart != apart)) else {
            return;
        };
        self.wake_signature(old, now);
        self.leave_lane(uid);
        let tasks: Vec<_> = self.tasks_of.get(uid).into_iter().flatten().cloned().collect();
        tasks.iter().for_each(|name| self.count_near(name, false));
        let new = self.signatures.take(&job, apart, &mut self.world);
        if let Some(state) = self.jobs.get_mut(uid) {
            state.signature = new;
        }
        self.release_signature(old);
        tasks.iter().for_each(|name| self.count_near(name, true));
        self.touch(uid, now);
    }

    /// Counts what a Task holds a place of into its terms and its spread, or takes it out again.
    pub(super) fn count_near(&mut self, name: &str, more: bool) {
        let Some(task) = self.tasks.get_mut(name) else {
            return;
        };
        if let Some(counted) = task.counted.take() {
            self.world
                .terms
                .count(&counted.apart, task.node, false, &self.world.topologies);
            if let Some(signature) = counted.spread.and_then(|id| self.signatures.get_mut(id)) {
                signature.count(task.node, false, &self.world);
            }
        }
        let signature = self.jobs.get(&task.job).map(|s| s.signature);
        let Some(id) = signature.filter(|_| more && task.holds.is_some()) else {
            return;
        };
        let Some(signature) = self.signatures.get_mut(id).filter(|s| s.is_near()) else {
            return;
        };
        let counted = Counted {
            apart: signature.apart.clone(),
            spread: (!signature.spread.is_empty()).then_some(id),
        };
        signature.count(task.node, true, &self.world);
        self.world
            .terms
            .count(&counted.apart, task.node, true, &self.world.topologies);
        task.counted = Some(counted);
    }

    /// Lets a signature go if the last Job that had it did, and terms that none names any longer.
    pub(super) fn release_signature(&mut self, id: SignatureId) {
        let named = self.signatures.get(id).is_some_and(|s| !s.apart.is_empty());
        self.signatures.release(id);
        if self.signatures.get(id).is_some() {
            return;
        }
        self.parked.remove(&id);
        self.shunning.remove(&id);
        if named {
            let names = |s: &Signature, term| {
                s.apart.holds.contains(&term)
                    || s.apart.selected.contains(&term)
                    || s.apart.prefers.iter().any(|(_, id)| *id == term)
            };
            let signatures = &self.signatures;
            self.world
                .terms
                .keep(|term| signatures.iter().any(|s| names(s, term)));
        }
    }
}
