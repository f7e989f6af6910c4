//! Takes secrets out of output before it reaches the disk.
//!
//! [`Patterns`] holds every form a secret may be printed in ([`forms`]). A [`Masker`] runs over one stream, whatever its chunks: it holds
//! back the end of what it has seen while that may be the beginning of a secret, and replaces what any secret covers, also where
//! secrets overlap or contain each other, by `***`.
//!
//! What this cannot find, and docs must say: forms not listed in [`forms`], secrets cut into pieces by the program that prints them,
//! lines of one or two characters of a secret with several.

mod forms;

use aho_corasick::AhoCorasick;
use std::{collections::BTreeSet, ops::Range, sync::Arc};

/// What a secret is replaced by.
pub const MASK: &[u8] = b"***";

/// The forms of all secrets of a task.
#[derive(Default)]
pub struct Patterns {
    forms: BTreeSet<Vec<u8>>,
    longest: usize,
    finder: Option<AhoCorasick>,
}

impl Patterns {
    /// The same with further secrets, or `None` where they bring nothing new.
    pub fn with<'a>(&self, secrets: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut forms = self.forms.clone();
        for secret in secrets {
            forms::add(secret, &mut forms);
        }
        if forms.len() == self.forms.len() {
            return None;
        }
        let finder = AhoCorasick::new(&forms);
        if let Err(error) = &finder {
            tracing::error!(%error, "the masks cannot be built"); // the caller shows nothing then
        }
        Some(Self {
            longest: forms.iter().map(Vec::len).max().unwrap_or(0),
            finder: finder.ok(),
            forms,
        })
    }

    /// A whole text with its secrets replaced.
    pub fn mask_text(self: &Arc<Self>, text: &str) -> String {
        if self.forms.is_empty() {
            return text.to_owned();
        }
        let mut out = Vec::new();
        let mut masker = Masker::default();
        masker.feed(self, text.as_bytes(), &mut out);
        masker.finish(self, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// What secrets cover, overlapping ranges joined, in order.
    fn covered(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let Some(finder) = &self.finder else {
            return std::iter::once(0..bytes.len())
                .filter(|r| !r.is_empty())
                .collect();
        };
        let mut found: Vec<Range<usize>> = finder.find_overlapping_iter(bytes).map(|m| m.range()).collect();
        found.sort_by_key(|r| r.start);
        let mut joined: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match joined.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => joined.push(range),
            }
        }
        joined
    }

    /// Where the end of `bytes` begins that may be the beginning of a secret.
    fn open_end(&self, bytes: &[u8]) -> usize {
        let from = bytes.len().saturating_sub(self.longest.saturating_sub(1));
        (from..bytes.len())
            .find(|at| self.has_longer(&bytes[*at..]))
            .unwrap_or(bytes.len())
    }

    /// Whether a form begins with `prefix` and goes on.
    fn has_longer(&self, prefix: &[u8]) -> bool {
        let after = (std::ops::Bound::Excluded(prefix), std::ops::Bound::Unbounded);
        // forms that begin with it follow it at once in the order
        self.forms
            .range::<[u8], _>(after)
            .next()
            .is_some_and(|form| form.starts_with(prefix))
    }
}

/// Masks one stream.
#[derive(Default)]
pub struct Masker {
    held: Vec<u8>,
    /// How many of the held bytes are covered by a secret whose mask was already written.
    covered: usize,
}

impl Masker {
    /// Takes the next bytes and appends to `out` what is safe to show.
    pub fn feed(&mut self, patterns: &Patterns, bytes: &[u8], out: &mut Vec<u8>) {
        if patterns.forms.is_empty() && self.held.is_empty() {
            out.extend_from_slice(bytes);
            return;
        }
        self.held.extend_from_slice(bytes);
        let open = patterns.open_end(&self.held);
        self.release(patterns, open, out);
    }

    /// The stream is over: what was held back is no beginning of a secret.
    pub fn finish(&mut self, patterns: &Patterns, out: &mut Vec<u8>) {
        self.release(patterns, self.held.len(), out);
    }

    fn release(&mut self, patterns: &Patterns, open: usize, out: &mut Vec<u8>) {
        let mut at = 0; // everything before is written
        let mut until = self.covered; // everything before is covered by a mask already written
        for range in patterns.covered(&self.held) {
            if range.start < until {
                until = until.max(range.end); // goes on under the same mask
                continue;
            }
            if range.start >= open {
                break; // may yet grow
            }
            at = at.max(until);
            out.extend_from_slice(&self.held[at..range.start]);
            out.extend_from_slice(MASK);
            until = range.end;
        }
        at = at.max(until);
        if at < open {
            out.extend_from_slice(&self.held[at..open]);
        }
        self.held.drain(..open);
        self.covered = until.saturating_sub(open);
    }
}

#[cfg(test)]
mod tests;
