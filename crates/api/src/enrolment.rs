//! Enrolment tokens as the server keeps them: a Secret `enrol-<id>` each, with a hash of the secret and what it grants.

/// Namespace of the Secrets.
pub const NAMESPACE: &str = "prow-system";
/// Type of the Secrets.
pub const TYPE: &str = "prow.windows/enrolment-token";
/// Key: when the token ends (RFC 3339); absent means never.
pub const EXPIRES: &str = "expires";
/// Key: the node that used it up.
pub const USED_BY: &str = "used-by";
/// Key: when it was used up (RFC 3339).
pub const USED_AT: &str = "used-at";
