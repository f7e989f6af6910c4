//! Kubernetes `Status` objects: how the API says no, in the words and codes that kubectl and client libraries know.

use crate::kind::{Kind, Scope};
use api::{field, identity::Identity};
use serde_json::{Map, Value, json};
use std::fmt;

/// Why a request failed; fixes the HTTP code. The names are `metav1.StatusReason`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The request makes no sense.
    BadRequest,
    /// Nobody knows who asks.
    Unauthorized,
    /// The user may not do this, or it may not be done now.
    Forbidden,
    /// No such object or resource.
    NotFound,
    /// The resource does not take this HTTP method.
    MethodNotAllowed,
    /// None of the representations the client accepts can be made.
    NotAcceptable,
    /// The name is taken.
    AlreadyExists,
    /// The object changed in between: read it again and retry.
    Conflict,
    /// What the client wants to go on with no longer exists, for good.
    Gone,
    /// A resource version or continue token is too old: list again.
    Expired,
    /// The body is larger than the server takes.
    RequestEntityTooLarge,
    /// The body's content type is not understood.
    UnsupportedMediaType,
    /// The object is understood, but wrong.
    Invalid,
    /// Too many requests: wait and retry.
    TooManyRequests,
    /// A mistake of the server.
    InternalError,
    /// Not now: wait and retry.
    ServiceUnavailable,
    /// The server did not finish in time: retry.
    Timeout,
}

impl Reason {
    /// The HTTP code.
    pub fn code(self) -> u16 {
        match self {
            Reason::BadRequest => 400,
            Reason::Unauthorized => 401,
            Reason::Forbidden => 403,
            Reason::NotFound => 404,
            Reason::MethodNotAllowed => 405,
            Reason::NotAcceptable => 406,
            Reason::AlreadyExists | Reason::Conflict => 409,
            Reason::Gone | Reason::Expired => 410,
            Reason::RequestEntityTooLarge => 413,
            Reason::UnsupportedMediaType => 415,
            Reason::Invalid => 422,
            Reason::TooManyRequests => 429,
            Reason::InternalError => 500,
            Reason::ServiceUnavailable => 503,
            Reason::Timeout => 504,
        }
    }

    /// The word in `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::BadRequest => "BadRequest",
            Reason::Unauthorized => "Unauthorized",
            Reason::Forbidden => "Forbidden",
            Reason::NotFound => "NotFound",
            Reason::MethodNotAllowed => "MethodNotAllowed",
            Reason::NotAcceptable => "NotAcceptable",
            Reason::AlreadyExists => "AlreadyExists",
            Reason::Conflict => "Conflict",
            Reason::Gone => "Gone",
            Reason::Expired => "Expired",
            Reason::RequestEntityTooLarge => "RequestEntityTooLarge",
            Reason::UnsupportedMediaType => "UnsupportedMediaType",
            Reason::Invalid => "Invalid",
            Reason::TooManyRequests => "TooManyRequests",
            Reason::InternalError => "InternalError",
            Reason::ServiceUnavailable => "ServiceUnavailable",
            Reason::Timeout => "Timeout",
        }
    }
}

/// One of several causes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable: `FieldValueInvalid`, `NamespaceTerminating`.
    pub reason: String,
    /// For people.
    pub message: String,
    /// The field it is about, or empty.
    pub field: String,
}

/// What the failure is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Name of the object, or empty.
    pub name: String,
    /// Group of the kind.
    pub group: String,
    /// The resource (`jobs`); in [`Reason::Invalid`] the kind (`Job`), as Kubernetes has it.
    pub kind: String,
    /// Uid of the object, or empty.
    pub uid: String,
    /// All causes.
    pub causes: Vec<Cause>,
    /// Wait this long before the next try; 0 says nothing.
    pub retry_after_seconds: u32,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Why.
    pub reason: Reason,
    /// For people; kubectl prints it.
    pub message: String,
    /// What it is about; boxed, as most results are no failure.
    pub details: Box<Details>,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// `jobs.prow.windows "x"`, or only `jobs.prow.windows` where there is no name.
fn subject(kind: &Kind, name: &str) -> String {
    if name.is_empty() {
        kind.qualified_plural()
    } else {
        format!("{} \"{name}\"", kind.qualified_plural())
    }
}

impl Status {
    /// A failure that is about no object.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            details: Box::default(),
        }
    }

    fn about(kind: &Kind, name: &str, reason: Reason, message: String) -> Self {
        let details = Details {
            name: name.into(),
            group: kind.group.clone(),
            kind: kind.plural.clone(),
            ..Details::default()
        };
        Self {
            reason,
            message,
            details: Box::new(details),
        }
    }

    /// The HTTP code.
    pub fn code(&self) -> u16 {
        self.reason.code()
    }

    /// 404 for an object.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        Self::about(
            kind,
            name,
            Reason::NotFound,
            format!("{} not found", subject(kind, name)),
        )
    }

    /// 404 for a path that is no resource.
    pub fn no_such_path() -> Self {
        Self::new(
            Reason::NotFound,
            "the server could not find the requested resource",
        )
    }

    /// 409: the name is taken.
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::about(
            kind,
            name,
            Reason::AlreadyExists,
            format!("{} already exists", subject(kind, name)),
        )
    }

    /// 409: the object is not in the state the client thinks; `why` says what differs.
    pub fn conflict(kind: &Kind, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {why}", subject(kind, name));
        Self::about(kind, name, Reason::Conflict, message)
    }

    /// 409: another write came first.
    pub fn modified(kind: &Kind, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// 409: a precondition of the request (uid, resourceVersion) does not hold.
    pub fn precondition(kind: &Kind, name: &str, field: &str, wanted: &str, found: &str) -> Self {
        let why = format!(
            "Precondition failed: {field} in precondition: {wanted}, {field} in object meta: {found}"
        );
        Self::conflict(kind, name, why)
    }

    /// 422 with a cause for each mistake.
    pub fn invalid(kind: &Kind, name: &str, errors: field::Errors) -> Self {
        let gk = if kind.group.is_empty() {
            kind.kind.clone()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let message = format!("{gk} \"{name}\" is invalid: {errors}");
        let mut status = Self::about(kind, name, Reason::Invalid, message);
        status.details.kind = kind.kind.clone();
        status.details.causes = errors
            .into_vec()
            .into_iter()
            .map(|e| Cause {
                reason: e.kind.reason().into(),
                message: e.message,
                field: e.path.to_string(),
            })
            .collect();
        status
    }

    /// 403 with the reason.
    pub fn forbidden(kind: &Kind, name: &str, why: impl fmt::Display) -> Self {
        Self::about(
            kind,
            name,
            Reason::Forbidden,
            format!("{} is forbidden: {why}", subject(kind, name)),
        )
    }

    /// 403: the user may not do this. `resource` may carry a subresource (`jobs/status`).
    pub fn not_allowed(
        kind: &Kind,
        name: &str,
        user: &Identity,
        verb: &str,
        resource: &str,
        namespace: &str,
        hint: &str,
    ) -> Self {
        let place = match (kind.scope, namespace) {
            (Scope::Cluster, _) | (_, "") => "at the cluster scope".to_owned(),
            (Scope::Namespaced, namespace) => format!("in the namespace \"{namespace}\""),
        };
        let hint = if hint.is_empty() {
            String::new()
        } else {
            format!(": {hint}")
        };
        let why = format!(
            "User \"{}\" cannot {verb} resource \"{resource}\" in API group \"{}\" {place}{hint}",
            user.name, kind.group
        );
        Self::forbidden(kind, name, why)
    }

    /// 403: nothing new may be made in a namespace that is going.
    pub fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = Self::forbidden(kind, name, why);
        status.details.causes.push(Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".into(),
        });
        status
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(Reason::BadRequest, message)
    }

    /// 400: the body is no object of this kind.
    pub fn undecodable(kind: &Kind, why: impl fmt::Display) -> Self {
        Self::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            kind.kind, kind.version, kind.kind
        ))
    }

    /// 400: strict field validation found unknown or duplicate fields.
    pub fn strict(kind: &Kind, problems: &[String]) -> Self {
        Self::undecodable(
            kind,
            format_args!("strict decoding error: {}", problems.join(", ")),
        )
    }

    /// 410: a resource version or continue token is too old.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(Reason::Expired, message)
    }

    /// 410 for a watch or list from `requested` where history begins at `oldest`.
    pub fn too_old(requested: u64, oldest: u64) -> Self {
        Self::expired(format!("too old resource version: {requested} ({oldest})"))
    }

    /// 410: gone for good.
    pub fn gone(message: impl Into<String>) -> Self {
        Self::new(Reason::Gone, message)
    }

    /// 504 with a retry hint.
    pub fn timeout(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut status = Self::new(Reason::Timeout, message);
        status.details.retry_after_seconds = retry_after_seconds;
        status
    }

    /// 504: the client knows a resource version this server does not have yet.
    pub fn future_version(requested: u64, current: u64) -> Self {
        let mut status = Self::timeout(
            format!("Too large resource version: {requested}, current: {current}"),
            1,
        );
        status.details.causes.push(Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        });
        status
    }

    /// 413.
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            Reason::RequestEntityTooLarge,
            format!(
                "Request entity too large: limit is {limit} bytes; store large content elsewhere and refer to it"
            ),
        )
    }

    /// 415.
    pub fn unsupported_media_type(found: &str, accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format ({found}) - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(Reason::UnsupportedMediaType, message)
    }

    /// 406.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!(
            "only the following media types are accepted: {}",
            accepted.join(", ")
        );
        Self::new(Reason::NotAcceptable, message)
    }

    /// 405.
    pub fn method_not_allowed(kind: &Kind, verb: &str) -> Self {
        let message = format!(
            "{verb} is not supported on resources of kind \"{}\"",
            kind.qualified_plural()
        );
        Self::about(kind, "", Reason::MethodNotAllowed, message)
    }

    /// 401.
    pub fn unauthorized() -> Self {
        Self::new(Reason::Unauthorized, "Unauthorized")
    }

    /// 429.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut status = Self::new(Reason::TooManyRequests, message);
        status.details.retry_after_seconds = retry_after_seconds;
        status
    }

    /// 503.
    pub fn unavailable(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        let mut status = Self::new(Reason::ServiceUnavailable, message);
        status.details.retry_after_seconds = retry_after_seconds;
        status
    }

    /// 500.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::new(
            Reason::InternalError,
            format!("Internal error occurred: {message}"),
        )
    }

    /// The `Status` object.
    pub fn to_value(&self) -> Value {
        let mut body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason.as_str(),
        });
        let details = self.details.to_value();
        if details.as_object().is_some_and(|d| !d.is_empty()) {
            body["details"] = details;
        }
        body["code"] = self.code().into();
        body
    }

    /// The `Status` object as a body.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_value().to_string().into_bytes()
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut map = Map::new();
        let texts = [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ];
        for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            map.insert(key.into(), text.as_str().into());
        }
        if !self.causes.is_empty() {
            map.insert("causes".into(), self.causes.iter().map(Cause::to_value).collect());
        }
        if self.retry_after_seconds > 0 {
            map.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        map.into()
    }
}

impl Cause {
    fn to_value(&self) -> Value {
        let mut cause = json!({"reason": self.reason, "message": self.message});
        if !self.field.is_empty() {
            cause["field"] = self.field.as_str().into();
        }
        cause
    }
}

/// The answer to a delete that left nothing behind: a `Status` that says Success.
pub fn deleted(kind: &Kind, name: &str, uid: &str) -> Value {
    let details = Details {
        name: name.into(),
        group: kind.group.clone(),
        kind: kind.plural.clone(),
        uid: uid.into(),
        ..Details::default()
    };
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details.to_value()})
}

#[cfg(test)]
mod tests;
