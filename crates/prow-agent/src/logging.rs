//! Where the program's own words go: standard error and a file in the data folder, filtered by `PROW_LOG` (`info` if unset).

mod file;

use file::LogFile;
use std::{io, path::Path, sync::Arc};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

/// Starts it; call it once. The data folder is there and private.
pub fn start(data: &Path) -> io::Result<()> {
    let filter = EnvFilter::try_from_env("PROW_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let terminal = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::IsTerminal::is_terminal(&io::stderr()));
    let kept = fmt::layer()
        .with_writer(Arc::new(LogFile::open(data)?))
        .with_ansi(false);
    tracing_subscriber::registry()
        .with(filter)
        .with(terminal)
        .with(kept)
        .init();
    Ok(())
}
