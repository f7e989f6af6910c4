//! HTTP to and from the terms of the API: paths, queries, bodies, answers.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod path;
pub(crate) mod query;
