//! What work asks of a node, compiled once; Jobs that ask the same share one signature, and are found unplaceable together.

use super::{
    amounts::{Amounts, Names, SLOT},
    bits::Bits,
    filters::{self, Clears, Rejection},
    world::{NodeId, World},
};
use api::{
    Job,
    placement::{PreferredTerm, Toleration},
    wanted::Chooser,
};
use std::collections::{BTreeSet, HashMap};

/// The class whose work may use the one reserved slot of a node.
const EMERGENCY: &str = "prow-emergency";

/// Number of a signature.
pub(crate) type SignatureId = usize;

/// What work asks of a node, and which nodes have it.
#[derive(Debug)]
pub(crate) struct Signature {
    pub namespace: String,
    pub chooser: Chooser,
    pub tolerations: Vec<Toleration>,
    pub preferred: Vec<PreferredTerm>,
    pub requires: BTreeSet<String>,
    pub requests: Amounts,
    pub emergency: bool,
    /// Nodes that all filters pass but the one for free resources.
    pub fits: Bits,
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
    pub fn take(&mut self, job: &Job, world: &mut World) -> SignatureId {
        let text = text(job);
        if let Some(id) = self.by_text.get(&text) {
            if let Some(signature) = self.all[*id].as_mut() {
                signature.jobs += 1;
            }
            return *id;
        }
        let mut signature = compile(job, &mut world.names);
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
        self.fits.set(node, fits);
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
            .or_else(|| filters::RESOURCES.rejects(self, &world.nodes[node], world))
    }
}

/// Everything the filters and scores read, as text: equal texts are equal signatures.
fn text(job: &Job) -> String {
    let spec = &job.spec;
    let choice = (!spec.is_per_node()).then_some((
        &spec.target_ref,
        &spec.node_selector,
        &spec.affinity,
        &spec.node_names,
        &spec.exclude_nodes,
    ));
    let needs = (
        &spec.tolerations,
        &spec.resources,
        &spec.priority_class_name,
        requires(job),
    );
    // these are plain structs with string keys; a failure would only mean that a signature is not shared
    serde_json::to_string(&(job.namespace(), choice, needs)).unwrap_or_else(|_| job.uid().to_owned())
}

fn compile(job: &Job, names: &mut Names) -> Signature {
    let spec = &job.spec;
    let mut requests = spec
        .resources
        .as_ref()
        .map(|r| names.read(&r.requests))
        .unwrap_or_default();
    *requests.at(SLOT) = 1;
    Signature {
        namespace: job.namespace().to_owned(),
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
        emergency: spec.priority_class_name == EMERGENCY,
        fits: Bits::default(),
        clears: Clears::NOTHING,
        cursor: 0,
        queues: BTreeSet::new(),
        jobs: 1,
    }
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
