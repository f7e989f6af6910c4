//! Takes secrets out of output before it reaches the disk.
//!
//! [`Patterns`] holds every form a secret may be printed in ([`forms`]). A [`Masker`] runs over one stream, whatever its chunks: it holds
//! back the end of what it has seen while that may be the beginning of a secret, and tells apart what any secret covers, also where
//! secrets overlap or contain each other. It works on the bytes as they come, before anything decodes them: a program that writes in
//! another encoding than was declared gives nothing away either.
//!
//! What this cannot find, and docs must say: forms not listed in [`forms`], secrets cut into pieces by the program that prints them,
//! lines of one or two characters of a secret with several.

mod forms;

use crate::codepage::Pages;
use aho_corasick::AhoCorasick;
use std::{collections::BTreeSet, ops::Range, sync::Arc};

/// What a secret is replaced by.
pub const MASK: &[u8] = b"***";

/// The forms of all secrets of a task.
#[derive(Default)]
pub struct Patterns {
    pages: Pages,
    forms: BTreeSet<Vec<u8>>,
    longest: usize,
    finder: Option<AhoCorasick>,
}

/// What a [`Masker`] makes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Bytes that no secret covers.
    Shown(&'a [u8]),
    /// A secret begins here: [`MASK`] stands in its place.
    Mask,
    /// Its bytes, to be skipped.
    Hidden(&'a [u8]),
}

impl Patterns {
    /// No secrets yet, of a host with these code pages.
    pub fn new(pages: Pages) -> Self {
        Self {
            pages,
            ..Self::default()
        }
    }

    /// The same with further secrets, or `None` where they bring nothing new.
    pub fn with<'a>(&self, secrets: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let mut forms = self.forms.clone();
        for secret in secrets {
            forms::add(secret, self.pages, &mut forms);
        }
        if forms.len() == self.forms.len() {
            return None;
        }
        let finder = AhoCorasick::new(&forms);
        if let Err(error) = &finder {
            tracing::error!(%error, "the masks cannot be built"); // the caller shows nothing then
        }
        Some(Self {
            pages: self.pages,
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
        masker.feed(self, text.as_bytes(), |piece| append(piece, &mut out));
        masker.finish(self, |piece| append(piece, &mut out));
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

/// Appends a piece to bytes that need no decoding.
pub fn append(piece: Piece<'_>, out: &mut Vec<u8>) {
    match piece {
        Piece::Shown(bytes) => out.extend_from_slice(bytes),
        Piece::Mask => out.extend_from_slice(MASK),
        Piece::Hidden(_) => {}
    }
}

/// Masks one stream.
#[derive(Default)]
pub struct Masker {
    held: Vec<u8>,
    /// How many of the held bytes are covered by a secret that has begun.
    covered: usize,
}

impl Masker {
    /// Takes the next bytes and tells what may be shown.
    pub fn feed(&mut self, patterns: &Patterns, bytes: &[u8], mut tell: impl FnMut(Piece<'_>)) {
        if patterns.forms.is_empty() && self.held.is_empty() {
            tell(Piece::Shown(bytes));
            return;
        }
        self.held.extend_from_slice(bytes);
        let open = patterns.open_end(&self.held);
        self.release(patterns, open, tell);
    }

    /// The stream is over: what was held back is no beginning of a secret.
    pub fn finish(&mut self, patterns: &Patterns, tell: impl FnMut(Piece<'_>)) {
        self.release(patterns, self.held.len(), tell);
    }

    fn release(&mut self, patterns: &Patterns, open: usize, mut tell: impl FnMut(Piece<'_>)) {
        let mut at = 0; // everything before is told
        let mut until = self.covered; // everything before is covered by a secret that has begun
        for range in patterns.covered(&self.held) {
            if range.start < until {
                until = until.max(range.end); // goes on under the same mask
                continue;
            }
            if range.start >= open {
                break; // may yet grow
            }
            hide(&self.held[at..until], &mut tell);
            show(&self.held[until..range.start], &mut tell);
            tell(Piece::Mask);
            (at, until) = (range.start, range.end);
        }
        let hidden = until.min(open);
        hide(&self.held[at..hidden], &mut tell);
        show(&self.held[hidden..open], &mut tell);
        self.held.drain(..open);
        self.covered = until.saturating_sub(open);
    }
}

fn hide(bytes: &[u8], tell: &mut impl FnMut(Piece<'_>)) {
    if !bytes.is_empty() {
        tell(Piece::Hidden(bytes));
    }
}

fn show(bytes: &[u8], tell: &mut impl FnMut(Piece<'_>)) {
    if !bytes.is_empty() {
        tell(Piece::Shown(bytes));
    }
}

#[cfg(test)]
mod tests;
