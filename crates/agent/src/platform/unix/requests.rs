//! Being asked to end.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Yields whenever this process is asked to end: SIGTERM, which systemd sends to all that is left at a shutdown.
pub fn end_requests() -> io::Result<Signal> {
    signal(SignalKind::terminate())
}
