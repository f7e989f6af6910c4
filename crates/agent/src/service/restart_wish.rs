//! What steps asked for whose Job lets nobody restart the host: shown as the Node's condition PendingReboot until the next boot.

use crate::{
    journal::{Entry, RunRecord},
    platform,
};
use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// A wish outlives the agent in this file: the boot it belongs to, then what was said, each a line.
const FILE: &str = "restart-wish";

/// The last wish of this boot.
pub struct RestartWish {
    path: PathBuf,
    boot_id: String,
    said: watch::Sender<Option<String>>,
}

impl RestartWish {
    /// As an agent of this boot left it.
    pub fn open(data: &Path, boot_id: &str) -> Self {
        let path = data.join(FILE);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let said = text.split_once('\n').filter(|(boot, _)| *boot == boot_id);
        Self {
            said: watch::Sender::new(said.map(|(_, said)| said.trim_end().to_owned())),
            path,
            boot_id: boot_id.to_owned(),
        }
    }

    /// Looks at a task that has ended here.
    pub fn consider(&self, task: &str, run: &[Entry<RunRecord>]) {
        let wished = run.iter().find_map(|entry| match &entry.record {
            RunRecord::StepEnded { result, .. } if result.status.reason == "PendingReboot" => {
                Some(&result.status)
            }
            _ => None,
        });
        let Some(step) = wished else { return };
        let code = step.exit_code.unwrap_or_default();
        let said = format!("step {} of {task} ended with code {code}", step.name);
        if let Err(error) =
            platform::write_private(&self.path, format!("{}\n{said}\n", self.boot_id).as_bytes())
        {
            tracing::warn!(path = %self.path.display(), %error, "the wish for a restart is not kept");
        }
        self.said.send_replace(Some(said));
    }

    /// What was said, as it comes.
    pub fn said(&self) -> watch::Receiver<Option<String>> {
        self.said.subscribe()
    }
}
