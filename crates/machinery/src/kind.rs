//! A kind as data: all the generic handlers know of it.

use api::{field, identity::Identity};
use serde_json::Value;

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// Beside the namespaces.
    Cluster,
}

/// A column of `kubectl get`.
#[derive(Clone, Debug)]
pub struct Column {
    /// Heading, such as `Phase`.
    pub name: String,
    /// OpenAPI type: `string`, `integer`, `number`, `boolean` or `date`.
    pub type_: String,
    /// OpenAPI format, such as `name`, or empty.
    pub format: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// 0 is always shown, anything above only with `-o wide`.
    pub priority: i32,
    /// How to get the cell from the object.
    pub cell: Cell,
}

/// How a column gets its value.
#[derive(Clone, Debug)]
pub enum Cell {
    /// A JSONPath as in a CRD's printer columns: `.status.phase`.
    Path(String),
    /// Computed; gets the object and the time now.
    Computed(fn(&Value, jiff::Timestamp) -> Value),
}

/// Which requests a kind takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Stored durably before the answer.
    Durable,
    /// Answered from memory and flushed within a second: Events, and Leases of the namespace of node heartbeats (those
    /// of other namespaces, as leader election uses them, are durable all the same).
    Lazy,
    /// Never stored: create computes an answer (reviews).
    Virtual,
}

/// Who asks, and when.
pub struct Context<'a> {
    /// The user behind the request.
    pub user: &'a Identity,
    /// The time now.
    pub now: jiff::Timestamp,
}

/// What decoding gives besides the object.
#[derive(Debug, Default)]
pub struct Decoded {
    /// The object as typed data writes it: defaults filled in, unknown fields gone.
    pub object: Value,
    /// Paths of fields the kind does not know, each with a hint where a name is near:
    /// `spec.steps[1].shel: unknown field, did you mean "shell"?`
    pub unknown: Vec<String>,
}

/// What is special about a kind; everything else is generic.
pub trait Strategy: Send + Sync {
    /// Decodes into the typed form and back. An error names the path, what was found and what is wanted, and says
    /// "quote it" where YAML made a number or boolean of a text.
    fn decode(&self, object: Value) -> Result<Decoded, field::Error>;
    /// Makes a new object ready: resets what clients may not set, stamps who asked.
    fn prepare_create(&self, _object: &mut Value, _context: &Context<'_>) {}
    /// Makes an update ready: keeps what clients may not change.
    fn prepare_update(&self, _new: &mut Value, _old: &Value, _context: &Context<'_>) {}
    /// All mistakes of a new object.
    fn validate_create(&self, object: &Value) -> field::Errors;
    /// All mistakes of a changed one, immutable fields among them.
    fn validate_update(&self, new: &Value, old: &Value) -> field::Errors;
    /// All mistakes of a changed status.
    fn validate_status(&self, _new: &Value, _old: &Value) -> field::Errors {
        field::Errors::new()
    }
    /// What the user should know though it is no mistake; sent as `Warning` headers.
    fn warnings(&self, _object: &Value) -> Vec<String> {
        Vec::new()
    }
    /// Which names objects of this kind may have.
    fn name_rule(&self) -> NameRule {
        NameRule::Subdomain
    }
    /// Subresources besides `status` that are read and written like it: `approval`.
    fn subresources(&self) -> &'static [&'static str] {
        &[]
    }
    /// Makes a write through one of [`Strategy::subresources`] ready: keeps all that it may not change.
    fn prepare_subresource(
        &self,
        _subresource: &str,
        _new: &mut Value,
        _old: &Value,
        _context: &Context<'_>,
    ) {
    }
    /// Whether strategic merge patches are taken: core kinds only, as in Kubernetes.
    fn strategic_merge(&self) -> bool {
        false
    }
}

/// Which names objects of a kind may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 label: at most 63 of `a-z0-9-`.
    Label,
    /// RFC 1123 subdomain: labels joined by dots, at most 253 characters.
    Subdomain,
    /// Anything that can be one segment of a URL path.
    PathSegment,
}

/// A kind.
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version, such as `v1`.
    pub version: String,
    /// `Job`.
    pub kind: String,
    /// `JobList`.
    pub list_kind: String,
    /// `jobs`.
    pub plural: String,
    /// `job`.
    pub singular: String,
    /// `pj`.
    pub short_names: Vec<String>,
    /// `all`, `prow`.
    pub categories: Vec<String>,
    /// Where its objects live.
    pub scope: Scope,
    /// Columns after the name, in order.
    pub columns: Vec<Column>,
    /// Fields a field selector may name besides `metadata.name` and `metadata.namespace`: `spec.nodeName`.
    pub selectable: Vec<String>,
    /// Whether `status` is written apart from the rest.
    pub status_subresource: bool,
    /// How it is kept.
    pub storage: Storage,
    /// OpenAPI v3 schema of the object, with `$ref`s into [`Kind::definitions`].
    pub schema: Value,
    /// The named schemas `schema` refers to, as (`io.k8s.api.core.v1.Toleration`, schema).
    pub definitions: Vec<(String, Value)>,
    /// What is special about it.
    pub strategy: Box<dyn Strategy>,
}

impl Kind {
    /// `v1` or `prow.windows/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether `metadata.generation` counts changes: of our kinds, as of every custom resource; core kinds here have
    /// none.
    pub fn counts_generations(&self) -> bool {
        !self.strategy.strategic_merge()
    }

    /// `jobs.prow.windows` or `secrets`: how errors name the kind.
    pub fn qualified_plural(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}
