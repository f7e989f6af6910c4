//! Who may do what, until roles come: `system:masters` everything, agents what the node authorizer grants, holders of
//! an enrolment token only to ask for a certificate, everybody else discovery and questions about themselves.

pub(crate) mod node;

use crate::inner::Inner;
use api::identity::{AUTHENTICATED, BOOTSTRAPPERS, Identity};
use machinery::selector::FieldSelector;

/// What somebody wants to do to a resource. Empty texts stand for "none" or "all".
#[derive(Clone, Debug, Default)]
pub(crate) struct Ask<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    pub plural: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// What a list or watch is narrowed to.
    pub fields: FieldSelector,
}

impl Ask<'_> {
    /// `jobs` or `jobs/status`, as messages name it.
    pub(crate) fn resource(&self) -> String {
        if self.subresource.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}/{}", self.plural, self.subresource)
        }
    }

    fn is(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }
}

/// Whether somebody may do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Yes.
    Allow,
    /// No; what would help, or empty.
    Deny(String),
}

impl Decision {
    fn when(allowed: bool) -> Self {
        if allowed {
            Self::Allow
        } else {
            Self::Deny(String::new())
        }
    }
}

/// Decides about a resource.
pub(crate) fn resource(inner: &Inner, user: &Identity, ask: &Ask<'_>) -> Decision {
    if user.is_master() {
        return Decision::Allow;
    }
    let authenticated = user.groups.iter().any(|group| group == AUTHENTICATED);
    let about_oneself = ask.is("authentication.k8s.io", "selfsubjectreviews")
        || ask.is("authorization.k8s.io", "selfsubjectaccessreviews")
        || ask.is("authorization.k8s.io", "selfsubjectrulesreviews");
    if authenticated && about_oneself && ask.verb == "create" {
        return Decision::Allow;
    }
    if let Some(name) = user.node() {
        return node::decide(inner, user, name, ask);
    }
    if user.groups.iter().any(|group| group == BOOTSTRAPPERS) {
        let request =
            ask.is("certificates.k8s.io", "certificatesigningrequests") && ask.subresource.is_empty();
        return Decision::when(
            request
                && (ask.verb == "create" || ask.verb == "get" && node::own_request(inner, user, ask.name)),
        );
    }
    Decision::Deny(String::new())
}

/// Decides about a path that is no resource.
pub(crate) fn path(user: &Identity, verb: &str, path: &str) -> bool {
    if user.is_master() {
        return true;
    }
    let read = matches!(verb, "get" | "head");
    let open = matches!(path, "/livez" | "/readyz" | "/healthz" | "/version");
    let below = |root: &str| {
        path.strip_prefix(root)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let authenticated = user.groups.iter().any(|group| group == AUTHENTICATED);
    read && (open
        || authenticated && (path == "/" || ["/api", "/apis", "/openapi", "/version"].into_iter().any(below)))
}
