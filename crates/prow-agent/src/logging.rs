//! Where the program's own words go: standard error, filtered by `PROW_LOG` (`info` if unset).

use tracing_subscriber::EnvFilter;

/// Starts it; call it once.
pub fn start() {
    let filter = EnvFilter::try_from_env("PROW_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .init();
}
