//! A set of numbers as ranges, so that a hundred thousand waiting indexes cost as much as one.

use std::{collections::BTreeMap, ops::Range};

/// A set of numbers kept as disjoint ranges that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Start to end (exclusive).
    by_start: BTreeMap<u32, u32>,
    len: u32,
}

impl Ranges {
    /// All numbers below `end`.
    pub fn below(end: u32) -> Self {
        Self {
            by_start: (end > 0).then_some((0, end)).into_iter().collect(),
            len: end,
        }
    }

    /// How many numbers.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u32> {
        self.by_start.keys().next().copied()
    }

    /// The ranges, in order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u32>> {
        self.by_start.iter().map(|(start, end)| *start..*end)
    }

    /// Whether `n` is in the set.
    pub fn contains(&self, n: u32) -> bool {
        self.around(n).is_some()
    }

    /// Takes `n` out.
    pub fn remove(&mut self, n: u32) {
        let Some((start, end)) = self.around(n) else {
            return;
        };
        self.by_start.remove(&start);
        if start < n {
            self.by_start.insert(start, n);
        }
        if n + 1 < end {
            self.by_start.insert(n + 1, end);
        }
        self.len -= 1;
    }

    /// Puts `n` in.
    pub fn insert(&mut self, n: u32) {
        if self.contains(n) || n == u32::MAX {
            return;
        }
        let end = self.by_start.remove(&(n + 1)).unwrap_or(n + 1);
        let before = self.by_start.range(..n).next_back().map(|(s, e)| (*s, *e));
        let start = before.filter(|(_, e)| *e == n).map_or(n, |(s, _)| s);
        self.by_start.insert(start, end);
        self.len += 1;
    }

    fn around(&self, n: u32) -> Option<(u32, u32)> {
        let (start, end) = self.by_start.range(..=n).next_back()?;
        (n < *end).then_some((*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_set_and_stays_minimal(below in 0u32..40, changes in prop::collection::vec((any::<bool>(), 0u32..50), 0..120)) {
            let mut ranges = Ranges::below(below);
            let mut set: BTreeSet<u32> = (0..below).collect();
            for (put, n) in changes {
                if put {
                    ranges.insert(n);
                    set.insert(n);
                } else {
                    ranges.remove(n);
                    set.remove(&n);
                }
                prop_assert_eq!(ranges.iter().flatten().collect::<Vec<_>>(), set.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(ranges.len() as usize, set.len());
                prop_assert_eq!(ranges.first(), set.first().copied());
                let all: Vec<_> = ranges.iter().collect();
                prop_assert!(all.windows(2).all(|w| w[0].end < w[1].start));
            }
        }
    }
}
