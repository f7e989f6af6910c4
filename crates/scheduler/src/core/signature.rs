//! What work asks of a node, compiled once; Jobs that ask the same share one signature, and are found unplaceable together.

use super::{
    amounts::{Amounts, SLOT},
    apart::Apart,
    bits::Bits,
    filters::{self, Clears, Rejection},
    spread::Spread,
    topology::Move,
    world::{NodeId, World},
};
use api::{
    Job,
    job::Impact,
    placement::{PreferredTerm, Toleration},
    wanted::Chooser,
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Number of a signature.
pub(crate) type SignatureId = usize;

/// What work asks of a node, and which nodes have it.
#[derive(Debug)]
pub(crate) struct Signature {
    pub namespace: String,
    /// The uid of a Job that takes nodes out of service; then it shares no signature.
    pub disruptive: Option<String>,
    pub chooser: Chooser,
    pub tolerations: Vec<Toleration>,
    pub preferred: Vec<PreferredTerm>,
    pub requires: BTreeSet<String>,
    pub requests: Amounts,
    pub emergency: bool,
    /// Nodes that all filters pass but the one for free resources.
    pub fits: Bits,
    /// Which Jobs it keeps apart from.
    pub apart: Arc<Apart>,
    /// How evenly its one Job is spread.
    pub spread: Vec<Spread>,
    /// Nodes found to have too little of something free, as of an entry of the log of freed nodes.
    pub full: Bits,
    pub full_as_of: usize,
    /// What could clear the rejections there are.
    pub clears: Clears,
    /// Where the search goes on.
    pub cursor: NodeId,
    /// Names of queues with work of this signature.
    pub queues: BTreeSet<String>,
    jobs: usize,
}

/// All signatures in use.
#[derive(Debug, Default)]
pub(crate) struct Signatures {
    all: Vec<Option<Signature>>,
    by_text: HashMap<String, SignatureId>,
    texts: HashMap<SignatureId, String>,
}

impl Signatures {
    /// The signature of a Job, which counts as one more user of it.
    pub fn take(&mut self, job: &Job, apart: Apart, world: &mut World) -> SignatureId {
        let text = text(job, &apart);
        if let Some(id) = self.by_text.get(&text) {
            if let Some(signature) = self.all[*id].as_mut() {
                signature.jobs += 1;
            }
            return *id;
        }
        let mut signature = compile(job, apart, world);
        for node in 0..world.nodes.len() {
            signature.judge(node, world);
        }
        let id = self
            .all
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.all.len());
        if id == self.all.len() {
            self.all.push(None);
        }
        self.all[id] = Some(signature);
        self.by_text.insert(text.clone(), id);
        self.texts.insert(id, text);
        id
    }

    /// One user less; the last one takes the signature along.
    pub fn release(&mut self, id: SignatureId) {
        let Some(signature) = self.get_mut(id) else { return };
        signature.jobs -= 1;
        if signature.jobs == 0 {
            self.all[id] = None;
            if let Some(text) = self.texts.remove(&id) {
                self.by_text.remove(&text);
            }
        }
    }

    pub fn get(&self, id: SignatureId) -> Option<&Signature> {
        self.all.get(id)?.as_ref()
    }

    pub fn get_mut(&mut self, id: SignatureId) -> Option<&mut Signature> {
        self.all.get_mut(id)?.as_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Signature> {
        self.all.iter().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (SignatureId, &mut Signature)> {
        self.all
            .iter_mut()
            .enumerate()
            .filter_map(|(id, s)| Some((id, s.as_mut()?)))
    }
}

impl Signature {
    /// Asks the filters about a node anew; tells whether it fits now.
    pub fn judge(&mut self, node: NodeId, world: &World) -> bool {
        let rejection = self.rejection(node, world);
        let cleared_by = rejection.map(|(filter, _)| filter.cleared_by());
        let fits = cleared_by.is_none();
        self.clears |= cleared_by.unwrap_or(Clears::NOTHING);
        if self.fits.set(node, fits) {
            self.spread.iter_mut().for_each(Spread::outdate);
        }
        fits
    }

    fn rejection<'a>(
        &'a self,
        node: NodeId,
        world: &'a World,
    ) -> Option<(&'static dyn filters::Filter, Rejection<'a>)> {
        let node = &world.nodes[node];
        if !node.exists {
            return Some((filters::READY, Rejection::NoSuchNode));
        }
        filters::STANDING
            .iter()
            .find_map(|filter| Some((*filter, filter.rejects(self, node, world)?)))
    }

    /// The first reason why a node will not do, free resources included.
    pub fn explain<'a>(&'a self, node: NodeId, world: &'a World) -> Option<Rejection<'a>> {
        self.rejection(node, world)
            .map(|(_, rejection)| rejection)
            .or_else(|| self.rejects_now(node, world))
    }

    /// The first of the reasons that come and go with Tasks.
    pub fn rejects_now<'a>(&'a self, node: NodeId, world: &'a World) -> Option<Rejection<'a>> {
        let node = &world.nodes[node];
        filters::PASSING
            .iter()
            .find_map(|filter| filter.rejects(self, node, world))
    }

    /// The same, but for free resources.
    pub fn rejects_beside_room<'a>(&'a self, node: NodeId, world: &'a World) -> Option<Rejection<'a>> {
        let node = &world.nodes[node];
        filters::PASSING[1..]
            .iter()
            .find_map(|filter| filter.rejects(self, node, world))
    }

    /// A node has another value of a label now.
    pub fn moved(&mut self, change: Move, world: &World) {
        for spread in &mut self.spread {
            spread.moved(change, &world.topologies);
        }
    }

    /// Whether it matters where Tasks of it are.
    pub fn is_near(&self) -> bool {
        !self.apart.is_empty() || !self.spread.is_empty()
    }

    /// One Task of its one Job more or less on a node.
    pub fn count(&mut self, node: NodeId, more: bool, world: &World) {
        for spread in &mut self.spread {
            spread.count(node, more, &world.topologies);
        }
    }

    /// Brings what depends on changes since the last look up to date.
    pub fn refresh(&mut self, world: &World) {
        world.freed.catch_up(&mut self.full, &mut self.full_as_of);
        for spread in &mut self.spread {
            spread.refresh(&self.fits, &world.topologies);
        }
    }
}

/// Everything the filters and scores read, as text: equal texts are equal signatures.
fn text(job: &Job, apart: &Apart) -> String {
    let spec = &job.spec;
    let choice = (!spec.is_per_node()).then_some((
        &spec.target_ref,
        &spec.node_selector,
        spec.affinity.as_ref().map(|a| &a.node_affinity),
        &spec.node_names,
        &spec.exclude_nodes,
    ));
    let needs = (
        &spec.tolerations,
        &spec.resources,
        &spec.priority_class_name,
        requires(job),
        disruptive(job),
    );
    let near = (&apart.holds, &apart.prefers, &apart.selected);
    // another Job's Tasks do not count for a spread, so it is shared with none
    let spread = (!spec.topology_spread_constraints.is_empty())
        .then(|| (&spec.topology_spread_constraints, job.uid()));
    // these are plain structs with string keys; a failure would only mean that a signature is not shared
    serde_json::to_string(&(job.namespace(), choice, needs, near, spread))
        .unwrap_or_else(|_| job.uid().to_owned())
}

fn compile(job: &Job, apart: Apart, world: &mut World) -> Signature {
    let spec = &job.spec;
    let mut requests = spec
        .resources
        .as_ref()
        .map(|r| world.names.read(&r.requests))
        .unwrap_or_default();
    *requests.at(SLOT) = 1;
    Signature {
        namespace: job.namespace().to_owned(),
        disruptive: disruptive(job),
        // the members of a PerNode Job are chosen already
        chooser: if spec.is_per_node() {
            Chooser::default()
        } else {
            Chooser::of(spec)
        },
        tolerations: spec.tolerations.clone(),
        preferred: spec
            .affinity
            .as_ref()
            .and_then(|a| a.node_affinity.as_ref())
            .map(|a| a.preferred_during_scheduling_ignored_during_execution.clone())
            .unwrap_or_default(),
        requires: requires(job),
        requests,
        emergency: spec.is_emergency(),
        apart: Arc::new(apart),
        spread: spec
            .topology_spread_constraints
            .iter()
            .map(|constraint| Spread::new(constraint, world.column(&constraint.topology_key)))
            .collect(),
        full: Bits::default(),
        full_as_of: world.freed.end(),
        fits: Bits::default(),
        clears: Clears::NOTHING,
        cursor: 0,
        queues: BTreeSet::new(),
        jobs: 1,
    }
}

fn disruptive(job: &Job) -> Option<String> {
    (job.spec.impact == Impact::Disruptive).then(|| job.uid().to_owned())
}

/// Features a node must have: the shells its steps name. Default shells are everywhere.
fn requires(job: &Job) -> BTreeSet<String> {
    let known = ["powershell", "pwsh", "cmd", "bash", "sh", "python"];
    job.spec
        .all_steps()
        .filter_map(|(_, _, step)| step.shell.as_deref())
        .filter(|shell| known.contains(shell))
        .map(|shell| format!("{}{shell}", filters::SHELL_PREFIX))
        .collect()
}
