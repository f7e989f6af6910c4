//! Names of what controllers make: deterministic, and with the owner's uid in them, so that a repeated create is
//! `AlreadyExists` and an object of an earlier owner of the same name is never taken for ours.

use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// Lower-case hex of the SHA-256 of `bytes`: 64 characters.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes.as_ref()) {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
    }
    text
}

/// The first five hex digits of a uid.
pub fn short_uid(uid: &str) -> String {
    uid.chars()
        .filter(char::is_ascii_hexdigit)
        .take(5)
        .collect::<String>()
        .to_lowercase()
}

/// What tells the indexes of a Job apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// Indexed: the number.
    Index(u32),
    /// PerNode: the node's name.
    Node(&'a str),
}

/// `<job>-<5 hex of the Job's uid>-<index, or 12 hex of the node name's SHA-256>-<attempt>`.
pub fn task(job: &str, job_uid: &str, key: Key<'_>, attempt: u32) -> String {
    let uid = short_uid(job_uid);
    match key {
        Key::Index(index) => format!("{job}-{uid}-{index}-{attempt}"),
        Key::Node(node) => format!("{job}-{uid}-{}-{attempt}", &sha256_hex(node)[..12]),
    }
}

/// `<job>-<5 hex of the Job's uid>-nodes-<part>`: a ConfigMap with a part of a PerNode Job's node names.
pub fn snapshot(job: &str, job_uid: &str, part: usize) -> String {
    format!("{job}-{}-nodes-{part}", short_uid(job_uid))
}

/// How a parameter's name looks as an environment variable: `app-version` is `PROW_PARAM_APP_VERSION`.
pub fn param_env(name: &str) -> String {
    format!("PROW_PARAM_{}", name.replace(['-', '.'], "_").to_uppercase())
}

/// Whether `name` is a DNS label: 1 to 63 of a-z, 0-9 and dash, with a letter or digit at both ends.
pub fn is_dns_label(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recreated_job_has_other_task_names() {
        let old = task("patch", "3f2a9c11-0000-4000-8000-000000000000", Key::Index(0), 0);
        let new = task("patch", "9b41d7aa-0000-4000-8000-000000000000", Key::Index(0), 0);
        assert_eq!(old, "patch-3f2a9-0-0");
        assert_ne!(old, new);
    }

    #[test]
    fn node_names_of_any_length_make_short_task_names() {
        let name = task("patch", "3f2a9c11", Key::Node(&"x".repeat(253)), 12);
        assert!(name.len() < 63, "{name}");
        assert_ne!(name, task("patch", "3f2a9c11", Key::Node("web01"), 12));
    }

    #[test]
    fn dns_labels() {
        for good in ["a", "web-01", "0", &"a".repeat(63)] {
            assert!(is_dns_label(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ä", &"a".repeat(64)] {
            assert!(!is_dns_label(bad), "{bad}");
        }
    }
}
