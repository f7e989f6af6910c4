//! Being asked to end.

use std::io;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

/// Yields whenever the console of this process asks it to end: Ctrl-C, Ctrl-Break, the window closed, the host shut down. A process
/// without a console is never asked so.
#[derive(Debug)]
pub struct EndRequests {
    c: CtrlC,
    pause: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl EndRequests {
    /// Waits for the next request; `None` if none can come any more.
    pub async fn recv(&mut self) -> Option<()> {
        tokio::select! {
            asked = self.c.recv() => asked,
            asked = self.pause.recv() => asked,
            asked = self.close.recv() => asked,
            asked = self.shutdown.recv() => asked,
        }
    }
}

/// Begins to listen.
pub fn end_requests() -> io::Result<EndRequests> {
    Ok(EndRequests {
        c: ctrl_c()?,
        pause: ctrl_break()?,
        close: ctrl_close()?,
        shutdown: ctrl_shutdown()?,
    })
}
