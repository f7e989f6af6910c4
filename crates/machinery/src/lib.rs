//! The wire formats and rules of the Kubernetes API, pure: no I/O, no async, no clock; the API server drives it.
//!
//! A request's journey: [`negotiate`] reads the media types, [`decode`] (with [`protobuf`]) or [`patch`] makes a JSON
//! value of the body, the kind's [`kind::Strategy`] (built by [`typed`] for our kinds, by [`core_kinds`] for Kubernetes')
//! makes a typed object of it, [`metadata`] checks what all objects share, [`table`] renders it for `kubectl get`, and
//! whatever goes wrong becomes a [`status::Status`]. [`discovery`] and [`openapi`] tell clients which kinds there are.

pub mod core_kinds;
pub mod decode;
pub mod discovery;
pub mod kind;
pub mod metadata;
pub mod negotiate;
pub mod openapi;
pub mod patch;
pub mod protobuf;
pub mod schema;
pub mod selector;
pub mod status;
pub mod table;
pub mod typed;
