//! What the tasks on this host have taken of it. The scheduler reckons with the same numbers; the agent checks before it claims, since two
//! schedulers, or one with old news, may both have counted on the last slot.

use api::{JobSpec, node::SLOTS, placement::ResourceList};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

const CPU: &str = "cpu";

/// Capacity, and what is taken of it, by resource; cpu in thousandths.
#[derive(Clone)]
pub struct Capacity(Arc<State>);

struct State {
    all: BTreeMap<String, u64>,
    taken: Mutex<BTreeMap<String, u64>>,
}

/// A task's share; given back when dropped.
pub struct Share {
    state: Arc<State>,
    amounts: BTreeMap<String, u64>,
}

impl Capacity {
    /// The capacity a node reports.
    pub fn new(all: &ResourceList) -> Self {
        Self(Arc::new(State {
            all: amounts(all),
            taken: Mutex::default(),
        }))
    }

    /// Takes what a task needs, or names what there is too little of. Resources this host does not count are the scheduler's business.
    pub fn take(&self, spec: &JobSpec) -> Result<Share, String> {
        let wanted = wanted(spec);
        let extra = u64::from(spec.is_emergency());
        let mut taken = self.0.taken.lock();
        for (name, amount) in &wanted {
            let Some(all) = self.0.all.get(name) else { continue };
            let all = if name == SLOTS { all + extra } else { *all };
            let in_use = taken.get(name).copied().unwrap_or_default();
            if in_use + amount > all {
                return Err(format!("{name}: {amount} needed, {in_use} of {all} in use"));
            }
        }
        add(&mut taken, &wanted);
        Ok(Share {
            state: self.0.clone(),
            amounts: wanted,
        })
    }

    /// Counts a task that is there already, whether there is room or not.
    pub fn count(&self, spec: &JobSpec) -> Share {
        let amounts = wanted(spec);
        add(&mut self.0.taken.lock(), &amounts);
        Share {
            state: self.0.clone(),
            amounts,
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.state.taken.lock();
        for (name, amount) in &self.amounts {
            if let Some(in_use) = taken.get_mut(name) {
                *in_use = in_use.saturating_sub(*amount);
            }
        }
    }
}

fn add(taken: &mut BTreeMap<String, u64>, amounts: &BTreeMap<String, u64>) {
    for (name, amount) in amounts {
        *taken.entry(name.clone()).or_default() += amount;
    }
}

fn wanted(spec: &JobSpec) -> BTreeMap<String, u64> {
    let mut wanted = spec
        .resources
        .as_ref()
        .map(|r| amounts(&r.requests))
        .unwrap_or_default();
    wanted.entry(SLOTS.to_owned()).or_insert(1);
    wanted
}

fn amounts(list: &ResourceList) -> BTreeMap<String, u64> {
    let read = |(name, quantity): (&String, &api::quantity::Quantity)| {
        let amount = if name == CPU {
            quantity.milli()
        } else {
            quantity.value()
        };
        amount.map(|amount| (name.clone(), amount))
    };
    list.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{placement::Resources, quantity::Quantity};

    fn list(pairs: &[(&str, &str)]) -> ResourceList {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), Quantity((*v).to_owned())))
            .collect()
    }

    fn job(requests: &[(&str, &str)]) -> JobSpec {
        JobSpec {
            resources: Some(Resources {
                requests: list(requests),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn what_a_task_gives_back_another_can_take() {
        let capacity = Capacity::new(&list(&[("cpu", "2"), ("slots", "8")]));
        let first = capacity.take(&job(&[("cpu", "1500m")])).ok().unwrap();
        let refused = capacity.take(&job(&[("cpu", "1")])).err().unwrap();
        assert!(refused.contains("cpu"), "{refused}");
        drop(first);
        assert!(capacity.take(&job(&[("cpu", "2"), ("licences", "9")])).is_ok());
    }

    #[test]
    fn every_task_takes_a_slot_and_emergencies_find_one_more() {
        let capacity = Capacity::new(&list(&[("slots", "1")]));
        let _first = capacity.count(&job(&[]));
        assert!(capacity.take(&job(&[])).is_err());
        let emergency = JobSpec {
            priority_class_name: api::job::EMERGENCY.into(),
            ..job(&[])
        };
        let _second = capacity.take(&emergency).ok().unwrap();
        assert!(capacity.take(&emergency).is_err());
    }
}
