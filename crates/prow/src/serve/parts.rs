//! The parts beside the API server: they speak to it as clients of their own, in this process.

use super::Tuning;
use anyhow::Result;
use std::path::Path;

/// Parts that run.
pub struct Parts {}

impl Parts {
    /// Starts them.
    pub async fn start(_api: &apiserver::Server, _data: &Path, _tuning: &Tuning) -> Result<Self> {
        Ok(Self {})
    }

    /// Waits for one that ended against its will.
    pub async fn failed(&self) -> anyhow::Error {
        std::future::pending().await
    }

    /// Ends them.
    pub async fn stop(self) {}
}
