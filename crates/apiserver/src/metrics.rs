//! `/metrics`: requests, their duration, watchers, objects, the store's revision. Names as in Kubernetes where it has one.

use crate::cache::Cache;
use machinery::kind::Kind;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

/// Upper bounds of the duration histogram, in seconds.
const BUCKETS: [f64; 11] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    verb: &'static str,
    group: String,
    resource: String,
    subresource: String,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Timed {
    verb: &'static str,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Resource {
    group: String,
    resource: String,
}

/// The metrics of one server.
pub struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<Request, Counter>,
    durations: Family<Timed, Histogram, fn() -> Histogram>,
    watchers: Family<Resource, Gauge>,
    objects: Family<Resource, Gauge>,
    revision: Gauge,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let make: fn() -> Histogram = || Histogram::new(BUCKETS);
        let durations = Family::new_with_constructor(make);
        let (watchers, objects) = (Family::default(), Family::default());
        let revision = Gauge::default();
        registry.register(
            "apiserver_request",
            "Requests by verb, resource and answer",
            requests.clone(),
        );
        registry.register(
            "apiserver_request_duration_seconds",
            "Duration of requests but watches",
            durations.clone(),
        );
        registry.register("apiserver_watchers", "Running watches", watchers.clone());
        registry.register("apiserver_storage_objects", "Objects by kind", objects.clone());
        registry.register(
            "prow_store_revision",
            "Revision up to which the cache is complete",
            revision.clone(),
        );
        Self {
            registry: Mutex::new(registry),
            requests,
            durations,
            watchers,
            objects,
            revision,
        }
    }

    /// Lets others add metrics of theirs to `/metrics`.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock());
    }

    pub(crate) fn request(
        &self,
        verb: &'static str,
        (group, resource, subresource): (&str, &str, &str),
        code: u16,
        took: Duration,
    ) {
        let labels = Request {
            verb,
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            code,
        };
        self.requests.get_or_create(&labels).inc();
        if verb != "watch" {
            let labels = Timed {
                verb,
                resource: labels.resource,
            };
            self.durations.get_or_create(&labels).observe(took.as_secs_f64());
        }
    }

    pub(crate) fn watching(&self, kind: &Kind) -> Watching {
        let gauge = self.watchers.get_or_create_owned(&label(kind));
        gauge.inc();
        Watching(gauge)
    }

    /// The text of `/metrics`.
    pub(crate) fn text(&self, cache: &Cache) -> Result<String, std::fmt::Error> {
        for kind in cache.kinds() {
            let count = i64::try_from(kind.len()).unwrap_or(i64::MAX);
            self.objects.get_or_create(&label(&kind.shape.kind)).set(count);
        }
        self.revision
            .set(i64::try_from(cache.revision()).unwrap_or(i64::MAX));
        let mut text = String::new();
        encode(&mut text, &self.registry.lock())?;
        Ok(text)
    }
}

fn label(kind: &Kind) -> Resource {
    Resource {
        group: kind.group.clone(),
        resource: kind.plural.clone(),
    }
}

/// A running watch is counted as long as this lives.
#[derive(Debug)]
pub(crate) struct Watching(Gauge);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.dec();
    }
}
