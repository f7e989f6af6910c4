//! Windows: a handle, and the time of creation, which no two processes of one number share.

use std::sync::Arc;
use win32::process::Process as Handle;

/// See the module above.
pub struct Process {
    handle: Arc<Handle>,
    /// In 100 ns since 1601.
    created: u64,
}

impl Process {
    /// The living process of this number.
    pub fn of(pid: u32) -> Option<Self> {
        // the handle first: from then on the number cannot come to mean another process
        let handle = Handle::open(pid).ok()??;
        let created = handle.times().ok()?.created;
        (!handle.has_ended()).then(|| Self {
            handle: Arc::new(handle),
            created,
        })
    }

    /// What to write down to know it again.
    pub fn remember(&self) -> String {
        format!("{} {}\n", self.pid(), self.created)
    }

    /// The process that was written down, if it still lives.
    pub fn recall(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let pid: u32 = words.next()?.parse().ok()?;
        let created: u64 = words.next()?.parse().ok()?;
        Self::of(pid).filter(|process| process.created == created)
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.handle.pid()
    }

    /// Waits until it has ended.
    pub async fn ended(&self) {
        let handle = self.handle.clone();
        // a thread of its own and not one of the runtime's, which could not end while it waits
        let (tell, told) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let _ = handle.wait(); // nothing that could be waited for is as good as ended
            let _ = tell.send(()); // nobody waits any more
        });
        let _ = told.await;
    }

    /// Asks it to end. A console program can only be asked in a console that it shares, so it is ended: an agent may be at any moment.
    pub fn terminate(&self) {
        self.kill();
    }

    /// Ends it.
    pub fn kill(&self) {
        let _ = self.handle.terminate(1); // gone already is as good
    }
}
