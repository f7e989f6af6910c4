//! The recent events of one kind, and an index by selectable field.
//!
//! A watcher is a [`Cursor`]: the number of the next event it has not seen. The ring is bounded by bytes and age; a
//! watcher whose next event was dropped is overrun and must list again. The index holds, for each value of each
//! selectable field (and of the name), the numbers of the events in which an object has or had that value, so a watcher
//! on `spec.nodeName=web03` reads its own events and no others.

use super::object_index::{IndexKey, keys};
use crate::object::Object;
use machinery::kind::Kind;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Revision;

/// One change of one object.
#[derive(Debug)]
pub struct Event {
    /// The revision of the change.
    pub revision: Revision,
    /// The object after it; `None` if it was deleted.
    pub now: Option<Arc<Object>>,
    /// The object before it; `None` if it was created.
    pub before: Option<Arc<Object>>,
}

impl Event {
    fn size(&self) -> usize {
        self.now
            .as_ref()
            .or(self.before.as_ref())
            .map_or(0, |object| object.size())
            + 100
    }
}

/// How much a ring holds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes of events.
    pub bytes: usize,
    /// How old an event may become.
    pub age: Duration,
}

/// Where a watcher is.
#[derive(Clone, Copy, Debug)]
pub struct Cursor {
    /// Number of the next event.
    next: u64,
}

/// What a look into the ring gives.
#[derive(Debug)]
pub enum Look {
    /// Events in order; empty if there is nothing new.
    Events(Vec<Arc<Event>>),
    /// Events the watcher had not seen are gone. The oldest revision a new watch can start after.
    Overrun(Revision),
}

#[derive(Debug)]
pub struct Ring {
    events: VecDeque<(Instant, Arc<Event>)>,
    /// Number of the first event in `events`.
    first: u64,
    bytes: usize,
    bounds: Bounds,
    /// A watch after this revision or a later one misses nothing.
    oldest: Revision,
    /// One map a selectable field, the name first.
    index: Vec<HashMap<Box<str>, VecDeque<u64>>>,
}

impl Ring {
    /// A ring that knows nothing of what happened up to `oldest`.
    pub fn new(kind: &Kind, oldest: Revision, bounds: Bounds) -> Self {
        let index = (0..=kind.selectable.len()).map(|_| HashMap::new()).collect();
        Self {
            events: VecDeque::new(),
            first: 0,
            bytes: 0,
            bounds,
            oldest,
            index,
        }
    }

    /// Adds an event, and drops what is beyond the bounds.
    pub fn push(&mut self, event: Arc<Event>, now: Instant) {
        let number = self.end().next;
        for IndexKey { field, value } in keys(&event) {
            match self.index[field].get_mut(value) {
                Some(numbers) => numbers.push_back(number),
                None => {
                    self.index[field].insert(value.into(), VecDeque::from([number]));
                }
            }
        }
        self.bytes += event.size();
        self.events.push_back((now, event));
        while self.bytes > self.bounds.bytes
            || self
                .events
                .front()
                .is_some_and(|(at, _)| now.saturating_duration_since(*at) > self.bounds.age)
        {
            if !self.pop() {
                break;
            }
        }
    }

    fn pop(&mut self) -> bool {
        let Some((_, event)) = self.events.pop_front() else {
            return false;
        };
        for IndexKey { field, value } in keys(&event) {
            if let Some(numbers) = self.index[field].get_mut(value) {
                numbers.pop_front();
                if numbers.is_empty() {
                    self.index[field].remove(value);
                }
            }
        }
        self.first += 1;
        self.bytes -= event.size();
        self.oldest = event.revision;
        true
    }

    /// Forgets all, as of `oldest`: watchers are overrun.
    pub fn reset(&mut self, oldest: Revision) {
        self.first = self.end().next + 1; // one more than any cursor can be at
        self.events.clear();
        self.index.iter_mut().for_each(HashMap::clear);
        self.bytes = 0;
        self.oldest = oldest;
    }

    /// The end: only what comes from now on.
    pub fn end(&self) -> Cursor {
        Cursor {
            next: self.first + self.events.len() as u64,
        }
    }

    /// After `revision`, or the oldest revision a watch can start after if that is gone.
    pub fn after(&self, revision: Revision) -> Result<Cursor, Revision> {
        if revision < self.oldest {
            return Err(self.oldest);
        }
        let at = self
            .events
            .partition_point(|(_, event)| event.revision <= revision);
        Ok(Cursor {
            next: self.first + at as u64,
        })
    }

    /// Up to `limit` events from the cursor on, those of an index key alone if there is one; moves the cursor.
    pub fn look(&self, cursor: &mut Cursor, key: Option<IndexKey<'_>>, limit: usize) -> Look {
        if cursor.next < self.first {
            return Look::Overrun(self.oldest);
        }
        let end = self.end().next;
        let mut found = Vec::new();
        match key {
            None => {
                let from = (cursor.next - self.first) as usize;
                found.extend(
                    self.events
                        .range(from..)
                        .take(limit)
                        .map(|(_, event)| event.clone()),
                );
                cursor.next += found.len() as u64;
            }
            Some(IndexKey { field, value }) => {
                let numbers = self.index.get(field).and_then(|values| values.get(value));
                let mut next = end;
                if let Some(numbers) = numbers {
                    let from = numbers.partition_point(|number| *number < cursor.next);
                    for number in numbers.range(from..) {
                        if found.len() == limit {
                            next = *number;
                            break;
                        }
                        found.push(self.events[(number - self.first) as usize].1.clone());
                    }
                }
                cursor.next = next;
            }
        }
        Look::Events(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Shape;
    use crate::testing::{config_map_shape, object};

    fn ring(shape: &Shape, bytes: usize, age: u64) -> Ring {
        Ring::new(
            &shape.kind,
            10,
            Bounds {
                bytes,
                age: Duration::from_secs(age),
            },
        )
    }

    fn event(shape: &Shape, name: &str, revision: Revision) -> Arc<Event> {
        let now = Some(Arc::new(object(shape, "ns", name, revision)));
        Arc::new(Event {
            revision,
            now,
            before: None,
        })
    }

    fn revisions(look: Look) -> Vec<Revision> {
        match look {
            Look::Events(events) => events.iter().map(|e| e.revision).collect(),
            Look::Overrun(_) => panic!("overrun"),
        }
    }

    #[test]
    fn a_cursor_reads_every_event_once_in_order() {
        let shape = config_map_shape();
        let mut ring = ring(&shape, 1 << 20, 60);
        let start = Instant::now();
        for revision in 11..20 {
            ring.push(event(&shape, "a", revision), start);
        }
        let mut cursor = ring.after(12).unwrap();
        assert_eq!(revisions(ring.look(&mut cursor, None, 3)), [13, 14, 15]);
        ring.push(event(&shape, "a", 25), start);
        assert_eq!(revisions(ring.look(&mut cursor, None, 99)), [16, 17, 18, 19, 25]);
        assert!(revisions(ring.look(&mut cursor, None, 99)).is_empty());
        assert_eq!(ring.after(9).unwrap_err(), 10);
    }

    #[test]
    fn the_index_gives_the_events_of_one_value() {
        let shape = config_map_shape();
        let mut ring = ring(&shape, 1 << 20, 60);
        let start = Instant::now();
        for revision in 11..31 {
            ring.push(
                event(&shape, if revision % 5 == 0 { "mine" } else { "other" }, revision),
                start,
            );
        }
        let mut cursor = ring.after(11).unwrap();
        let mine = || {
            Some(IndexKey {
                field: 0,
                value: "mine",
            })
        };
        assert_eq!(revisions(ring.look(&mut cursor, mine(), 2)), [15, 20]);
        assert_eq!(revisions(ring.look(&mut cursor, mine(), 9)), [25, 30]);
        assert!(revisions(ring.look(&mut cursor, mine(), 9)).is_empty());
        assert!(revisions(ring.look(&mut cursor, None, 9)).is_empty());
    }

    #[test]
    fn bytes_and_age_bound_it_and_the_overrun_learn_of_it() {
        let shape = config_map_shape();
        let start = Instant::now();
        let one = event(&shape, "a", 11).size();
        let mut small = ring(&shape, 3 * one, 60);
        let mut cursor = small.after(10).unwrap();
        for revision in 11..16 {
            small.push(event(&shape, "a", revision), start);
        }
        assert!(matches!(small.look(&mut cursor, None, 9), Look::Overrun(12)));
        assert_eq!(small.index[0]["a"].len(), 3);

        let mut aged = ring(&shape, 1 << 20, 60);
        aged.push(event(&shape, "a", 11), start);
        aged.push(event(&shape, "b", 12), start + Duration::from_secs(61));
        assert_eq!(aged.after(10).unwrap_err(), 11);
        assert!(!aged.index[0].contains_key("a"));
    }

    #[test]
    fn a_reset_overruns_everybody() {
        let shape = config_map_shape();
        let mut ring = ring(&shape, 1 << 20, 60);
        let mut cursor = ring.end();
        ring.reset(50);
        assert!(matches!(ring.look(&mut cursor, None, 9), Look::Overrun(50)));
        assert!(ring.after(49).is_err() && ring.after(50).is_ok());
    }
}
