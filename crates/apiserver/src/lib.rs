//! A Kubernetes-compatible API server over a [`store::Store`], generic over kinds given as data ([`machinery::kind::Kind`]).
//!
//! A request's journey can be read off the modules: [`serve`] (connections, TLS) → [`handle`] (the order of things) →
//! [`authn`] (who) → [`authz`] (may they) → [`verbs`] (create, get, list, watch, update, patch, delete) → `verbs::admit`
//! (typed decoding, defaults, rules, size) → [`call`] (commit) → the store. What the store commits comes back through
//! the pump into [`cache`], which answers all reads and feeds all watchers; a write is answered once it is there.
//!
//! Beside that path: [`enrol`] (tokens, certificates, Nodes), [`reviews`] (questions about oneself), [`namespace`] and
//! [`rules`] (what deleting means for Namespaces, Jobs and Tasks), [`documents`] (discovery, OpenAPI), [`health`],
//! [`metrics`]. Everything about formats and rules of the Kubernetes API that needs no I/O is in `machinery`.
//!
//! Entry points: [`Server::start`], [`Server::serve`], [`Server::client`].

mod authn;
mod authz;
mod cache;
mod call;
mod documents;
mod enrol;
mod handle;
mod health;
mod inner;
mod metrics;
mod namespace;
mod object;
mod random;
mod reviews;
mod rules;
mod serve;
mod server;
#[cfg(test)]
mod testing;
mod verbs;
mod wire;

pub use cache::FillError;
pub use enrol::SIGNER;
pub use metrics::Metrics;
pub use object::Damaged;
pub use random::Random;
pub use server::{Options, Server, StartError};

/// Namespace of what the system keeps for itself: enrolment tokens, leader Leases.
pub const SYSTEM_NAMESPACE: &str = "prow-system";
/// Namespace of the heartbeat Leases of nodes, named as the nodes are.
pub const NODE_LEASES: &str = "prow-node-leases";
