//! The snapshot of a PerNode Job's nodes: names in parts, each the content of an immutable ConfigMap, and a hash over all.

use crate::{job::Snapshot, names};
use std::sync::Arc;

/// How many names a part holds.
pub const PART: usize = 2000;
/// The key of the ConfigMap under which they lie, a line each.
pub const KEY: &str = "nodes";

/// The snapshot cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the names are not those that were chosen")]
pub struct Differs;

/// Count and hash of the members, which must be sorted.
pub fn of(members: &[Arc<str>]) -> Snapshot {
    Snapshot {
        count: i32::try_from(members.len()).unwrap_or(i32::MAX),
        hash: names::sha256_hex(members.join("\n")),
    }
}

/// The members in parts.
pub fn parts(members: &[Arc<str>]) -> impl Iterator<Item = String> {
    members.chunks(PART).map(|part| part.join("\n"))
}

/// How many parts a snapshot has.
pub fn part_count(snapshot: &Snapshot) -> usize {
    usize::try_from(snapshot.count).unwrap_or(0).div_ceil(PART)
}

/// The members, from all parts in order.
pub fn read<'a>(
    parts: impl IntoIterator<Item = &'a str>,
    snapshot: &Snapshot,
) -> Result<Vec<Arc<str>>, Differs> {
    let members: Vec<Arc<str>> = parts.into_iter().flat_map(str::lines).map(Arc::from).collect();
    if of(&members) == *snapshot {
        Ok(members)
    } else {
        Err(Differs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again_and_nothing_else() {
        let members: Vec<Arc<str>> = (0..4500).map(|n| format!("node{n:05}").into()).collect();
        let snapshot = of(&members);
        let parts: Vec<String> = parts(&members).collect();
        assert_eq!((parts.len(), part_count(&snapshot)), (3, 3));
        let texts = || parts.iter().map(String::as_str);
        assert_eq!(read(texts(), &snapshot), Ok(members));
        assert_eq!(read(texts().take(2), &snapshot), Err(Differs));
        assert_eq!(read(texts().rev(), &snapshot), Err(Differs));
        assert_eq!(read([], &of(&[])), Ok(vec![]), "no node is a snapshot too");
    }
}
