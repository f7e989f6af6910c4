//! One request on one kind, as the verbs see it.

use crate::cache::KindCache;
use crate::inner::Inner;
use crate::object::Object;
use crate::wire::query::Query;
use api::identity::Identity;
use jiff::Timestamp;
use machinery::kind::{Context, Kind, Storage};
use machinery::negotiate::Accept;
use machinery::selector::{FieldSelector, LabelSelector};
use machinery::status::Status;
use machinery::table::IncludeObject;
use std::sync::Arc;
use store::{Durability, Guard, Revision, StoreError, Write};

/// See the module.
pub(crate) struct Call<'a> {
    pub inner: &'a Arc<Inner>,
    pub user: &'a Identity,
    pub cache: &'a Arc<KindCache>,
    /// Empty for cluster kinds and for lists over all namespaces.
    pub namespace: &'a str,
    /// Empty for collections.
    pub name: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    pub query: &'a Query<'a>,
    pub accept: Accept,
    pub now: Timestamp,
}

/// A write whose guard did not hold, with the object as it is now.
pub(crate) struct Lost(pub Option<Arc<Object>>);

impl Call<'_> {
    pub(crate) fn kind(&self) -> &Kind {
        &self.cache.shape.kind
    }

    pub(crate) fn context(&self) -> Context<'_> {
        Context {
            user: self.user,
            now: self.now,
        }
    }

    /// The object the path names.
    pub(crate) fn current(&self) -> Result<Arc<Object>, Status> {
        self.cache
            .get(self.namespace, self.name)
            .ok_or_else(|| Status::not_found(self.kind(), self.name))
    }

    /// Whether the write is only tried: `dryRun=All`.
    pub(crate) fn dry_run(&self) -> Result<bool, Status> {
        match self.query.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(Status::bad_request(format!(
                "dryRun: Unsupported value: \"{other}\": supported values: \"All\""
            ))),
        }
    }

    /// How much of an object goes into a row of a Table.
    pub(crate) fn include(&self) -> Result<IncludeObject, Status> {
        match self.query.get("includeObject") {
            None | Some("Metadata") => Ok(IncludeObject::Metadata),
            Some("None") => Ok(IncludeObject::None),
            Some("Object") => Ok(IncludeObject::Object),
            Some(other) => Err(Status::bad_request(format!(
                "includeObject: Unsupported value: \"{other}\": supported values: \"None\", \"Metadata\", \"Object\""
            ))),
        }
    }

    /// What a list, watch or deletecollection is about.
    pub(crate) fn filter(&self) -> Result<Filter, Status> {
        Filter::new(self.cache, self.namespace, self.name, self.query)
    }

    /// Writes an object, or removes it if `stored` is `None`. Returns once the cache holds the result.
    pub(crate) async fn commit(
        &self,
        name: &str,
        stored: Option<Vec<u8>>,
        guard: Guard,
    ) -> Result<Result<(Revision, Option<Arc<Object>>), Lost>, Status> {
        let shape = &self.cache.shape;
        let key: Arc<str> = shape.key(self.namespace, name).into();
        let kept = stored.map(bytes::Bytes::from);
        let write = Write {
            key,
            value: kept.clone(),
            guard,
        };
        let results = self
            .inner
            .store
            .commit(vec![write], self.durability())
            .await
            .map_err(|error| refused(&error))?;
        let object = |bytes: &[u8], revision| {
            Object::new(shape, self.namespace.into(), name.into(), bytes, revision)
                .map(Arc::new)
                .map_err(Status::internal)
        };
        match results.into_iter().next() {
            Some(Ok(revision)) => {
                self.inner.cache.reaches(revision).await;
                let Some(kept) = kept else {
                    return Ok(Ok((revision, None)));
                };
                let cached = self
                    .cache
                    .get(self.namespace, name)
                    .filter(|o| o.revision == revision);
                let object = cached.map_or_else(|| object(&kept, revision), Ok)?;
                Ok(Ok((revision, Some(object))))
            }
            Some(Err(conflict)) => {
                let current = conflict
                    .current
                    .map(|entry| object(&entry.value, entry.revision))
                    .transpose()?;
                Ok(Err(Lost(current)))
            }
            None => Err(Status::internal("the store answered nothing")),
        }
    }

    /// Node heartbeats and Events may be lost in a crash, as they are soon repeated; the Leases that elect leaders or
    /// stand for locks are not heartbeats.
    fn durability(&self) -> Durability {
        let heartbeat = self.kind().plural == "leases" && self.namespace == crate::NODE_LEASES;
        let event = self.kind().plural == "events";
        if self.kind().storage == Storage::Lazy && (heartbeat || event) {
            Durability::Lazy
        } else {
            Durability::Durable
        }
    }
}

fn refused(error: &StoreError) -> Status {
    match error {
        StoreError::Full(_) => Status::unavailable(error.to_string(), 10),
        StoreError::Failed(_) | StoreError::Closed => Status::unavailable(error.to_string(), 1),
        StoreError::Database(_) => Status::internal(error),
    }
}

/// Which objects a request is about.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// Empty for all.
    pub namespace: String,
    /// Empty for all.
    pub name: String,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

impl Filter {
    pub(crate) fn new(
        cache: &KindCache,
        namespace: &str,
        name: &str,
        query: &Query<'_>,
    ) -> Result<Self, Status> {
        let labels: LabelSelector = query.get("labelSelector").unwrap_or_default().parse()?;
        let fields: FieldSelector = query.get("fieldSelector").unwrap_or_default().parse()?;
        fields.check(&cache.shape.kind)?;
        let mut filter = Self {
            namespace: namespace.into(),
            name: name.into(),
            labels,
            fields,
        };
        if filter.name.is_empty()
            && let Some(name) = filter.fields.exact("metadata.name")
        {
            filter.name = name.into();
        }
        if filter.namespace.is_empty()
            && let Some(namespace) = filter.fields.exact("metadata.namespace")
        {
            filter.namespace = namespace.into();
        }
        Ok(filter)
    }

    /// Whether everything of the namespace matches.
    pub(crate) fn is_open(&self) -> bool {
        self.name.is_empty() && self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether an object is meant.
    pub(crate) fn matches(&self, kind: &Kind, object: &Object) -> bool {
        (self.namespace.is_empty() || *object.namespace == *self.namespace)
            && (self.name.is_empty() || *object.name == *self.name)
            && self.fields.matches(|path| object.field_at(kind, path))
            && self.labels.matches(|key| object.label(key))
    }

    /// The indexed field that narrows it most: the name, else the first selectable one it fixes.
    pub(crate) fn index(&self, kind: &Kind) -> Option<(usize, Box<str>)> {
        if !self.name.is_empty() {
            return Some((0, self.name.as_str().into()));
        }
        let fixed = |(i, path): (usize, &String)| Some((i + 1, Box::from(self.fields.exact(path)?)));
        kind.selectable.iter().enumerate().find_map(fixed)
    }
}
