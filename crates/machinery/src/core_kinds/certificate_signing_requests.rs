//! `certificatesigningrequests.certificates.k8s.io`: how agents get their client certificates.

use super::{Shape, columns, kind as core};
use crate::{
    kind::{Context, Kind, Scope, Storage},
    metadata::{label_key, timestamp},
    typed::Rules,
};
use api::field::{Errors, Path};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest as Csr, CertificateSigningRequestCondition as Condition,
};
use serde_json::Value;

const PEM: &str = "-----BEGIN CERTIFICATE REQUEST-----";
/// Conditions that only the subresource `approval` sets.
const DECISIONS: [&str; 2] = ["Approved", "Denied"];

struct CertificateSigningRequests;

impl Rules for CertificateSigningRequests {
    type Object = Csr;

    /// Who asks is what the server saw, whatever the client wrote.
    fn prepare_create(&self, object: &mut Csr, context: &Context<'_>) {
        object.spec.username = Some(context.user.name.clone());
        object.spec.groups = Some(context.user.groups.clone());
        object.spec.uid = None;
        object.spec.extra = None;
    }

    fn prepare_update(&self, new: &mut Csr, old: &Csr, _context: &Context<'_>) {
        new.spec = old.spec.clone();
    }

    /// `approval` sets conditions; a new one is stamped.
    fn prepare_subresource(&self, _subresource: &str, new: &mut Csr, old: &Csr, context: &Context<'_>) {
        let mut conditions = new.status.take().and_then(|s| s.conditions).unwrap_or_default();
        *new = old.clone();
        let before = old.status.iter().flat_map(|s| s.conditions.iter().flatten());
        let before: Vec<_> = before.collect();
        conditions
            .iter_mut()
            .filter(|c| !before.contains(&&**c))
            .for_each(|c| stamp(c, context.now));
        new.status.get_or_insert_default().conditions = Some(conditions);
    }

    fn validate(&self, object: &Csr) -> Errors {
        let mut errors = Errors::new();
        let (path, spec) = (Path::new("spec"), &object.spec);
        if !String::from_utf8_lossy(&spec.request.0)
            .trim_start()
            .starts_with(PEM)
        {
            let hint = format!("must be a PKCS#10 request in PEM that begins with {PEM}");
            errors.invalid(&path.child("request"), "", hint);
        }
        if label_key(&spec.signer_name).is_err() || !spec.signer_name.contains('/') {
            let hint = "must be a domain, '/' and a name, such as prow.windows/node-client";
            errors.invalid(&path.child("signerName"), &spec.signer_name, hint);
        }
        if spec.usages.as_ref().is_none_or(Vec::is_empty) {
            errors.required(
                &path.child("usages"),
                "say what the certificate is for, such as \"client auth\"",
            );
        }
        if let Some(seconds) = spec.expiration_seconds.filter(|s| *s < 600) {
            errors.invalid(&path.child("expirationSeconds"), seconds, "must be at least 600");
        }
        conditions(object, &mut errors);
        errors
    }

    /// The status may not undo or add a decision.
    fn validate_status(&self, new: &Csr, old: &Csr) -> Errors {
        let mut errors = Errors::new();
        conditions(new, &mut errors);
        let decided = |o: &Csr, which: &str| conditions_of(o).any(|c| c.type_ == which);
        for which in DECISIONS.iter().filter(|w| decided(new, w) != decided(old, w)) {
            let path = Path::new("status").child("conditions");
            errors.forbidden(
                &path,
                format_args!("{which} is set through the subresource approval only"),
            );
        }
        errors
    }

    fn subresources(&self) -> &'static [&'static str] {
        &["approval"]
    }

    fn strategic_merge(&self) -> bool {
        true
    }
}

fn stamp(condition: &mut Condition, now: Timestamp) {
    let time = serde_json::from_value(timestamp(now)).ok();
    condition.last_update_time = condition.last_update_time.take().or(time.clone());
    condition.last_transition_time = condition.last_transition_time.take().or(time);
}

fn conditions_of(object: &Csr) -> impl Iterator<Item = &Condition> {
    object.status.iter().flat_map(|s| s.conditions.iter().flatten())
}

fn conditions(object: &Csr, errors: &mut Errors) {
    let path = Path::new("status").child("conditions");
    let has = |which: &str| conditions_of(object).any(|c| c.type_ == which);
    if DECISIONS.iter().all(|d| has(d)) {
        errors.invalid(
            &path,
            "Approved, Denied",
            "a request is approved or denied, not both",
        );
    }
    for (i, _) in conditions_of(object)
        .enumerate()
        .filter(|(_, c)| c.type_.is_empty())
    {
        errors.required(
            &path.index(i).child("type"),
            format_args!("such as {}", DECISIONS.join(" or ")),
        );
    }
}

/// `Approved,Issued`; `Pending` before any decision.
fn standing(object: &Value, _now: Timestamp) -> Value {
    let status = &object["status"];
    let mut words: Vec<&str> = status["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|c| c["type"].as_str())
        .collect();
    if words.is_empty() {
        words.push("Pending");
    }
    if status["certificate"].as_str().is_some_and(|c| !c.is_empty()) {
        words.push("Issued");
    }
    words.join(",").into()
}

fn requested_duration(object: &Value, _now: Timestamp) -> Value {
    match object["spec"]["expirationSeconds"].as_i64() {
        Some(seconds) => crate::table::human_duration(seconds).into(),
        None => "<none>".into(),
    }
}

pub(super) fn kind() -> Kind {
    use columns::{age, computed, field};
    core(
        CertificateSigningRequests,
        Shape {
            plural: "certificatesigningrequests",
            short_names: &["csr"],
            scope: Scope::Cluster,
            columns: vec![
                age(),
                field("SignerName", "string", ".spec.signerName", "Who is asked to sign"),
                field("Requestor", "string", ".spec.username", "Who asks"),
                computed(
                    "RequestedDuration",
                    "string",
                    "How long it shall hold",
                    requested_duration,
                ),
                computed("Condition", "string", "Where it stands", standing),
            ],
            selectable: &["spec.signerName"],
            status_subresource: true,
            storage: Storage::Durable,
        },
    )
}
