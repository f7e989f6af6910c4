//! Who waits for events of a kind: those who want all, and those who want one value of one field.

use super::object_index::{IndexKey, keys};
use super::ring::Event;
use machinery::kind::Kind;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// See the module.
#[derive(Debug)]
pub struct Watchers {
    lists: Arc<Mutex<Lists>>,
}

#[derive(Debug)]
struct Lists {
    all: Vec<Arc<Notify>>,
    /// One map an indexed field.
    indexed: Vec<HashMap<Box<str>, Vec<Arc<Notify>>>>,
}

impl Lists {
    fn list(&mut self, key: Option<&(usize, Box<str>)>) -> &mut Vec<Arc<Notify>> {
        match key {
            None => &mut self.all,
            Some((field, value)) => self.indexed[*field].entry(value.clone()).or_default(),
        }
    }
}

impl Watchers {
    /// Nobody yet.
    pub fn new(kind: &Kind) -> Self {
        let indexed = (0..=kind.selectable.len()).map(|_| HashMap::new()).collect();
        Self {
            lists: Arc::new(Mutex::new(Lists {
                all: Vec::new(),
                indexed,
            })),
        }
    }

    /// Somebody who waits for events of `key`, or for all.
    pub fn add(&self, key: Option<IndexKey<'_>>) -> Waker {
        let key = key.map(|key| (key.field, Box::from(key.value)));
        let notify = Arc::new(Notify::new());
        self.lists.lock().list(key.as_ref()).push(notify.clone());
        Waker {
            lists: self.lists.clone(),
            key,
            notify,
        }
    }

    /// Wakes whoever waits for one of `events`.
    pub fn wake(&self, events: &[Arc<Event>]) {
        if events.is_empty() {
            return;
        }
        let lists = self.lists.lock();
        lists.all.iter().for_each(|notify| notify.notify_one());
        if lists.indexed.iter().all(HashMap::is_empty) {
            return;
        }
        for key in events.iter().flat_map(|event| keys(event)) {
            for notify in lists.indexed[key.field].get(key.value).into_iter().flatten() {
                notify.notify_one();
            }
        }
    }

    /// Wakes everybody: what they follow was read anew.
    pub fn wake_all(&self) {
        let lists = self.lists.lock();
        let indexed = lists.indexed.iter().flat_map(HashMap::values).flatten();
        lists
            .all
            .iter()
            .chain(indexed)
            .for_each(|notify| notify.notify_one());
    }
}

/// Waits for events; forgotten when dropped.
#[derive(Debug)]
pub struct Waker {
    lists: Arc<Mutex<Lists>>,
    key: Option<(usize, Box<str>)>,
    notify: Arc<Notify>,
}

impl Waker {
    /// Returns once there was an event since the last call (or since the waker was made).
    pub async fn woken(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        let mut lists = self.lists.lock();
        let list = lists.list(self.key.as_ref());
        list.retain(|notify| !Arc::ptr_eq(notify, &self.notify));
        if list.is_empty()
            && let Some((field, value)) = &self.key
        {
            lists.indexed[*field].remove(value);
        }
    }
}
