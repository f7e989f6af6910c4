//! A set of small numbers as bits: which nodes fit a signature, which have a free slot.

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Puts `n` in or takes it out; tells whether that changed anything.
    pub fn set(&mut self, n: usize, on: bool) -> bool {
        let (word, bit) = (n / 64, 1u64 << (n % 64));
        if word >= self.0.len() {
            if !on {
                return false;
            }
            self.0.resize(word + 1, 0);
        }
        let was = self.0[word] & bit != 0;
        if on {
            self.0[word] |= bit;
        } else {
            self.0[word] &= !bit;
        }
        was != on
    }

    /// Whether `n` is in the set.
    pub fn has(&self, n: usize) -> bool {
        self.0.get(n / 64).is_some_and(|word| word & 1 << (n % 64) != 0)
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Everything in the set.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(at, word)| ones(*word).map(move |bit| at * 64 + bit))
    }
}

/// What is in all of some sets and in none of others, from `start` up and then from the beginning up to it.
pub(crate) fn common<'a>(
    all: &'a [&'a Bits],
    none: &'a [&'a Bits],
    start: usize,
) -> impl Iterator<Item = usize> + 'a {
    let words = all.iter().map(|bits| bits.0.len()).min().unwrap_or(0);
    let first = (start / 64).min(words);
    let from_start = u64::MAX << (start % 64);
    let word_at = move |at: usize| {
        let word = |bits: &Bits| bits.0.get(at).copied().unwrap_or(0);
        let inside = all.iter().fold(u64::MAX, |left, bits| left & word(bits));
        none.iter().fold(inside, |left, bits| left & !word(bits))
    };
    // the word of `start` is visited twice: its upper bits first, its lower bits last
    (0..=words).flat_map(move |i| {
        let at = (first + i) % words.max(1);
        let mask = match i {
            0 if first < words => from_start,
            _ if i == words && first < words => !from_start,
            _ if i == words => 0,
            _ => u64::MAX,
        };
        let word = if mask == 0 { 0 } else { word_at(at) & mask };
        ones(word).map(move |bit| at * 64 + bit)
    })
}

fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        (word != 0).then(|| {
            word &= word - 1;
            bit
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn common_is_what_all_have_and_none_turned_to_start(
            a in prop::collection::btree_set(0usize..300, 0..60),
            b in prop::collection::btree_set(0usize..300, 0..60),
            c in prop::collection::btree_set(0usize..300, 0..30),
            start in 0usize..400,
        ) {
            let bits = |set: &BTreeSet<usize>| {
                let mut bits = Bits::default();
                set.iter().for_each(|n| { bits.set(*n, true); });
                bits
            };
            let wanted: Vec<usize> = a.intersection(&b).copied().filter(|n| !c.contains(n)).collect();
            let turned: Vec<usize> = wanted.iter().filter(|n| **n >= start).chain(wanted.iter().filter(|n| **n < start)).copied().collect();
            let (a, b, c) = (bits(&a), bits(&b), bits(&c));
            prop_assert_eq!(common(&[&a, &b], &[&c], start).collect::<Vec<_>>(), turned);
            prop_assert_eq!(a.iter().collect::<Vec<_>>(), common(&[&a], &[], 0).collect::<Vec<_>>());
        }
    }
}
