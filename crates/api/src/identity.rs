//! Who makes a request: set by the API server's authentication, read by authorization, admission and the gateway.

/// Members of this group may do everything.
pub const MASTERS: &str = "system:masters";
/// Every agent's certificate carries this group…
pub const NODES: &str = "system:nodes";
/// …and this prefix before its node's name.
pub const NODE_PREFIX: &str = "system:node:";
/// Everybody who proved who they are.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Nobody in particular: requests without credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// Holders of an enrolment token.
pub const BOOTSTRAPPERS: &str = "system:bootstrappers";

/// The user behind a request. It travels as a request extension, never as a header, so it cannot be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// User name: a certificate's common name, `system:node:<name>`, `system:prow:<part>`.
    pub name: String,
    /// Groups: a certificate's organizations, plus [`AUTHENTICATED`].
    pub groups: Vec<String>,
}

impl Identity {
    /// A part of the control plane, such as `scheduler`; trusted with everything.
    pub fn part(name: &str) -> Self {
        Self {
            name: format!("system:prow:{name}"),
            groups: vec![MASTERS.into(), AUTHENTICATED.into()],
        }
    }

    /// A request without credentials.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.into(),
            groups: vec!["system:unauthenticated".into()],
        }
    }

    /// Whether this user may do everything.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|g| g == MASTERS)
    }

    /// The node's name if this is an agent.
    pub fn node(&self) -> Option<&str> {
        let name = self.name.strip_prefix(NODE_PREFIX)?;
        self.groups.iter().any(|g| g == NODES).then_some(name)
    }
}
