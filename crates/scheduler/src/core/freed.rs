//! Nodes on which something became free, as a log: a signature that found nodes too full looks again only at those since then.

use super::{bits::Bits, world::NodeId};

/// Beyond this many entries the older half is forgotten; who has not read it looks at all nodes again.
const KEPT: usize = 1 << 16;

/// The log.
#[derive(Debug, Default)]
pub(crate) struct Freed {
    log: Vec<NodeId>,
    /// How many entries were forgotten.
    before: usize,
}

impl Freed {
    pub fn push(&mut self, node: NodeId) {
        if self.log.len() == KEPT {
            self.log.drain(..KEPT / 2);
            self.before += KEPT / 2;
        }
        self.log.push(node);
    }

    /// Where the log ends.
    pub fn end(&self) -> usize {
        self.before + self.log.len()
    }

    /// Takes nodes that were freed since `seen` out of `full`.
    pub fn catch_up(&self, full: &mut Bits, seen: &mut usize) {
        match seen.checked_sub(self.before) {
            Some(at) => self.log[at.min(self.log.len())..].iter().for_each(|node| {
                full.set(*node, false);
            }),
            None => *full = Bits::default(),
        }
        *seen = self.end();
    }
}
