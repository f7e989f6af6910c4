//! Uids and name suffixes. Injected, so that a test can foresee them.

use std::sync::Arc;

/// Where random bytes come from.
#[derive(Clone)]
pub struct Random(Arc<dyn Fn() -> u128 + Send + Sync>);

impl Random {
    /// Bytes of the operating system.
    pub fn system() -> Self {
        Self::new(|| {
            let mut bytes = [0; 16];
            // The system's source does not fail once it was seeded; a uid that repeats is refused by the store's guard.
            if let Err(error) = getrandom::fill(&mut bytes) {
                tracing::error!(%error, "no random bytes");
            }
            u128::from_ne_bytes(bytes)
        })
    }

    /// What `next` gives, each time 128 bits.
    pub fn new(next: impl Fn() -> u128 + Send + Sync + 'static) -> Self {
        Self(Arc::new(next))
    }

    /// A random UUID (version 4).
    pub(crate) fn uuid(&self) -> String {
        let bits = (self.0)() & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
        let hex = format!("{bits:032x}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    /// 64 random bits.
    pub(crate) fn number(&self) -> u64 {
        (self.0)() as u64
    }
}

impl std::fmt::Debug for Random {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Random")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_say_their_version_and_variant() {
        assert_eq!(Random::new(|| 0).uuid(), "00000000-0000-4000-8000-000000000000");
        assert_eq!(
            Random::new(|| u128::MAX).uuid(),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
    }
}
