//! Who waits for which log to grow. Only logs that are waited for are here.

use crate::Log;
use parking_lot::Mutex;
use std::collections::HashMap;
use tokio::sync::watch;

/// What became of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing since the wait began.
    None,
    /// It has this size.
    Size(u64),
    /// It was removed.
    Removed,
    /// Nobody writes logs any more.
    Closed,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Growth(Mutex<HashMap<Log, watch::Sender<News>>>);

/// One wait; the entry goes with the last of them.
pub(crate) struct Wait<'a> {
    growth: &'a Growth,
    log: &'a Log,
    news: watch::Receiver<News>,
}

impl Growth {
    /// Hears all news of `log` from now on.
    pub(crate) fn wait<'a>(&'a self, log: &'a Log) -> Wait<'a> {
        let mut waits = self.0.lock();
        let news = waits
            .entry(log.clone())
            .or_insert_with(|| watch::Sender::new(News::None))
            .subscribe();
        Wait {
            growth: self,
            log,
            news,
        }
    }

    pub(crate) fn tell(&self, log: &Log, size: u64) {
        if let Some(waiting) = self.0.lock().get(log) {
            waiting.send_replace(News::Size(size));
        }
    }

    pub(crate) fn removed(&self, task: &str) {
        for (_, waiting) in self.0.lock().iter().filter(|(log, _)| &*log.task == task) {
            waiting.send_replace(News::Removed);
        }
    }

    pub(crate) fn close(&self) {
        for waiting in self.0.lock().values() {
            waiting.send_replace(News::Closed);
        }
    }
}

impl Wait<'_> {
    /// The news once they are other than a size up to `size`.
    pub(crate) async fn beyond(&mut self, size: u64) -> News {
        let new = |news: &News| match news {
            News::None => false,
            News::Size(now) => *now > size,
            News::Removed | News::Closed => true,
        };
        self.news.wait_for(new).await.map_or(News::Closed, |news| *news)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = self.growth.0.lock();
        // This wait is still subscribed, so one receiver means it is the last.
        if waits
            .get(self.log)
            .is_some_and(|waiting| waiting.receiver_count() <= 1)
        {
            waits.remove(self.log);
        }
    }
}
