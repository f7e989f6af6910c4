//! A consumer's queue of changes; changes of one object that were not read yet are folded into the last.

use kube::Resource;
use parking_lot::Mutex;
use std::{collections::HashMap, collections::VecDeque, sync::Arc};
use tokio::sync::Notify;

/// What happened to an object.
#[derive(Debug)]
pub enum Change<K> {
    /// It is there, as shown.
    Applied(Arc<K>),
    /// It is gone; shown as last seen.
    Deleted(Arc<K>),
}

impl<K> Clone for Change<K> {
    fn clone(&self) -> Self {
        match self {
            Change::Applied(object) => Change::Applied(object.clone()),
            Change::Deleted(object) => Change::Deleted(object.clone()),
        }
    }
}

impl<K: Resource<DynamicType = ()>> Change<K> {
    pub(crate) fn uid(&self) -> Arc<str> {
        self.object().meta().uid.as_deref().unwrap_or_default().into()
    }
}

impl<K> Change<K> {
    /// The object, there or gone.
    pub fn object(&self) -> &Arc<K> {
        match self {
            Change::Applied(object) | Change::Deleted(object) => object,
        }
    }
}

pub(crate) struct Feed<K> {
    pending: Mutex<Pending<K>>,
    more: Notify,
}

struct Pending<K> {
    /// Uids in the order of their first unread change.
    order: VecDeque<Arc<str>>,
    by_uid: HashMap<Arc<str>, Change<K>>,
}

impl<K> Default for Feed<K> {
    fn default() -> Self {
        Self {
            pending: Mutex::new(Pending {
                order: VecDeque::new(),
                by_uid: HashMap::new(),
            }),
            more: Notify::new(),
        }
    }
}

impl<K> Feed<K> {
    pub fn push(&self, uid: &Arc<str>, change: Change<K>) {
        let mut pending = self.pending.lock();
        if pending.by_uid.insert(uid.clone(), change).is_none() {
            pending.order.push_back(uid.clone());
        }
        drop(pending);
        self.more.notify_one();
    }
}

/// A queue of changes of one consumer.
pub struct Changes<K>(Arc<Feed<K>>);

impl<K> Changes<K> {
    pub(crate) fn new(feed: Arc<Feed<K>>) -> Self {
        Self(feed)
    }

    /// All unread changes, at least one; in the order of each object's first unread change. Cancel-safe.
    pub async fn next(&mut self) -> Vec<Change<K>> {
        loop {
            let batch = self.drain();
            if !batch.is_empty() {
                return batch;
            }
            self.0.more.notified().await;
        }
    }

    /// All unread changes, possibly none.
    pub fn drain(&mut self) -> Vec<Change<K>> {
        let mut pending = self.0.pending.lock();
        let order = std::mem::take(&mut pending.order);
        order
            .iter()
            .filter_map(|uid| pending.by_uid.remove(uid))
            .collect()
    }
}
